//! Sees what the sandbox takes, and counts for itself.
//!
//! The limits are checked with meters that share no code with the engine, at
//! the times at which messages reached the sandbox; what was delivered is what
//! arrived there, not what the server says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use outflow_core::limit::spec::LimitSpec;
use outflow_core::message::Seq;
use outflow_core::time::Nanos;
use outflow_simulator::meter::{Meter, Tolerance};
use outflow_transport_sandbox::{Kept, SandboxHandle};

use super::scenery::PROVIDERS;

/// Arrivals that are remembered one by one; older ones are only counted.
const SEEN_MAX: usize = 1_000_000;
/// Violations that are described.
const EXCESSES_MAX: usize = 10;

/// What arrived at one provider.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// The limit as it was written.
    pub limit: &'static str,
    meter: Meter,
    /// How many messages.
    pub count: u64,
    /// How often the limit did not hold, in words.
    pub excesses: Vec<String>,
}

#[derive(Debug, Default)]
struct Seen {
    providers: BTreeMap<String, Arrivals>,
    /// When each message first arrived, and how often.
    messages: BTreeMap<Seq, (Instant, u32)>,
    duplicates: u64,
}

/// Sees what the sandbox takes. Clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Seen>>);

impl Witness {
    /// Watches a sandbox from now on.
    pub fn watch(sandbox: &SandboxHandle) -> Self {
        let witness = Self::default();
        {
            let mut seen = witness.lock();
            for provider in PROVIDERS {
                let spec = LimitSpec::parse(provider.limit).expect("the limits here are limits");
                let arrivals = Arrivals {
                    limit: provider.limit,
                    meter: Meter::new(Nanos::ZERO, &spec, Tolerance::default()),
                    count: 0,
                    excesses: Vec::new(),
                };
                seen.providers.insert(provider.destination(), arrivals);
            }
        }
        let watching = witness.clone();
        sandbox.watch(move |kept| watching.lock().see(kept));
        witness
    }

    /// What arrived where so far.
    pub fn arrivals(&self) -> BTreeMap<String, Arrivals> {
        self.lock().providers.clone()
    }

    /// When a message first arrived, if it did.
    pub fn arrived(&self, seq: Seq) -> Option<Instant> {
        self.lock().messages.get(&seq).map(|(at, _)| *at)
    }

    /// Messages that arrived, and how many arrivals were repeated.
    pub fn counts(&self) -> (u64, u64) {
        let seen = self.lock();
        let all = seen.providers.values().map(|arrivals| arrivals.count);
        (all.sum::<u64>() - seen.duplicates, seen.duplicates)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn see(&mut self, kept: &Kept) {
        let provider = self.providers.get_mut(&kept.destination.to_string());
        if let Some(arrivals) = provider {
            arrivals.count += 1;
            let taken = arrivals.meter.take(Nanos(kept.mono.0), 1);
            if let Err(excess) = taken
                && arrivals.excesses.len() < EXCESSES_MAX
            {
                arrivals.excesses.push(excess);
            }
        }
        let (_, times) = self
            .messages
            .entry(kept.seq)
            .or_insert_with(|| (Instant::now(), 0));
        *times += 1;
        self.duplicates += u64::from(*times > 1);
        if self.messages.len() > SEEN_MAX {
            self.messages.pop_first();
        }
    }
}
