//! The rules that say what answers of far ends mean, as settings want them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use outflow_core::classify::{RuleError, RuleSet, Rules};

/// Larger files are not even read; smaller ones may still be refused.
const FILE_BYTES_MAX: u64 = 2 << 20;

/// Why a file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// It cannot be read.
    #[error("classify.rules: {path}: {error}", path = .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What it says cannot be used.
    #[error("classify.rules: {path}: {error}", path = .path.display())]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// Which rule, and why.
        error: RuleError,
    },
}

/// The rules of these files, in order, before those that come with the program.
pub fn load(paths: &[PathBuf]) -> Result<Rules, RulesError> {
    let mut rules = Rules::built_in();
    for path in paths {
        let text = read(path).map_err(|error| RulesError::Unreadable {
            path: path.clone(),
            error,
        })?;
        let own = RuleSet::after(rules.own(), &text).map_err(|error| RulesError::Wrong {
            path: path.clone(),
            error,
        })?;
        rules = rules.with(own);
    }
    Ok(rules)
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let bytes = File::open(path)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if bytes as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("larger than a file of rules can be"));
    }
    Ok(text)
}
