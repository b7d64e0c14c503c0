//! Who may use whom. Dependencies of tests are free.

use crate::files::read;
use crate::none;
use crate::workspace::members;

/// Who may depend on whom. An entry covers a package, or with `*` all whose
/// name begins like that; so no adapter may depend on another.
const ALLOWED: [(&str, &[&str]); 20] = [
    ("outflow-core", &[]),
    ("outflow-doctor", &[]),
    // What all listeners share, and acts: locks, and bells that end connections.
    ("outflow-connections", &["outflow-core"]),
    ("outflow-ports", &["outflow-core"]),
    ("outflow-mail", &["outflow-core", "outflow-ports"]),
    (
        "outflow-feedback",
        &["outflow-core", "outflow-ports", "outflow-mail"],
    ),
    ("outflow-telemetry", &["outflow-core"]),
    ("outflow-config", &["outflow-core"]),
    (
        "outflow-pipeline",
        &["outflow-core", "outflow-ports", "outflow-telemetry"],
    ),
    ("outflow-store-*", &["outflow-core", "outflow-ports"]),
    ("outflow-ledger-*", &["outflow-core", "outflow-ports"]),
    ("outflow-resolver-*", &["outflow-core", "outflow-ports"]),
    (
        "outflow-transport-*",
        &["outflow-core", "outflow-ports", "outflow-mail"],
    ),
    (
        "outflow-intake-*",
        &[
            "outflow-core",
            "outflow-connections",
            "outflow-ports",
            "outflow-mail",
        ],
    ),
    (
        "outflow-api",
        &[
            "outflow-core",
            "outflow-connections",
            "outflow-ports",
            "outflow-mail",
            "outflow-config",
            "outflow-telemetry",
        ],
    ),
    // Simulated nodes run over the store that production has, on a simulated disk:
    // a second store would be tested instead of the first.
    (
        "outflow-simulator",
        &[
            "outflow-core",
            "outflow-ports",
            "outflow-pipeline",
            "outflow-store-embedded",
        ],
    ),
    (
        "outflow-throttle",
        &["outflow-core", "outflow-ports", "outflow-telemetry"],
    ),
    ("outflow-tidy", &[]),
    ("outflow-bench", &["outflow-*"]),
    ("outflow", &["outflow-*"]),
];

/// What core may use of others, directly. Everything else is an argument.
const CORE_USES: [&str; 4] = ["jiff", "serde", "thiserror", "toml"];

/// What must not reach core, ports or pipeline by any way: executors, sockets,
/// randomness, threads.
const NOT_PURE: [&str; 18] = [
    "ahash",
    "async-std",
    "crossbeam",
    "fastrand",
    "futures",
    "getrandom",
    "hyper",
    "mio",
    "parking_lot",
    "rand",
    "rand_core",
    "rayon",
    "reqwest",
    "rusqlite",
    "smol",
    "socket2",
    "tokio",
    "uuid",
];

fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[test]
fn packages_are_named_outflow() {
    let found: Vec<String> = members()
        .keys()
        .filter(|name| *name != "outflow" && !name.starts_with("outflow-"))
        .cloned()
        .collect();
    none(
        "Packages are called `outflow-...`, so that they are told apart from others:",
        &found,
    );
}

#[test]
fn packages_depend_only_in_the_allowed_directions() {
    let mut found = Vec::new();
    for (name, member) in members() {
        let Some((_, allowed)) = ALLOWED.iter().find(|(pattern, _)| is_like(name, pattern)) else {
            found.push(format!(
                "{name}: not in the table; which dependency does it fence?"
            ));
            continue;
        };
        for used in member
            .uses
            .iter()
            .filter(|used| members().contains_key(*used))
        {
            if !allowed.iter().any(|pattern| is_like(used, pattern)) {
                found.push(format!("{name} -> {used}"));
            }
        }
    }
    none(
        "Not allowed by the table at the top of this test. Move what is needed to where both \
         may look (a word or decision to core, a trait to ports), or pass it in:",
        &found,
    );
}

#[test]
fn core_uses_little() {
    let found: Vec<String> = members()
        .get("outflow-core")
        .into_iter()
        .flat_map(|core| &core.uses)
        .filter(|used| !CORE_USES.contains(&used.as_str()))
        .cloned()
        .collect();
    none(
        "core decides and needs no more than its list. New dependencies need an ADR:",
        &found,
    );
}

#[test]
fn nothing_impure_reaches_the_decisions() {
    let mut found = Vec::new();
    for name in ["outflow-core", "outflow-ports", "outflow-pipeline"] {
        let Some(member) = members().get(name) else {
            found.push(format!("{name} is missing"));
            continue;
        };
        let impure = member
            .reaches
            .iter()
            .filter(|used| NOT_PURE.contains(&used.as_str()));
        found.extend(impure.map(|used| format!("{name} reaches {used}")));
    }
    none(
        "Executors, sockets and randomness live in adapters. `cargo tree -i` shows the way:",
        &found,
    );
}

#[test]
fn packages_share_lints_and_have_one_test_binary() {
    let mut found = Vec::new();
    for (name, member) in members() {
        if !read(&member.manifest).contains("[lints]\nworkspace = true") {
            found.push(format!("{name}: `[lints] workspace = true` is missing"));
        }
        let tests = member
            .targets
            .iter()
            .filter(|(kind, _)| kind == "test")
            .count();
        if tests > 1 {
            found.push(format!(
                "{name}: {tests} files in tests/; each is linked by itself"
            ));
        }
    }
    none("Packages follow the workspace:", &found);
}
