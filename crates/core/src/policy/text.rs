//! How a list of scopes and names is written: `account:ses-1/isp:google`.
//!
//! Names are free text, so the three characters that separate parts are
//! escaped in them (`%2F`, `%23`, `%25`). A lane's name is itself pool and
//! destination and is written as it is spoken: `lane:default/isp:google`.

use std::fmt;

use super::aliases;
use super::scope::{Scope, UnknownScope};
use crate::name::Name;

/// What a name is called that stands for each of them.
pub const ANY: &str = "*";

/// One part of a key.
pub type Part = (Scope, Name);

/// Why a list of parts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing was written.
    #[error("nothing is named: write a scope and a name, as in isp:google")]
    Empty,
    /// A word that is no scope.
    #[error(transparent)]
    Scope(#[from] UnknownScope),
    /// A scope without a name.
    #[error("{0} has no name: write {0}:NAME, or {0}:* for each of them")]
    NoName(Scope),
    /// A lane that does not say pool and destination.
    #[error("a lane is written POOL/KIND:NAME, as in lane:default/isp:google, not {0:?}")]
    Lane(String),
    /// A scope that is named twice.
    #[error("{0} is named twice: a key has one name for each scope")]
    Twice(Scope),
}

/// Writes one part.
pub(super) fn write_part(f: &mut fmt::Formatter<'_>, scope: Scope, name: &str) -> fmt::Result {
    if scope == Scope::Global {
        return f.write_str(scope.as_str());
    }
    write!(f, "{scope}:")?;
    match name.rsplit_once('/') {
        Some((pool, destination)) if scope == Scope::Lane => {
            write_escaped(f, pool)?;
            f.write_str("/")?;
            write_escaped(f, destination)
        }
        _ => write_escaped(f, name),
    }
}

/// Writes parts with slashes between them.
pub(super) fn write_parts<'a>(
    f: &mut fmt::Formatter<'_>,
    parts: impl Iterator<Item = (Scope, &'a str)>,
) -> fmt::Result {
    for (i, (scope, name)) in parts.enumerate() {
        if i > 0 {
            f.write_str("/")?;
        }
        write_part(f, scope, name)?;
    }
    Ok(())
}

/// Reads parts, makes their names canonical and puts them in order.
pub(super) fn read_parts(text: &str) -> Result<Vec<Part>, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    let mut parts = Vec::new();
    let mut pieces = text.split('/');
    while let Some(piece) = pieces.next() {
        let (word, name) = piece.split_once(':').unwrap_or((piece, ""));
        let scope: Scope = word.parse()?;
        let mut name = unescaped(name);
        if scope == Scope::Lane
            && name != ANY
            && let Some(destination) = pieces.next()
        {
            name = format!("{name}/{}", unescaped(destination));
        }
        parts.push(part(scope, &name)?);
    }
    in_order(parts)
}

/// One part with its canonical name.
pub(super) fn part(scope: Scope, name: &str) -> Result<Part, TextError> {
    if scope == Scope::Global {
        return Ok((scope, Name::from(ANY)));
    }
    if name.is_empty() {
        return Err(TextError::NoName(scope));
    }
    if scope == Scope::Lane && name != ANY && !is_lane(name) {
        return Err(TextError::Lane(name.to_owned()));
    }
    Ok((scope, aliases::canonical(scope, &Name::from(name))))
}

/// Sorts parts by scope, each of which may occur once.
pub(super) fn in_order(mut parts: Vec<Part>) -> Result<Vec<Part>, TextError> {
    parts.sort();
    let twice = parts
        .iter()
        .zip(parts.iter().skip(1))
        .find(|((a, _), (b, _))| a == b);
    match twice {
        Some(((scope, _), _)) => Err(TextError::Twice(*scope)),
        None => Ok(parts),
    }
}

fn is_lane(name: &str) -> bool {
    let destination = name.rsplit_once('/').filter(|(pool, _)| !pool.is_empty());
    destination
        .and_then(|(_, destination)| destination.split_once(':'))
        .is_some_and(|(kind, host)| {
            matches!(kind, "isp" | "carrier" | "push" | "host" | "domain") && !host.is_empty()
        })
}

fn write_escaped(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    for piece in name.split_inclusive(['/', '#', '%']) {
        let escaped = match piece.as_bytes().last() {
            Some(b'/') => "%2F",
            Some(b'#') => "%23",
            Some(b'%') => "%25",
            _ => {
                f.write_str(piece)?;
                continue;
            }
        };
        f.write_str(piece.trim_end_matches(['/', '#', '%']))?;
        f.write_str(escaped)?;
    }
    Ok(())
}

fn unescaped(text: &str) -> String {
    // The percent sign comes last, so that what it yields is not read again.
    text.replace("%2F", "/")
        .replace("%23", "#")
        .replace("%25", "%")
}
