//! How a store is opened: lock, record, journal, then its threads.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clerk::{Clerk, Desk, Papers};
use crate::disk::{Directory, Disk};
use crate::journal::files::Files;
use crate::journal::list::SegmentList;
use crate::journal::segment::Kind;
use crate::journal::task::Order;
use crate::journal::writer::{self, Answers, Syncs, Writer};
use crate::keeper::{self, Chore, Keeper};
use crate::live::Asks;
use crate::lock::{Lock, LockError};
use crate::pair::{self, PairError};
use crate::read_ahead::Ahead;
use crate::reclaim::Reclaim;
use crate::record::{Record, RecordError};
use crate::recovery::{JournalError, Recovery};
use crate::settings::Settings;
use crate::store::EmbeddedStore;

/// Called when answers are there.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it, or it cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The journal is damaged or cannot be read.
    #[error("the journal cannot be read: {0}")]
    Journal(#[from] JournalError),
    /// The record is damaged or cannot be read.
    #[error("the record cannot be opened: {0}")]
    Record(#[from] RecordError),
    /// The journal and the record do not belong together.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The disk.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// What was to be opened.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl OpenError {
    /// Whether something that was stored is lost or damaged: then what is left
    /// can be salvaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_damage(),
            Self::Record(error) => error.is_damage(),
            Self::Pair(_) => true,
            Self::Lock(_) | Self::Io { .. } => false,
        }
    }
}

/// What was found when a store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Live messages.
    pub messages: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Flows with live messages.
    pub flows: u64,
    /// Bytes of the journal that were read.
    pub bytes_read: u64,
    /// Bytes of a torn end that were cut off; nobody had heard of them.
    pub bytes_cut: u64,
    /// Messages whose receipts are still to be written.
    pub unrecorded: u64,
    /// Whether one of the two files of the segment list was damaged or missing
    /// and was written again.
    pub list_mended: bool,
    /// How long it took.
    pub took: Duration,
}

impl EmbeddedStore {
    /// Opens the store in a directory; makes it if there is none. `wake` is
    /// called, from any thread, when [`Store::complete`] has something new.
    ///
    /// [`Store::complete`]: outflow_ports::store::Store::complete
    pub fn open(dir: &Path, settings: Settings, wake: Wake) -> Result<(Self, Opened), OpenError> {
        let io = |error| OpenError::Io {
            path: dir.to_owned(),
            error,
        };
        std::fs::create_dir_all(dir).map_err(io)?;
        let lock = Lock::take(dir)?;
        let disk = Directory::open(&dir.join("journal")).map_err(io)?;
        let path = dir.join("record.sqlite");
        pair::before_opening(&disk, &path)?;
        let record = Record::open(&path, settings.record)?;
        let id = record.store_id()?;
        pair::before_reading(&disk, id, record.applied())?;
        let (mut store, opened) = Self::open_on(Arc::new(disk), record, settings, wake)?;
        if id == 0 {
            // Before anything is taken in, so that neither can go unnoticed.
            store.record.set_store_id(store.list.id())?;
        }
        store.list.pair().map_err(io)?;
        store.lock = Some(lock);
        Ok((store, opened))
    }

    /// Opens a store whose journal is on this disk.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        record: Record,
        settings: Settings,
        wake: Wake,
    ) -> Result<(Self, Opened), OpenError> {
        let random = || RandomState::new().build_hasher().finish();
        let begin = Begin {
            disk,
            record,
            settings,
            wake,
            seeds: [random(), random()],
        };
        let syncs = Syncs::beside().map_err(at_journal)?;
        let (mut store, opened, crew) = Self::open_idle(begin, syncs)?;
        if let Some(clerk) = &mut store.clerk {
            clerk.start(crew.desk).map_err(at_journal)?;
        }
        let keeper = keeper::start(crew.keeper, crew.chores).map_err(at_journal)?;
        let writer = writer::start(crew.writer, crew.orders).map_err(at_journal)?;
        store.threads = vec![writer, keeper];
        Ok((store, opened))
    }

    /// The same without threads: whoever opens it has the crew work.
    pub(crate) fn open_idle(begin: Begin, syncs: Syncs) -> Result<(Self, Opened, Crew), OpenError> {
        let Begin {
            disk,
            record,
            settings,
            wake,
            seeds: [seed, epoch],
        } = begin;
        let started = settings.boot.mono();
        clear_leftovers(&*disk).map_err(at_journal)?;
        let ahead = match &syncs {
            Syncs::Beside { .. } => Ahead::ByThread,
            Syncs::InTurn { .. } => Ahead::Never,
        };
        let mut found = Recovery::read(&*disk, &settings, record.applied(), ahead)?;
        found.in_doubt.write_again().map_err(at_journal)?;
        let list_mended = found.listed.contents.is_some() && !found.listed.faults.is_empty();
        let known = found.listed.contents.as_ref().map(|known| known.key_seed);
        let key_seed = found.key_seed.or(known).unwrap_or(seed);
        let listed = found.list(seed.rotate_left(32) ^ epoch | 1, key_seed);
        let counts_lost_at = listed.counts_lost.map(|lost| lost.at);
        if let Some(lost) = listed.counts_lost {
            found.index.forget_limits_before(lost.before);
        }
        let list = SegmentList::begin(Arc::clone(&disk), listed).map_err(at_journal)?;
        let list = Arc::new(list);
        let files = Arc::new(Files::new(
            disk,
            Arc::clone(&found.library),
            Arc::clone(&list),
            key_seed,
            epoch,
            Arc::clone(&settings.boot),
            [settings.envelope_segment_bytes, settings.body_segment_bytes],
        ));
        let library = Arc::clone(&found.library);
        let (clerk, desk) = Clerk::new(record.clone(), library, settings.record.receipts);
        let opened = Opened {
            list_mended,
            took: Duration::from_nanos(settings.boot.mono().since(started).0),
            ..Opened::of(&found)
        };
        clerk.hand_over(Papers {
            finished: std::mem::take(&mut found.index.finished),
            feedback: std::mem::take(&mut found.index.feedback),
            through: found.through,
        });
        let tidied = Arc::new(Mutex::default());
        let (chores, for_keeper) = channel();
        let keeper = Keeper::new(keeper::Setup {
            files: Arc::clone(&files),
            grace: settings.reading_grace,
            reserve_bytes: settings.reserve_bytes,
            tidied: Arc::clone(&tidied),
        });
        let answers = Arc::new(Answers::new(Arc::clone(&wake)));
        let setup = writer::Setup {
            files: Arc::clone(&files),
            boot: Arc::clone(&settings.boot),
            answers: Arc::clone(&answers),
            reserve_bytes: settings.reserve_bytes,
            used_spare: chores.clone(),
        };
        let last_given = found.last_seq();
        let (orders, for_writer) = channel();
        let crew = Crew {
            writer: Writer::new(setup, found.tail, syncs),
            orders: for_writer,
            keeper,
            chores: for_keeper,
            desk,
        };
        let store = Self {
            index: found.index,
            orders: Some(orders),
            answers,
            generation: 1,
            outstanding: 0,
            opening: Default::default(),
            pages: Vec::new(),
            last_given,
            last_record: found.last_record,
            key_seed: files.key_seed,
            // The mark in the journal may have gone with its segment.
            keys_moved: found.keys_moved || record.has_keys(),
            clocks: Default::default(),
            through: found.through,
            commit_times: Vec::new(),
            asks: Arc::new(Asks::new(wake)),
            reclaim: Reclaim::new(found.envelopes, &found.bodies, chores, tidied),
            library: found.library,
            threads: Vec::new(),
            clerk: Some(clerk),
            record,
            list,
            counts_lost_at,
            settings,
            lock: None,
        };
        Ok((store, opened, crew))
    }
}

/// What a store is opened with.
pub(crate) struct Begin {
    pub disk: Arc<dyn Disk>,
    pub record: Record,
    pub settings: Settings,
    pub wake: Wake,
    /// What keys are hashed with, if that is not known yet, and the first epoch
    /// of new segments.
    pub seeds: [u64; 2],
}

/// Who works for a store, each with what is handed over.
pub(crate) struct Crew {
    pub writer: Writer,
    pub orders: Receiver<Order>,
    pub keeper: Keeper,
    pub chores: Receiver<Chore>,
    pub desk: Desk,
}

impl Opened {
    fn of(found: &Recovery) -> Self {
        let index = &found.index;
        let flows = index.flows.iter().flatten();
        Self {
            messages: (index.slots.len() - index.dead) as u64,
            dead_letters: index.dead as u64,
            flows: flows.filter(|it| it.live > 0).count() as u64,
            bytes_read: found.bytes_read,
            bytes_cut: found.bytes_cut,
            unrecorded: index.finished.len() as u64,
            list_mended: false,
            took: Duration::ZERO,
        }
    }
}

fn at_journal(error: io::Error) -> OpenError {
    OpenError::Io {
        path: PathBuf::from("the journal"),
        error,
    }
}

/// Removes what a crash left half made. Spares are made anew: nobody knows
/// whether they were whole.
fn clear_leftovers(disk: &dyn Disk) -> io::Result<()> {
    for name in disk.list()? {
        let is_ours = name.ends_with(".spare") || name.ends_with(".rewrite");
        if is_ours && Kind::parse(&name).is_none() {
            disk.remove(&name)?;
        }
    }
    // Also if none was: a process that was killed may have named a segment and
    // not synced that name, and what is acknowledged from now on may go there.
    disk.sync_names()
}
