//! Limits per recipient, checked at the head of a flow.
//!
//! They are not part of a flow: a flow has many recipients. A message that its
//! recipient's limit refuses steps aside until its time, without an attempt.
//! Limits of recipients that nobody wrote to for a while are forgotten, a few
//! at each use, so that idle keys cost nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::class::Class;
use crate::limit::need::Need;
use crate::limit::{Fill, Limit, Until};
use crate::message::Recipient;
use crate::policy::applied::Applied;
use crate::policy::key::LimitKey;
use crate::time::{Mono, Now};

/// The recipient policies that apply to a flow.
pub(super) type RecipientRules = Vec<Applied>;

/// Idle limits looked at with each use.
const SWEEP: usize = 2;

type Key = (Arc<LimitKey>, Recipient);

/// The live limits of recipients.
#[derive(Debug, Default)]
pub(super) struct Recipients {
    limits: BTreeMap<Key, Limit>,
    /// All keys, in the order in which they are looked at for idleness.
    round: VecDeque<Key>,
    keys: BTreeMap<LimitKey, Arc<LimitKey>>,
    /// How often a recipient's limits told a message to step aside.
    pub refused: u64,
}

impl Recipients {
    /// Whether a recipient's limits admit a message now, or when they will.
    pub fn admits(
        &mut self,
        now: &Now,
        rules: &RecipientRules,
        recipient: Recipient,
        class: Class,
        cost: u32,
    ) -> Result<(), Mono> {
        let mut until = Mono(0);
        for rule in rules {
            let key = self.key(rule, recipient);
            if let Some(limit) = self.limits.get(&key) {
                match limit.until(now, class, Need::whole(cost)) {
                    Until::Now => {}
                    Until::At(at) => until = until.max(at),
                    // A slot comes back with a reply; a second is soon enough.
                    Until::Released | Until::Granted | Until::Never => {
                        until = until.max(Mono(now.mono.0 + 1_000_000_000));
                    }
                }
            }
        }
        if until <= now.mono {
            return Ok(());
        }
        self.refused += 1;
        Err(until)
    }

    /// Takes a message's cost from its recipient's limits.
    pub fn take(
        &mut self,
        now: &Now,
        rules: &RecipientRules,
        recipient: Recipient,
        class: Class,
        cost: u32,
    ) {
        self.sweep(now);
        for rule in rules {
            let key = self.key(rule, recipient);
            if !self.limits.contains_key(&key) {
                self.round.push_back(key.clone());
            }
            let fresh = || Limit::owned(rule.spec.clone(), rule.headroom, now, Fill::Full);
            let limit = self.limits.entry(key).or_insert_with(fresh);
            if limit.fits(now, class, Need::whole(cost)) {
                limit.take(now, class, cost);
            }
        }
    }

    /// How many recipients have a live limit.
    pub fn len(&self) -> usize {
        self.limits.len()
    }

    fn key(&mut self, rule: &Applied, recipient: Recipient) -> Key {
        if let Some(key) = self.keys.get(&rule.key) {
            return (Arc::clone(key), recipient);
        }
        let key = Arc::new(rule.key.clone());
        self.keys.insert(rule.key.clone(), Arc::clone(&key));
        (key, recipient)
    }

    fn sweep(&mut self, now: &Now) {
        for _ in 0..SWEEP.min(self.round.len()) {
            let Some(key) = self.round.pop_front() else {
                return;
            };
            if self
                .limits
                .get(&key)
                .is_some_and(|limit| limit.is_idle(now))
            {
                self.limits.remove(&key);
            } else {
                self.round.push_back(key);
            }
        }
    }
}
