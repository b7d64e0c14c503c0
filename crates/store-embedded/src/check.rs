//! Looks a directory over that no process has open, and names what is damaged.
//!
//! Everything is read and nothing is changed: the list of segments, each frame of
//! each segment, the body of each live message, the record.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use outflow_core::message::Seq;
use outflow_core::retry::schedule::DeathCause;
use outflow_ports::parcel::ParcelSource;

use crate::disk::{Disk, read_range};
use crate::index::Finished;
use crate::index::slots::Stand;
use crate::journal::entry::Entry;
use crate::journal::list::{self, ListError};
use crate::journal::segment::{Kind, read_segment};
use crate::library::Library;
use crate::lock::{Lock, LockError};
use crate::pair;
use crate::read_ahead::Ahead;
use crate::record::{ended_by_damage, store_and_position, verify};
use crate::recovery::{JournalError, Recovery, numbers};
use crate::settings::Settings;
use crate::shown::Shown;

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
    /// Whether the store was closed in order: then nothing of it may be torn.
    pub clean_stop: bool,
    /// What is not as usual and no damage, in words.
    pub notes: Vec<String>,
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
    let (journal, record) = (dir.join("journal"), dir.join("record.sqlite"));
    if !journal.is_dir() && !record.exists() {
        return Err(CheckError::NoStore(dir.display().to_string()));
    }
    let _lock = Lock::look(dir)?;
    let disk = Shown::new(&journal);
    let ended = |seq| ended_by_damage(&record, seq).unwrap_or(false);
    let mut report = check_journal_with(&disk, &ended)?;
    if let Err(error) = pair::before_opening(&disk, &record) {
        report.problem(error.to_string());
    } else if record.exists() {
        check_record(&disk, &record, &mut report);
    }
    Ok(report)
}

fn check_record(disk: &dyn Disk, record: &Path, report: &mut Report) {
    match verify(record) {
        Ok(problems) => {
            for problem in problems {
                report.problem(format!("record.sqlite: {problem}"));
            }
        }
        Err(error) => report.problem(format!("record.sqlite: {error}")),
    }
    match store_and_position(record) {
        Ok((id, applied)) => {
            if let Err(error) = pair::before_reading(disk, id, applied) {
                report.problem(error.to_string());
            }
        }
        Err(error) => report.problem(format!("record.sqlite: {error}")),
    }
}

/// Looks over the journal on a disk.
pub fn check_journal(disk: &dyn Disk) -> Result<Report, CheckError> {
    check_journal_with(disk, &|_| false)
}

/// The same, with somebody who knows which messages ended because of damage.
fn check_journal_with(disk: &dyn Disk, ended: &dyn Fn(Seq) -> bool) -> Result<Report, CheckError> {
    let mut report = Report::default();
    check_list(disk, &mut report);
    for kind in [Kind::Envelope, Kind::Body] {
        for number in numbers(disk, kind)? {
            check_segment(disk, kind, number, &mut report);
        }
    }
    match Recovery::read(disk, &Settings::default(), 0, Ahead::ByThread) {
        Ok(found) => {
            let index = &found.index;
            report.dead_letters = index.dead as u64;
            report.messages = (index.slots.len() - index.dead) as u64;
            report.torn_bytes = found.bytes_cut;
            check_parcels(&found, ended, &mut report);
        }
        Err(error) => {
            let text = error.to_string();
            // The header of a segment was named before.
            if !report.problems.contains(&text) {
                report.problem(text);
            }
        }
    }
    Ok(report)
}

/// The list itself, and the segments that it has.
fn check_list(disk: &dyn Disk, report: &mut Report) {
    let loaded = list::load(disk);
    let Some(contents) = loaded.contents else {
        return;
    };
    report.clean_stop = contents.clean.is_some();
    let help = "the other one is whole, and the next start writes it again";
    for (name, error) in loaded.faults {
        let text = format!("{name} {error}: {help}");
        match error {
            // A power loss while it was written.
            ListError::Damaged if !report.clean_stop => report.notes.push(text),
            _ => report.problem(text),
        }
    }
    for ((kind, number), listed) in contents.segments {
        let name = kind.name(number);
        match disk.open(&name).and_then(|file| file.size()) {
            Ok(bytes) if bytes < listed.bytes => report.problem(
                JournalError::Cut {
                    name,
                    bytes,
                    listed: listed.bytes,
                }
                .to_string(),
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                report.problem(JournalError::Missing(name).to_string());
            }
            // One that cannot be read is named where it is read.
            _ => {}
        }
    }
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

fn check_parcels(found: &Recovery, ended: &dyn Fn(Seq) -> bool, report: &mut Report) {
    let library: &Arc<Library> = &found.library;
    // What became of them stands in the journal, or is a receipt already.
    let finished = found.index.finished.iter();
    let finished = finished.filter(|it| is_end_by_damage(library, it));
    let known: BTreeSet<Seq> = finished.map(|it| it.seq).collect();
    let mut told = 0;
    for (seq, slot) in found.index.slots.iter(Seq(0)) {
        let parcel = ParcelSource::read(&**library, slot.root.0, slot.body.0);
        let Err(error) = parcel else {
            continue;
        };
        if slot.stand == Stand::Dead && (known.contains(&seq) || ended(seq)) {
            told += 1;
            continue;
        }
        report.problem(format!("message {}: {error}", seq.0));
    }
    if told > 0 {
        report.notes.push(format!(
            "{told} dead letters have no content any more; they ended for that (storage_damaged)"
        ));
    }
}

fn is_end_by_damage(library: &Library, it: &Finished) -> bool {
    let end = library.read(Kind::Envelope, it.end);
    end.is_ok_and(|(kind, payload)| {
        let entry = Entry::read(kind, &payload);
        matches!(entry, Some(Entry::Dead { cause, .. }) if cause == DeathCause::StorageDamaged)
    })
}
