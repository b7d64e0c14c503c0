//! Looks a directory over that no process has open, and names what is damaged.
//!
//! Everything is read and nothing is changed: each frame of each segment, the
//! body of each live message, the record.

use std::path::Path;
use std::sync::Arc;

use outflow_core::message::Seq;

use crate::disk::{Directory, Disk, read_range};
use crate::journal::segment::{Kind, read_segment};
use crate::library::Library;
use crate::lock::{Lock, LockError};
use crate::record::{RecordError, verify};
use crate::recovery::{JournalError, Recovery, numbers};
use crate::settings::Settings;

/// Findings beyond this are counted, not named.
const PROBLEMS_MAX: usize = 1_000;

/// Why a directory cannot be looked over.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is no store.
    #[error("there is no store in {0}")]
    NoStore(String),
    /// A process has it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments of the journal.
    pub segments: u64,
    /// Frames that hold.
    pub frames: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Live messages.
    pub messages: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Bytes of a torn end, which the next start cuts off: no damage.
    pub torn_bytes: u64,
    /// What is damaged, in words.
    pub problems: Vec<String>,
    /// Further problems that are not named.
    pub more_problems: u64,
}

impl Report {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, text: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text.into());
        } else {
            self.more_problems += 1;
        }
    }
}

/// Looks over the store in a directory.
pub fn check(dir: &Path) -> Result<Report, CheckError> {
    let journal = dir.join("journal");
    if !journal.is_dir() {
        return Err(CheckError::NoStore(dir.display().to_string()));
    }
    let _lock = Lock::take(dir)?;
    let disk = Directory::open(&journal).map_err(|error| JournalError::Io {
        name: journal.display().to_string(),
        error,
    })?;
    let mut report = check_journal(&disk)?;
    let record = dir.join("record.sqlite");
    if record.exists() {
        for problem in verify(&record)? {
            report.problem(format!("record.sqlite: {problem}"));
        }
    }
    Ok(report)
}

/// Looks over the journal on a disk.
pub fn check_journal(disk: &dyn Disk) -> Result<Report, CheckError> {
    let mut report = Report::default();
    for kind in [Kind::Envelope, Kind::Body] {
        for number in numbers(disk, kind)? {
            check_segment(disk, kind, number, &mut report);
        }
    }
    match Recovery::read(disk, &Settings::default(), u64::MAX) {
        Ok(found) => {
            let index = &found.index;
            report.dead_letters = index.dead as u64;
            report.messages = (index.slots.len() - index.dead) as u64;
            report.torn_bytes = found.bytes_cut;
            check_parcels(&found, &mut report);
        }
        Err(error) => {
            let text = error.to_string();
            if !report.problems.contains(&text) {
                report.problem(text);
            }
        }
    }
    Ok(report)
}

fn check_segment(disk: &dyn Disk, kind: Kind, number: u32, report: &mut Report) {
    let name = kind.name(number);
    let bytes = disk.open(&name).and_then(|file| {
        let size = file.size()?;
        read_range(&*file, 0, size)
    });
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return report.problem(format!("{name}: {error}")),
    };
    report.segments += 1;
    report.bytes += bytes.len() as u64;
    match read_segment(&bytes) {
        Ok((_, segment)) => {
            report.frames += segment.frames;
            if segment.damaged {
                let offset = segment.end;
                let error = JournalError::Damaged { name, offset };
                report.problem(error.to_string());
            }
        }
        Err(error) => report.problem(format!("{name}: {error}")),
    }
}

fn check_parcels(found: &Recovery, report: &mut Report) {
    let library: &Arc<Library> = &found.library;
    for (seq, slot) in found.index.slots.iter(Seq(0)) {
        let parcel =
            outflow_ports::parcel::ParcelSource::read(&**library, slot.root.0, slot.body.0);
        if let Err(error) = parcel {
            report.problem(format!("message {}: {error}", seq.0));
        }
    }
}
