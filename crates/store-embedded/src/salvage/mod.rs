//! Saves what is left of a damaged store: writes a new directory with all that
//! can be read and names what cannot, and leaves the old one as it is.
//!
//! Frames keep their places, so that whatever refers to them stays good; what is
//! lost between them is filled. Bodies are recognised by their own checks. A
//! message without its body, or of which nobody knows to whom it belongs, is
//! not sent: it ends as a dead letter.
//!
//! Reading order: this, `envelopes` with `mend`, `bodies`, `ends`, `records`.

mod bodies;
mod ends;
mod envelopes;
mod mend;
mod records;

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::boot::{BootClock, SystemBoot};
use crate::disk::{Directory, Disk, read_range};
use crate::journal::list::{self, CleanStop, Contents, CountsLost, SegmentList};
use crate::journal::place::position;
use crate::lock::{Lock, LockError};
use crate::private;
use crate::read_ahead::Ahead;
use crate::record::RecordError;
use crate::recovery::{JournalError, Recovery};
use crate::settings::Settings;
use crate::shown::Shown;

/// The list of what is lost, in the new directory.
pub const LIST: &str = "salvaged.txt";
/// What is not copied: it belongs to a running server, or is made anew.
const LEFT_BEHIND: [&str; 6] = [
    "journal",
    "record.sqlite",
    "record.sqlite-wal",
    "record.sqlite-shm",
    "lock",
    "address",
];
/// Bytes that are read at once from a disk that may not give all.
const BLOCK: u64 = 4_096;
/// Numbers of messages in one line of the list.
const NAMED_MAX: usize = 1_000;

/// Why nothing can be salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// There is no store.
    #[error("there is no store in {0}")]
    NoStore(String),
    /// Something is there already.
    #[error("{0} is not empty: name a directory that does not exist yet")]
    NotEmpty(String),
    /// A later release wrote it.
    #[error("{0}")]
    Newer(String),
    /// A process has it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The new journal.
    #[error("the new journal: {0}")]
    Journal(#[from] JournalError),
    /// The new record.
    #[error("the new record: {0}")]
    Record(#[from] RecordError),
    /// The disk.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// What was to be read or written.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// What was saved, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Live messages that are whole.
    pub messages: u64,
    /// Dead letters, with those that are it only because something of them is
    /// lost.
    pub dead_letters: u64,
    /// Messages that ended because their content, or what they belong to, is
    /// lost.
    pub ended: Vec<u64>,
    /// Messages that were accepted and cannot be found. Some of them may have
    /// been settled before.
    pub missing: BTreeSet<u64>,
    /// Whether counts of limits may be lost: limits with windows count as used
    /// up at the next start.
    pub counts_lost: bool,
    /// What is lost, in words, by file.
    pub lost: Vec<String>,
}

impl Salvaged {
    fn lose(&mut self, text: impl Into<String>) {
        self.lost.push(text.into());
    }

    /// What is lost, as a text for people.
    pub fn list(&self) -> String {
        let mut text = String::new();
        for line in &self.lost {
            text.push_str(line);
            text.push('\n');
        }
        let mut name = |what: &str, seqs: &mut dyn Iterator<Item = &u64>| {
            for seq in seqs.take(NAMED_MAX) {
                text.push_str(&format!(
                    "message {seq} (id ends with {seq:012x}): {what}\n"
                ));
            }
        };
        name(
            "its content is lost; it is a dead letter now",
            &mut self.ended.iter(),
        );
        name(
            "its entry is lost; it may have been settled before",
            &mut self.missing.iter(),
        );
        let more = self.ended.len().saturating_sub(NAMED_MAX)
            + self.missing.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            text.push_str(&format!("and {more} more messages\n"));
        }
        text
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> SalvageError {
    let path = path.to_owned();
    |error| SalvageError::Io { path, error }
}

/// Writes a new directory with all that can be read of an old one.
pub fn salvage(old: &Path, new: &Path) -> Result<Salvaged, SalvageError> {
    let (journal, record) = (old.join("journal"), old.join("record.sqlite"));
    if !journal.is_dir() && !record.exists() {
        return Err(SalvageError::NoStore(old.display().to_string()));
    }
    let _lock = Lock::look(old)?;
    make_private(new)?;
    let to = new.join("journal");
    let to: Arc<dyn Disk> = Arc::new(Directory::open(&to).map_err(at(&to))?);
    let mut salvaged = Salvaged::default();
    let first =
        save_journal(&Shown::new(&journal), &to, &mut salvaged).map_err(|error| match error {
            SalvageError::Io { error, .. } => at(new)(error),
            other => other,
        })?;
    let applied = records::save(old, new, &first, &mut salvaged)?;
    let stop = CleanStop {
        through: first.through,
        applied,
    };
    first.list.pair().map_err(at(new))?;
    first.list.stop(stop).map_err(at(new))?;
    save_others(old, new, &mut salvaged)?;
    let list = new.join(LIST);
    fs::write(&list, salvaged.list()).map_err(at(&list))?;
    private::all_in(new).map_err(at(new))?;
    fs::File::open(new)
        .and_then(|dir| dir.sync_all())
        .map_err(at(new))?;
    Ok(salvaged)
}

fn make_private(new: &Path) -> Result<(), SalvageError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    match builder.mode(0o700).create(new) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(at(new))?,
    }
    let mut entries = fs::read_dir(new).map_err(at(new))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(SalvageError::NotEmpty(new.display().to_string())),
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish() | 1
}

/// The journal of the new store.
struct NewJournal {
    list: SegmentList,
    /// The first position that it has.
    first: u64,
    through: u64,
    /// Of another salvaged store, or the old one.
    was_paired: bool,
}

fn save_journal(
    from: &dyn Disk,
    to: &Arc<dyn Disk>,
    salvaged: &mut Salvaged,
) -> Result<NewJournal, SalvageError> {
    let io = at(Path::new("the journal"));
    let old = list::load(from).contents;
    let copied = envelopes::save(from, old.as_ref(), &**to, salvaged)?;
    let now = SystemBoot.wall();
    let end = position(copied.last + 1, 0);
    salvaged.counts_lost = copied.is_damaged;
    let before = old.as_ref().and_then(|old| old.counts_lost);
    let lost = CountsLost {
        at: now,
        before: end,
    };
    let contents = Contents {
        id: random(),
        key_seed: copied.key_seed,
        counts_lost: copied.is_damaged.then_some(lost).or(before),
        segments: copied.segments,
        ..Contents::default()
    };
    let list = SegmentList::begin(Arc::clone(to), contents).map_err(io)?;
    let found = Recovery::read(&**to, &Settings::default(), 0, Ahead::ByThread)?;
    let lost = bodies::save(from, &found.index, &found.library, &**to, &list, salvaged)?;
    let through = ends::write(&found, &**to, &copied.end, lost, salvaged)?;
    Ok(NewJournal {
        list,
        first: position(copied.first, 0),
        through,
        was_paired: old.is_some_and(|old| old.is_paired),
    })
}

/// A file, with zeros for what the disk does not give.
fn read_all(disk: &dyn Disk, name: &str, salvaged: &mut Salvaged) -> io::Result<Vec<u8>> {
    let file = disk.open(name)?;
    let size = file.size()?;
    if let Ok(bytes) = read_range(&*file, 0, size) {
        return Ok(bytes);
    }
    let mut bytes = Vec::new();
    for start in (0..size).step_by(BLOCK as usize) {
        let end = (start + BLOCK).min(size);
        match read_range(&*file, start, end) {
            Ok(block) => bytes.extend_from_slice(&block),
            Err(error) => salvaged.lose(format!("{name}: bytes {start} to {end}: {error}")),
        }
        bytes.resize(end as usize, 0);
    }
    Ok(bytes)
}

fn write_file(disk: &dyn Disk, name: &str, parts: [&[u8]; 2]) -> io::Result<u64> {
    let file = disk.create(name)?;
    let mut at = 0;
    for part in parts {
        file.write_at(part, at)?;
        at += part.len() as u64;
    }
    file.sync()?;
    disk.sync_names()?;
    Ok(at)
}

/// Tokens and names that stand beside the store.
fn save_others(old: &Path, new: &Path, salvaged: &mut Salvaged) -> Result<(), SalvageError> {
    for entry in fs::read_dir(old).map_err(at(old))? {
        let entry = entry.map_err(at(old))?;
        let name = entry.file_name();
        let is_left = LEFT_BEHIND.iter().any(|it| name.to_str() == Some(it));
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_left || !is_file || name.to_str() == Some(LIST) {
            continue;
        }
        if let Err(error) = fs::copy(entry.path(), new.join(&name)) {
            salvaged.lose(format!("{}: {error}", name.to_string_lossy()));
        }
    }
    Ok(())
}
