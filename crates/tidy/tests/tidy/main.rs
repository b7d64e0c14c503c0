//! The rules of this repository, as tests.
//!
//! A rule that only reviewers know erodes. Each of these is one test whose
//! message says what is wrong, where, and what to do about it.
//!
//! Reading order: `dependencies` (who may use whom), `sources` (what code may
//! say), `pages` (what docs and scripts must hold to), `supply` (what comes from elsewhere); `workspace` and `files`
//! read what they judge.
#![allow(clippy::panic)]

mod dependencies;
mod files;
mod pages;
mod sources;
mod supply;
mod workspace;

/// Fails with all that was found.
pub fn none(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}\n  {}\n", found.join("\n  "));
}
