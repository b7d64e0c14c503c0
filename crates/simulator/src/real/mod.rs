//! The store that production has, on a simulated disk.
//!
//! Its writer, keeper, clerk and record are threads in production. Here they are
//! stepped in virtual time, in an order that a seed decides: what is due at once
//! goes in any order, and the keeper works between two operations of the writer
//! and the other way round. A crash kills the process, in the middle of a commit
//! if chance has it, and may take the power along.
//!
//! Reading order: [`Faults`], `clock`, `schedule` (who works when), this.

mod clock;
mod faults;
mod schedule;

use std::fmt;
use std::sync::Arc;

use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Now};
use outflow_ports::parcel::ParcelRef;
use outflow_ports::store::{Found, Recovered, Store, StoreDone, StoreWork};
use outflow_store_embedded::boot::BootClock;
use outflow_store_embedded::disk::simulated::{Faulty, Mood, Platter, Shares};
use outflow_store_embedded::stepped::{Broken, RecordMemory};
use outflow_store_embedded::{EmbeddedStore, Settings};

use self::clock::StoreClock;
pub use self::faults::Faults;
use self::schedule::Running;

/// Operations of the disk within which a crash in the middle of something comes.
const CRASH_STEPS: u64 = 12;
/// The same of a start that is cut short.
const START_STEPS: u64 = 30;
/// So often in a row at most a start is cut short.
const CUT_SHORT_MAX: u32 = 3;
/// So often a start is tried before the disk is given up.
const STARTS_MAX: u32 = 20;

/// The real store of one node, its disk and its record.
pub struct RealStore {
    platter: Platter,
    mood: Arc<Mood>,
    record: Option<RecordMemory>,
    clock: Arc<StoreClock>,
    settings: Settings,
    faults: Faults,
    entropy: Entropy,
    /// The process, while it runs.
    running: Option<Running>,
    ends: Vec<(Seq, State)>,
    problems: Vec<String>,
    broken: Option<Broken>,
}

impl fmt::Debug for RealStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealStore").finish_non_exhaustive()
    }
}

impl RealStore {
    /// A store on an empty disk that is not running yet. Its clock is that of
    /// the calls.
    pub fn new(settings: Settings, faults: Faults, seed: u64) -> Self {
        let clock = Arc::new(StoreClock::default());
        let platter = Platter::default();
        let mood = Mood::of(platter.failing());
        let mut store = Self {
            mood: Arc::new(mood),
            platter,
            record: None,
            settings: Settings {
                boot: Arc::clone(&clock) as Arc<dyn BootClock>,
                ..settings
            },
            clock,
            faults,
            entropy: Entropy(seed),
            running: None,
            ends: Vec::new(),
            problems: Vec::new(),
            broken: None,
        };
        store.new_record();
        store
    }

    fn new_record(&mut self) {
        match RecordMemory::new() {
            Ok(record) => self.record = Some(record),
            Err(error) => self
                .problems
                .push(format!("no record can be made: {error}")),
        }
    }

    /// Breaks its writer.
    pub fn break_on_purpose(&mut self, broken: Broken) {
        self.broken = Some(broken);
    }

    /// How the disk feels.
    pub fn mood(&self) -> &Mood {
        &self.mood
    }

    /// The disk.
    pub fn platter(&self) -> &Platter {
        &self.platter
    }

    /// The messages that were done with since last asked. After a start some
    /// come again.
    pub fn take_ends(&mut self) -> Vec<(Seq, State)> {
        std::mem::take(&mut self.ends)
    }

    /// What must not happen and did, since last asked.
    pub fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// The process ends in peace: everything is written before.
    pub fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.finish();
        }
        self.die(false);
    }

    /// The process dies, perhaps in the middle of something, and perhaps the
    /// machine loses power.
    pub fn crash(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        if Faults::strikes(self.faults.torn_permille, &mut self.entropy) {
            self.mood.die_in(self.entropy.between(1, CRASH_STEPS));
            running.hurry(&mut self.entropy);
        }
        let power = Faults::strikes(self.faults.power_permille, &mut self.entropy);
        self.die(power);
    }

    fn die(&mut self, power: bool) {
        self.mood
            .dead
            .store(true, std::sync::atomic::Ordering::SeqCst);
        self.running = None;
        self.mood.reborn();
        if power {
            self.platter.lose_power(&mut self.entropy);
            if self.faults.reboots {
                self.clock.reboot();
            }
        }
    }

    /// Opens the store; a start may be cut short and is tried again. A disk that
    /// cannot be opened, though nothing is wrong with it, is a finding; then a
    /// new one is put in.
    fn open(&mut self, now: Mono) {
        let mut cut_short = 0;
        for start in 0..STARTS_MAX {
            let is_ill = start < STARTS_MAX / 2 && !self.faults.is_healed(now);
            let shares = if is_ill {
                self.faults.shares
            } else {
                Shares::default()
            };
            self.mood.fail(shares, self.entropy.draw());
            let cut = is_ill
                && cut_short < CUT_SHORT_MAX
                && Faults::strikes(self.faults.cut_short_permille, &mut self.entropy);
            if cut {
                cut_short += 1;
                self.mood.die_in(self.entropy.between(1, START_STEPS));
            }
            let seed = self.entropy.draw();
            let Some(record) = &self.record else {
                return;
            };
            let disk = Faulty {
                inner: Arc::new(self.platter.clone()),
                mood: Arc::clone(&self.mood),
            };
            let opened =
                EmbeddedStore::open_stepped(Arc::new(disk), record, self.settings.clone(), seed);
            match opened {
                Ok((store, _, parts)) if !cut => {
                    if let Some(broken) = self.broken {
                        parts.writer.break_on_purpose(broken);
                    }
                    self.running = Some(Running::new(store, parts, now));
                    return;
                }
                Err(error) if !cut && !is_ill => {
                    self.problems
                        .push(format!("the store does not open: {error}"));
                    break;
                }
                other => drop(other),
            }
            // It was up for a moment, or is not up at all.
            let power = cut && self.entropy.between(0, 1) == 0;
            self.die(power);
        }
        self.platter = Platter::default();
        self.mood = Arc::new(Mood::of(self.platter.failing()));
        self.new_record();
        let disk = Arc::new(self.platter.clone());
        if let Some(record) = &self.record
            && let Ok((store, _, parts)) =
                EmbeddedStore::open_stepped(disk, record, self.settings.clone(), 0)
        {
            self.running = Some(Running::new(store, parts, now));
        }
    }

    /// What is due is done.
    fn advance(&mut self, now: &Now) {
        self.clock.set(now);
        let is_full = self.faults.is_full(now.mono);
        self.mood
            .full
            .store(is_full, std::sync::atomic::Ordering::SeqCst);
        if self.faults.is_healed(now.mono) && self.faults.shares != Shares::default() {
            self.faults.shares = Shares::default();
            self.mood.fail(Shares::default(), 0);
        }
        if let Some(running) = &mut self.running {
            running.advance(now.mono, &self.faults, &self.mood, &mut self.entropy);
        }
    }

    fn store(&self) -> Option<&EmbeddedStore> {
        self.running.as_ref().map(|running| &running.store)
    }
}

impl Store for RealStore {
    fn recover(&mut self, now: &Now) -> Recovered {
        self.clock.set(now);
        self.open(now.mono);
        let Some(running) = &mut self.running else {
            return Recovered::default();
        };
        let recovered = running.store.recover(now);
        self.ends
            .extend(running.plan(now.mono, &self.faults, &mut self.entropy));
        recovered
    }

    fn submit(&mut self, now: &Now, work: StoreWork) {
        self.clock.set(now);
        if let Some(running) = &mut self.running {
            running.store.submit(now, work);
            self.ends
                .extend(running.plan(now.mono, &self.faults, &mut self.entropy));
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        self.advance(now);
        if let Some(running) = &mut self.running {
            running.store.complete(now, done);
            self.ends
                .extend(running.plan(now.mono, &self.faults, &mut self.entropy));
        }
    }

    fn next_completion(&self) -> Mono {
        self.running.as_ref().map_or(Mono::NEVER, Running::next)
    }

    fn last_seq(&self) -> Seq {
        self.store().map_or(Seq(0), Store::last_seq)
    }

    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64> {
        self.store()?.ahead(flow, seq)
    }

    fn parcel(&self, seq: Seq) -> Option<ParcelRef> {
        self.store()?.parcel(seq)
    }

    fn find(&self, seq: Seq) -> Option<Found> {
        self.store()?.find(seq)
    }

    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>> {
        self.store()?.flow_key(flow)
    }

    fn scan(&self, from: Seq, looks: usize, found: &mut dyn FnMut(Found)) -> Option<Seq> {
        self.store()?.scan(from, looks, found)
    }

    fn deferred(&self, found: &mut dyn FnMut(FlowId, u64)) {
        if let Some(store) = self.store() {
            store.deferred(found);
        }
    }
}

#[cfg(test)]
mod tests;
