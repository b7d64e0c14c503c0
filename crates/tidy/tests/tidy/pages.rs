//! What docs and scripts must hold to.

use std::fs;
use std::path::Path;

use crate::files::{files, read, root};
use crate::none;
use crate::workspace::members;

/// The way of a message through the sources, as `docs/life-of-a-message.md`
/// tells it.
const LIFE: [&str; 27] = [
    "crates/api/src/server.rs",
    "crates/intake-smtp/src/intake.rs",
    "crates/ports/src/draft.rs",
    "crates/pipeline/src/intake.rs",
    "crates/pipeline/src/node.rs",
    "crates/core/src/engine/setup.rs",
    "crates/core/src/flow.rs",
    "crates/core/src/policy/set.rs",
    "crates/ports/src/store.rs",
    "crates/store-embedded/src/store.rs",
    "crates/core/src/engine/event.rs",
    "crates/core/src/engine/mod.rs",
    "crates/core/src/engine/flows.rs",
    "crates/pipeline/src/screening.rs",
    "crates/core/src/schedule/mod.rs",
    "crates/core/src/schedule/place.rs",
    "crates/core/src/schedule/turn.rs",
    "crates/core/src/engine/desk.rs",
    "crates/core/src/pool/send.rs",
    "crates/core/src/engine/counter.rs",
    "crates/core/src/engine/permits.rs",
    "crates/core/src/engine/action.rs",
    "crates/ports/src/transport.rs",
    "crates/core/src/engine/replies.rs",
    "crates/core/src/classify/mod.rs",
    "crates/core/src/retry/schedule.rs",
    "crates/core/src/engine/appends.rs",
];

/// The README's two commands: run it, test it.
const COMMANDS: [&str; 2] = ["cargo run --release -- demo", "scripts/test"];

/// What no file may mention: where packages come from is up to the machine
/// that builds, and so is where a checkout lies. Cut in two, so that this list
/// does not find itself.
const UNMENTIONABLE: [(&str, &str); 5] = [
    ("crates.", "io"),
    ("static.rust-", "lang"),
    ("../sha", "red"),
    ("/work/sha", "red"),
    ("/tmp/", "wt"),
];

/// What stands between backticks.
fn quoted(markdown: &str) -> impl Iterator<Item = &str> {
    markdown.split('`').skip(1).step_by(2)
}

fn is_source(quoted: &str) -> bool {
    quoted.starts_with("crates/") && quoted.ends_with(".rs")
}

#[test]
fn the_life_of_a_message_names_its_files_in_order() {
    let markdown = read(&root().join("docs/life-of-a-message.md"));
    let mut told: Vec<&str> = Vec::new();
    for path in quoted(&markdown).filter(|quoted| is_source(quoted)) {
        if !told.contains(&path) {
            told.push(path);
        }
    }
    assert_eq!(
        told, LIFE,
        "docs/life-of-a-message.md (left) names other files, or in another order, than the list \
         in this test (right). Change both together with the code."
    );
}

#[test]
fn docs_name_files_that_exist() {
    let mut found = Vec::new();
    let pages = files("").into_iter().filter(|path| path.ends_with(".md"));
    for page in pages {
        let markdown = read(&root().join(&page));
        let paths = quoted(&markdown).filter(|quoted| is_source(quoted));
        found.extend(
            paths
                .filter(|path| !root().join(path).is_file())
                .map(|path| format!("{page}: {path}")),
        );
        let folder = root().join(&page);
        let folder = folder.parent().unwrap_or(Path::new("")).to_owned();
        let links = markdown
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        found.extend(
            links
                .filter(|link| !link.contains("://") && !link.starts_with('#'))
                .map(|link| link.split('#').next().unwrap_or(link))
                .filter(|link| !folder.join(link).exists())
                .map(|link| format!("{page}: {link}")),
        );
    }
    none("Docs point at files that are not there:", &found);
}

#[test]
fn decisions_are_numbered_without_gaps() {
    let records = files("docs/adr");
    let found: Vec<String> = records
        .iter()
        .zip(1..)
        .filter(|(path, number)| !path.starts_with(&format!("docs/adr/{number:04}-")))
        .map(|(path, number)| format!("{path} should be {number:04}"))
        .collect();
    assert!(!records.is_empty(), "docs/adr is empty");
    none("Decision records are numbered from 0001:", &found);
}

#[test]
fn nothing_mentions_where_it_was_built() {
    let mut found = Vec::new();
    let mut paths = files("");
    // Lock files are cargo's, and name their sources by themselves.
    paths.retain(|path| !path.ends_with("Cargo.lock"));
    for path in paths {
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (start, end) in UNMENTIONABLE {
            let word = format!("{start}{end}");
            if text.contains(&word) {
                found.push(format!("{path}: {word}"));
            }
        }
    }
    none("A checkout builds on any machine. Leave these out:", &found);
}

#[test]
fn the_readme_has_two_commands_that_exist() {
    let readme = read(&root().join("README.md"));
    let mut rest = readme.as_str();
    for command in COMMANDS {
        let Some((_, after)) = rest.split_once(command) else {
            panic!("README.md must show, in this order: {COMMANDS:?}");
        };
        rest = after;
    }
    for script in ["scripts/test", "scripts/simulate-all", ".ci/run"] {
        let text = read(&root().join(script));
        assert!(text.starts_with("#!"), "{script} must begin with #!");
        assert!(is_executable(&root().join(script)), "{script}: chmod +x");
    }
    let ci = read(&root().join(".ci/run"));
    assert!(
        ci.contains("scripts/test"),
        ".ci/run must call scripts/test"
    );
}

#[test]
fn cargo_run_means_outflow() {
    if !members().contains_key("outflow") {
        return;
    }
    let binaries: Vec<&str> = members()
        .values()
        .filter(|member| member.is_default)
        .flat_map(|member| &member.targets)
        .filter(|(kind, _)| kind == "bin")
        .map(|(_, name)| name.as_str())
        .collect();
    assert_eq!(
        binaries,
        ["outflow"],
        "`cargo run` from a clone must mean outflow: set default-members in Cargo.toml"
    );
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
