//! What a policy is called in a URL: `isp/google`, `account/ses-1/isp/google`.
//!
//! Kinds are read in any case, names by their aliases, so that `ISP/Gmail` and
//! `isp/google` are one policy. A lane is `lane/default/isp:google`. Everything
//! is `global`, to which a name may be written that says so (`global/*`).

use std::fmt::Write as _;

use outflow_core::policy::matcher::{Match, MatchError};
use outflow_core::policy::scope::Scope;

use crate::nearest::nearest;

/// No path is longer.
const PATH_BYTES_MAX: usize = 2_048;

/// Why a path names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A word that is no kind.
    #[error("unknown kind {kind:?}: {hint}")]
    Kind {
        /// What was written.
        kind: String,
        /// What to write.
        hint: String,
    },
    /// A kind without a name.
    #[error("{0} has no name: write {0}/NAME, or {0}/* for each of them")]
    NoName(Scope),
    /// Too long to be one.
    #[error("a policy is called by at most {PATH_BYTES_MAX} bytes")]
    TooLong,
    /// Names that do not go together.
    #[error(transparent)]
    Match(#[from] MatchError),
}

/// What the policy at `path` governs. Escapes (`%2F`) are read.
pub fn match_of_path(path: &str) -> Result<Match, PathError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    let path = path.trim_matches('/');
    let mut steps = path.split('/').map(unescaped).peekable();
    let mut pairs: Vec<(&'static str, String)> = Vec::new();
    while let Some(word) = steps.next() {
        let scope = scope(&word)?;
        if scope == Scope::Global {
            let is_name = |step: &String| matches!(step.as_str(), "*" | "all" | "global");
            steps.next_if(is_name);
            pairs.push((scope.as_str(), "*".to_owned()));
            continue;
        }
        let name = steps.next().filter(|name| !name.is_empty());
        let mut name = name.ok_or(PathError::NoName(scope))?;
        if scope == Scope::Lane && name != "*" {
            let destination = steps.next().ok_or(PathError::NoName(scope))?;
            name = match (destination.contains(':'), steps.peek()) {
                (false, Some(_)) => {
                    let host = steps.next().unwrap_or_default();
                    format!("{name}/{}:{host}", destination.to_lowercase())
                }
                _ => format!("{name}/{destination}"),
            };
        }
        pairs.push((scope.as_str(), name));
    }
    let pairs = pairs.iter().map(|(scope, name)| (*scope, name.as_str()));
    Ok(Match::from_pairs(pairs)?)
}

/// The path of the policy about `matches`.
pub fn path_of_match(matches: &Match) -> String {
    let mut path = String::new();
    for (scope, pattern) in matches.terms() {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(scope.as_str());
        if *scope == Scope::Global {
            continue;
        }
        path.push('/');
        match pattern.as_str().rsplit_once('/') {
            Some((pool, destination)) if *scope == Scope::Lane => {
                escape(pool, &mut path);
                path.push('/');
                escape(destination, &mut path);
            }
            _ => escape(pattern.as_str(), &mut path),
        }
    }
    path
}

fn scope(word: &str) -> Result<Scope, PathError> {
    let word = word.to_lowercase();
    word.replace('-', "_").parse().map_err(|_| {
        let words = Scope::ALL.map(Scope::as_str);
        let hint = match nearest(&word, words) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("use one of {}", words.join(", ")),
        };
        let kind = word.chars().take(64).collect();
        PathError::Kind { kind, hint }
    })
}

/// Leaves what a path may hold as it is (RFC 3986), but for the slash.
fn escape(name: &str, path: &mut String) {
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => path.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'@' | b':' | b'*' | b'+' | b',' | b'=' | b'!' => {
                path.push(char::from(byte));
            }
            _ => write!(path, "%{byte:02X}").expect("a string takes all that is written to it"),
        }
    }
}

/// A sign that escapes nothing stays.
fn unescaped(step: &str) -> String {
    let mut bytes = Vec::with_capacity(step.len());
    let mut rest = step.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high * 16 + low);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| step.to_owned())
}

fn digit(letter: u8) -> Option<u8> {
    let digit = char::from(letter).to_digit(16)?;
    u8::try_from(digit).ok()
}
