//! What comes into the program from elsewhere, as `deny.toml` says it: as far as
//! that can be seen without a network.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{read, root};
use crate::none;

/// Packages of the lock file: name, version, and where each comes from.
fn locked() -> Vec<(String, String, Option<String>)> {
    let lock = read(&root().join("Cargo.lock"));
    let packages = lock.split("[[package]]").skip(1);
    let field = |package: &str, name: &str| {
        let begin = format!("{name} = \"");
        let line = package.lines().find_map(|line| line.strip_prefix(&begin))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let all = packages.filter_map(|package| {
        let name = field(package, "name")?;
        Some((name, field(package, "version")?, field(package, "source")))
    });
    all.collect()
}

/// The names in a list of `deny.toml`.
fn names(list: &str) -> BTreeSet<String> {
    let rules = read(&root().join("deny.toml"));
    let begin = format!("\n{list} = [\n");
    let (_, behind) = rules.split_once(&begin).unwrap_or_default();
    let (inside, _) = behind.split_once("\n]").unwrap_or_default();
    let quoted = inside.split("name = \"").skip(1);
    let names = quoted.filter_map(|text| text.split_once('"'));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn nothing_that_is_banned_is_locked() {
    let banned = names("deny");
    assert!(!banned.is_empty(), "deny.toml bans something");
    let found = locked()
        .into_iter()
        .filter(|(name, _, _)| banned.contains(name));
    let found: Vec<String> = found
        .map(|(name, version, _)| format!("{name} {version}"))
        .collect();
    none(
        "deny.toml bans these packages: use what it allows instead",
        &found,
    );
}

#[test]
fn packages_come_from_the_registry_or_from_here() {
    let found = locked().into_iter().filter_map(|(name, _, source)| {
        let is_ours = source.is_none() && name.starts_with("outflow");
        let is_registry = source
            .as_ref()
            .is_some_and(|it| it.starts_with("registry+"));
        (!is_ours && !is_registry).then(|| format!("{name} from {source:?}"))
    });
    let found: Vec<String> = found.collect();
    none(
        "no package comes from a repository or another registry",
        &found,
    );
}

#[test]
fn one_version_of_everything_but_what_is_known() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in locked() {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let twice: BTreeSet<String> = versions.into_keys().collect();
    let known = names("skip");
    let new: Vec<String> = twice.difference(&known).cloned().collect();
    none(
        "these are there in two versions: use one, or add them to skip in deny.toml",
        &new,
    );
    let gone: Vec<String> = known.difference(&twice).cloned().collect();
    none(
        "these are there once: take them out of skip in deny.toml",
        &gone,
    );
}
