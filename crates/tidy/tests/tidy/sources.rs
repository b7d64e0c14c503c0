//! What sources may say. They are read as text: for core and pipeline that is a
//! second fence besides clippy, which an `allow` cannot open.

use std::collections::BTreeMap;

use crate::files::{read, root, sources};
use crate::none;

/// What would make two runs of one seed differ.
const DIFFERS_BETWEEN_RUNS: [&str; 9] = [
    "HashMap",
    "HashSet",
    "RandomState",
    "Instant",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "TimeZone::system",
    "std::thread",
];

/// What is not a decision.
const ACTS: [&str; 11] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "async fn",
    ".await",
    "Mutex",
    "RwLock",
    "thread_local!",
    "static mut",
];

/// Where the pipeline meets the machine: its clock and its thread.
const EDGE: &str = "crates/pipeline/src/thread.rs";

/// Sources longer than this have more than one thing to say.
const LINES_MAX: usize = 500;
/// Those that are longer all the same. Split them, and this list is empty.
const LONGER: [&str; 0] = [];

/// Lines of the sources below that contain one of `words` outside comments.
fn lines_with(below: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in sources().filter(|path| path.starts_with(below) && path != EDGE) {
        for (index, line) in read(&root().join(&path)).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(word) = words.iter().find(|word| code.contains(*word)) {
                found.push(format!("{path}:{}: {word}", index + 1));
            }
        }
    }
    found
}

#[test]
fn time_and_randomness_are_arguments() {
    let mut found = Vec::new();
    for below in [
        "crates/core/",
        "crates/ports/",
        "crates/pipeline/",
        "crates/simulator/",
    ] {
        found.extend(lines_with(below, &DIFFERS_BETWEEN_RUNS));
    }
    none(
        "Two runs of one seed must not differ: take time and entropy as arguments, and \
         BTreeMap or a slab instead of a map without order:",
        &found,
    );
}

#[test]
fn decisions_do_not_act() {
    let mut found = Vec::new();
    for below in ["crates/core/", "crates/ports/", "crates/pipeline/"] {
        found.extend(lines_with(below, &ACTS));
    }
    none(
        "Return an action, or submit to a port, and act in an adapter:",
        &found,
    );
}

#[test]
fn sources_are_short() {
    let long: BTreeMap<String, usize> = sources()
        .map(|path| (path.clone(), read(&root().join(path)).lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .collect();
    let found: Vec<String> = long
        .iter()
        .filter(|(path, _)| !LONGER.contains(&path.as_str()))
        .map(|(path, lines)| format!("{path}: {lines} lines, at most {LINES_MAX}"))
        .collect();
    none("One file, one noun. Split:", &found);
    let found: Vec<String> = LONGER
        .iter()
        .filter(|path| !long.contains_key(**path))
        .map(|path| (*path).to_owned())
        .collect();
    none(
        "No longer too long: take them off the list in this test:",
        &found,
    );
}

#[test]
fn crates_say_what_they_are() {
    let found: Vec<String> = sources()
        .filter(|path| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs"))
        .filter(|path| !read(&root().join(path)).starts_with("//!"))
        .collect();
    none(
        "A crate begins with `//!`: what it is, then its files in reading order:",
        &found,
    );
}
