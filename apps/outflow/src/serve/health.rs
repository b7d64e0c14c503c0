//! Whether the server can do its work, and why not.
//!
//! What the node says of the store is remembered, and the free space of the
//! disk is looked at whenever somebody asks, so that readiness comes back by
//! itself when there is room again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use outflow_api::Readiness;
use outflow_core::engine::action::Alert;
use outflow_core::retry::schedule::DeathCause;
use outflow_telemetry::catalogue::{Event, IntakeRefusal};
use outflow_telemetry::sink::Sink;

/// How long a refused batch counts, if nothing else is heard.
const MEMORY_MS: u64 = 5_000;
const NEVER: u64 = u64::MAX;

/// What is known of the server's state.
#[derive(Debug)]
pub struct Health {
    data_dir: PathBuf,
    reserve_bytes: u64,
    started: Instant,
    store_failing: AtomicBool,
    closing: AtomicBool,
    dns_away: AtomicBool,
    ledger_away: AtomicBool,
    /// Messages whose content was found damaged since the start.
    damaged: AtomicU64,
    /// When the store last did not take messages, in milliseconds since the
    /// start.
    refused_ms: AtomicU64,
}

impl Health {
    /// All is well with a server that keeps its data here and wants so much
    /// room on the disk.
    pub fn new(data_dir: PathBuf, reserve_bytes: u64) -> Self {
        Self {
            data_dir,
            reserve_bytes,
            started: Instant::now(),
            store_failing: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            dns_away: AtomicBool::new(false),
            ledger_away: AtomicBool::new(false),
            damaged: AtomicU64::new(0),
            refused_ms: AtomicU64::new(NEVER),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(NEVER - 1)
    }

    fn free_bytes(&self) -> Option<u64> {
        let stat = rustix::fs::statvfs(&self.data_dir).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl Readiness for Health {
    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.closing.load(Relaxed) {
            reasons.push("the server is shutting down".to_owned());
        }
        if self.store_failing.load(Relaxed) {
            reasons.push("the store takes no records: nothing is sent until it does".to_owned());
        }
        let refused = self.refused_ms.load(Relaxed);
        if refused != NEVER && self.now_ms().saturating_sub(refused) < MEMORY_MS {
            reasons.push("the store did not take messages a moment ago".to_owned());
        }
        match self.free_bytes() {
            Some(free) if free < self.reserve_bytes => reasons.push(format!(
                "the disk is full: {} MiB are free, {} are kept for what is under way \
                 (store.reserve_size)",
                free >> 20,
                self.reserve_bytes >> 20,
            )),
            Some(_) => {}
            None => reasons.push("the data directory cannot be read".to_owned()),
        }
        reasons
    }

    fn notes(&self) -> Vec<String> {
        let dns = "no DNS server answers: domains that are not well known count as their own \
                   destination, and mail straight to their servers waits";
        let ledger = "the ledger is away: limits that are shared over the fleet go on as their \
                      policies say (when_away)";
        let notes = [(&self.dns_away, dns), (&self.ledger_away, ledger)];
        let notes = notes
            .into_iter()
            .filter(|(is_away, _)| is_away.load(Relaxed));
        let mut notes: Vec<String> = notes.map(|(_, note)| note.to_owned()).collect();
        let damaged = self.damaged.load(Relaxed);
        if damaged > 0 {
            notes.push(format!(
                "the stored content of {damaged} messages is damaged: they are dead letters \
                 (storage_damaged); `outflow store check` names what else is, once the server is \
                 stopped"
            ));
        }
        notes
    }
}

impl Sink for Health {
    fn emit(&self, event: &Event<'_>) {
        match event {
            Event::Alert(Alert::StoreFailing) => self.store_failing.store(true, Relaxed),
            Event::Alert(Alert::StoreRecovered) => self.store_failing.store(false, Relaxed),
            Event::Accepted { .. } => self.refused_ms.store(NEVER, Relaxed),
            Event::IntakeRefused {
                reason: IntakeRefusal::NotStored,
                ..
            } => self.refused_ms.store(self.now_ms(), Relaxed),
            Event::Died { letter, .. } if letter.cause == DeathCause::StorageDamaged => {
                self.damaged.fetch_add(1, Relaxed);
            }
            Event::Dns { is_away } => self.dns_away.store(*is_away, Relaxed),
            Event::Ledger { is_away, .. } => self.ledger_away.store(*is_away, Relaxed),
            Event::Stopping => self.closing.store(true, Relaxed),
            _ => {}
        }
    }
}
