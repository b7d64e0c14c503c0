//! Looking into the sandbox and changing what it does, from any thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::limit::Fill;
use outflow_core::limit::token_bucket::TokenBucket;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::time::Mono;

use crate::behaviour::Behaviour;
use crate::kept::{Kept, Last};

/// What an account did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions that were opened.
    pub sessions: u64,
    /// Messages that were taken.
    pub taken: u64,
    /// Messages that failed as the behaviour says.
    pub failed: u64,
    /// Messages above the hidden rate.
    pub throttled: u64,
}

/// One account, as the sandbox knows it.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub behaviour: Behaviour,
    /// The hidden rate's bucket, made when it is first used.
    pub bucket: Option<TokenBucket>,
    pub counts: Counts,
}

impl Account {
    /// Whether the hidden rate lets one more pass.
    pub fn admits(&mut self, now: Mono) -> bool {
        let Some(hidden) = &self.behaviour.hidden_rate else {
            return true;
        };
        let (rate, burst) = (hidden.rate, hidden.burst.max(1));
        let bucket = self
            .bucket
            .get_or_insert_with(|| TokenBucket::new(rate, burst, now, Fill::Full));
        let fits = bucket.fits(now, outflow_core::limit::Need::whole(1));
        if fits {
            bucket.take(now, 1);
        }
        fits
    }
}

/// Sees every message that is taken.
pub(crate) type Watch = Box<dyn FnMut(&Kept) + Send>;

/// What handles and the transport share.
pub(crate) struct Shared {
    pub accounts: BTreeMap<Name, Account>,
    pub last: Last,
    pub watch: Option<Watch>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub fn account(&mut self, name: &Name) -> &mut Account {
        if !self.accounts.contains_key(name) {
            self.accounts.insert(name.clone(), Account::default());
        }
        self.accounts.get_mut(name).expect("it was just put there")
    }
}

/// A way into the sandbox. Clones lead to the same one.
#[derive(Clone, Debug)]
pub struct SandboxHandle {
    shared: Arc<Mutex<Shared>>,
}

impl SandboxHandle {
    pub(crate) fn new(kept_max: usize) -> Self {
        let shared = Shared {
            accounts: BTreeMap::new(),
            last: Last::new(kept_max),
            watch: None,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        // Nothing is half done when a caller's thread dies in here.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An account behaves like this from now on. Answers that are due already
    /// stay as they are; a hidden rate starts full.
    pub fn set(&self, account: &Name, behaviour: Behaviour) {
        let mut shared = self.lock();
        let account = shared.account(account);
        account.behaviour = behaviour;
        account.bucket = None;
    }

    /// How an account behaves.
    pub fn behaviour(&self, account: &Name) -> Behaviour {
        let shared = self.lock();
        let account = shared.accounts.get(account);
        account.map_or_else(Behaviour::default, |account| account.behaviour.clone())
    }

    /// Calls `watch` with every message that is taken from now on, before its
    /// sender hears of it. The transport waits for it.
    pub fn watch(&self, watch: impl FnMut(&Kept) + Send + 'static) {
        self.lock().watch = Some(Box::new(watch));
    }

    /// Forgets an account: its behaviour and its counts.
    pub fn forget(&self, account: &Name) {
        self.lock().accounts.remove(account);
    }

    /// The last messages that were taken, newest first, at most `max`.
    pub fn last(&self, max: usize) -> Vec<Kept> {
        self.lock().last.iter().take(max).cloned().collect()
    }

    /// A message, if it is one of the last that were taken.
    pub fn find(&self, seq: Seq) -> Option<Kept> {
        let shared = self.lock();
        shared.last.iter().find(|kept| kept.seq == seq).cloned()
    }

    /// What each account did so far.
    pub fn counts(&self) -> BTreeMap<Name, Counts> {
        let shared = self.lock();
        let accounts = shared.accounts.iter();
        accounts
            .map(|(name, account)| (name.clone(), account.counts))
            .collect()
    }
}
