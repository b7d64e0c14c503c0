//! A store on some disk, with virtual clocks and a process that can die.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::conformance::store::Harness;

use super::scratch::Scratch;
use crate::boot::BootClock;
use crate::disk::simulated::Platter;
use crate::disk::simulated::{Faulty, Mood};
use crate::disk::{Directory, Disk};
use crate::open::{OpenError, Wake};
use crate::record::{Record, RecordSettings};
use crate::settings::Settings;
use crate::store::EmbeddedStore;

/// A new year, so that wall clocks look like wall clocks.
const NEW_YEAR: i64 = 1_767_225_600_000_000_000;
/// No answer of the journal takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    pub fn mono(&self) -> Mono {
        Mono(self.0.load(SeqCst))
    }
}

impl BootClock for Clock {
    fn id(&self) -> u64 {
        7
    }

    fn time(&self) -> Nanos {
        Nanos(self.mono().0)
    }

    fn wall(&self) -> Wall {
        Wall(NEW_YEAR) + Nanos(self.mono().0)
    }

    fn mono(&self) -> Mono {
        self.mono()
    }
}

/// What a store calls when it has something to say.
#[derive(Default)]
pub struct Bell {
    rung: Mutex<u64>,
    ringing: Condvar,
}

impl Bell {
    fn wait_beyond(&self, heard: u64) -> u64 {
        let rung = self.rung.lock().unwrap();
        let silent = |rung: &mut u64| *rung <= heard;
        let (rung, timeout) = self
            .ringing
            .wait_timeout_while(rung, PATIENCE, silent)
            .unwrap();
        assert!(!timeout.timed_out(), "the journal does not answer");
        *rung
    }
}

pub struct Rig {
    pub store: Option<EmbeddedStore>,
    pub disk: Faulty,
    pub memory: Option<Platter>,
    pub clock: Arc<Clock>,
    pub settings: Settings,
    pub entropy: Entropy,
    pub scratch: Scratch,
    /// Whether it is opened with its record, as a server does; its disk has no
    /// moods then.
    pub is_paired: bool,
    bell: Arc<Bell>,
    heard: u64,
}

pub fn small(clock: &Arc<Clock>) -> Settings {
    // The record goes by the machine's clock, to which this new year may be
    // long ago.
    let ages = Nanos::from_secs(100 * 365 * 86_400);
    Settings {
        record: RecordSettings {
            receipts_for: ages,
            dead_letters_for: ages,
            ..RecordSettings::default()
        },
        envelope_segment_bytes: 32 << 10,
        body_segment_bytes: 64 << 10,
        slack_bytes: 64 << 10,
        reserve_bytes: 1 << 20,
        boot: Arc::clone(clock) as Arc<dyn BootClock>,
        ..Settings::default()
    }
}

impl Rig {
    pub fn on_directory() -> Self {
        let scratch = Scratch::new();
        let disk = Directory::open(&scratch.path().join("journal")).unwrap();
        Self::new(scratch, Arc::new(disk), None, 0)
    }

    pub fn on_memory(seed: u64) -> Self {
        let memory = Platter::default();
        let disk = Arc::new(memory.clone());
        Self::new(Scratch::in_memory(), disk, Some(memory), seed)
    }

    fn new(scratch: Scratch, inner: Arc<dyn Disk>, memory: Option<Platter>, seed: u64) -> Self {
        let clock = Arc::new(Clock(AtomicU64::new(Nanos::from_secs(10).0)));
        let mut rig = Self {
            store: None,
            disk: Faulty {
                inner,
                mood: Arc::new(Mood::default()),
            },
            memory,
            settings: small(&clock),
            clock,
            entropy: Entropy(seed),
            scratch,
            is_paired: false,
            bell: Arc::default(),
            heard: 0,
        };
        rig.open().unwrap();
        rig
    }

    /// A store in this directory, with its record.
    pub fn paired(scratch: Scratch) -> Result<Self, OpenError> {
        let clock = Arc::new(Clock(AtomicU64::new(Nanos::from_secs(10).0)));
        let mut rig = Self {
            store: None,
            disk: Faulty {
                inner: Arc::new(Platter::default()),
                mood: Arc::new(Mood::default()),
            },
            memory: None,
            settings: Settings {
                envelope_segment_bytes: 8 << 10,
                ..small(&clock)
            },
            clock,
            entropy: Entropy(0),
            scratch,
            is_paired: true,
            bell: Arc::default(),
            heard: 0,
        };
        rig.open()?;
        Ok(rig)
    }

    pub fn open(&mut self) -> Result<crate::Opened, OpenError> {
        if self.is_paired {
            let wake = self.wake();
            let (dir, settings) = (self.scratch.path(), self.settings.clone());
            let (store, opened) = EmbeddedStore::open(dir, settings, wake)?;
            self.store = Some(store);
            return Ok(opened);
        }
        let record = Record::open(
            &self.scratch.path().join("record.sqlite"),
            self.settings.record,
        )?;
        let wake = self.wake();
        let disk = Arc::new(self.disk.clone());
        let (store, opened) = EmbeddedStore::open_on(disk, record, self.settings.clone(), wake)?;
        self.store = Some(store);
        Ok(opened)
    }

    fn wake(&self) -> Wake {
        let bell = Arc::clone(&self.bell);
        Arc::new(move || {
            *bell.rung.lock().unwrap() += 1;
            bell.ringing.notify_all();
        })
    }

    /// The process is killed; what it wrote stays in the machine's memory.
    pub fn kill(&mut self) {
        self.disk.mood.dead.store(true, SeqCst);
        self.store = None;
        self.disk.mood.dead.store(false, SeqCst);
        self.disk.mood.dies_at.store(0, SeqCst);
    }

    /// The process dies; with it, if there is one, the power.
    pub fn die(&mut self) {
        self.kill();
        if let Some(memory) = &self.memory {
            memory.lose_power(&mut self.entropy);
        }
    }

    /// What it wrote is gone: the next start is the first one.
    pub fn forget_all(&mut self) {
        self.kill();
        let memory = Platter::default();
        self.disk.inner = Arc::new(memory.clone());
        self.memory = Some(memory);
        self.scratch = Scratch::in_memory();
    }

    /// Waits until the journal has answered something, if it is to.
    pub fn settle(&mut self) {
        if self.store.as_ref().is_some_and(EmbeddedStore::is_busy) {
            self.heard = self.bell.wait_beyond(self.heard);
        }
    }
}

impl Harness for Rig {
    type Store = EmbeddedStore;

    fn store(&mut self) -> &mut EmbeddedStore {
        self.store.as_mut().unwrap()
    }

    fn now(&self) -> Now {
        Now {
            mono: self.clock.mono(),
            wall: self.clock.wall(),
            entropy: Entropy(0),
        }
    }

    fn advance(&mut self, to: Mono) {
        self.settle();
        let to = to.0.next_multiple_of(10_000);
        self.clock.0.fetch_max(to, SeqCst);
    }

    fn crash(&mut self) {
        self.die();
        self.open().unwrap();
    }

    fn fail_commits(&mut self, failing: bool) {
        self.disk.mood.failing.store(failing, SeqCst);
    }

    fn fill_disk(&mut self, full: bool) {
        self.disk.mood.full.store(full, SeqCst);
    }
}
