//! Whether journal and record belong together.
//!
//! Each of them is made anew where it is missing, so that a store of which one
//! is deleted would start without a word and without half of what it knew. So
//! both say which store they are of, and neither may be far behind the other.

use std::fs;
use std::path::Path;

use crate::disk::Disk;
use crate::journal::list;
use crate::journal::place::position;
use crate::journal::segment::Kind;
use crate::recovery::{JournalError, numbers};

/// Why a journal and a record do not go together.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PairError {
    /// There is a journal, and no record.
    #[error("record.sqlite is missing or empty, though there is a journal beside it")]
    NoRecord,
    /// There is a record, and no journal.
    #[error("the journal is missing, though there is a record of it (record.sqlite)")]
    NoJournal,
    /// There are segments, and no list of them.
    #[error("the list of segments is missing or damaged (segments.list, segments.copy)")]
    NoList,
    /// They are of two stores.
    #[error("record.sqlite and the journal are of two different stores")]
    Foreign,
    /// The record is older than the journal needs.
    #[error(
        "record.sqlite is older than the journal: what was settled in between, and what operators set, is not in it"
    )]
    OldRecord,
    /// The journal is older than the record.
    #[error(
        "the journal is older than record.sqlite: what was accepted in between is not in it, and what was settled in between is"
    )]
    OldJournal,
    /// The journal cannot be read.
    #[error("{0}")]
    Journal(String),
}

impl From<JournalError> for PairError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error.to_string())
    }
}

/// Looks before a record is opened, and perhaps made.
pub fn before_opening(disk: &dyn Disk, record: &Path) -> Result<(), PairError> {
    if fs::metadata(record).is_ok_and(|metadata| metadata.len() > 0) {
        return Ok(());
    }
    // The record is made first.
    let is_listed = list::load(disk).contents.is_some_and(|it| it.is_paired);
    match is_listed || !numbers(disk, Kind::Envelope)?.is_empty() {
        true => Err(PairError::NoRecord),
        false => Ok(()),
    }
}

/// Looks before a journal is read, at what the record says: which store it is
/// of, 0 if it does not know, and how far it covers the journal.
pub fn before_reading(disk: &dyn Disk, id: u64, applied: u64) -> Result<(), PairError> {
    let Some(contents) = list::load(disk).contents else {
        let any = !numbers(disk, Kind::Envelope)?.is_empty();
        // The record hears of the store when the list is there.
        return match (id != 0, any) {
            (false, _) => Ok(()),
            (true, false) => Err(PairError::NoJournal),
            (true, true) => Err(PairError::NoList),
        };
    };
    if id != contents.id && (id != 0 || contents.is_paired) {
        return Err(PairError::Foreign);
    }
    // A segment goes only when the record has all that is in it.
    let first = contents.segments.keys().next();
    let first = first.filter(|(kind, number)| *kind == Kind::Envelope && *number > 1);
    let needed = first.map_or(0, |(_, number)| position(*number, 0));
    let needed = needed.max(contents.clean.map_or(0, |clean| clean.applied));
    // Nor can the record have more than the journal ever had.
    let end = contents.clean.map(|clean| clean.applied);
    let of_envelopes = contents.segments.keys().rev();
    let last = { of_envelopes }.find(|(kind, _)| *kind == Kind::Envelope);
    let end = end.or(last.map(|(_, number)| position(*number, u64::from(u32::MAX))));
    match contents.is_paired {
        true if applied < needed => Err(PairError::OldRecord),
        true if end.is_some_and(|end| end < applied) => Err(PairError::OldJournal),
        _ => Ok(()),
    }
}
