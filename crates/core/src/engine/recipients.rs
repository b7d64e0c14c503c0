//! Limits per recipient, checked at the head of a flow.
//!
//! They are not part of a flow: a flow has many recipients. A message that its
//! recipient's limit refuses steps aside without an attempt, until a time of its
//! own: those who wait for one recipient do not all come back at once.
//!
//! Windows and slow buckets spend only what the journal reserved, as all limits
//! do, but nothing ahead: a recipient seldom gets two messages in a row. So the
//! first message steps aside until its reservation is durable. Its deferral is
//! written right behind that, and is durable no sooner, so it does not come
//! back in vain. A node decides about its own messages alone, also in a fleet:
//! a recipient's messages pass through one lane, and a lane has one owner.
//!
//! Limits of recipients that nobody wrote to for a while are forgotten, a few
//! at each use, here and in the journal. At most [`RECIPIENTS_MAX`] are known
//! at a time; what goes to one more recipient waits until another is forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::action::Record;
use super::limits::Maker;
use crate::class::Class;
use crate::limit::need::Need;
use crate::limit::{Limit, Until};
use crate::message::Recipient;
use crate::policy::applied::Applied;
use crate::policy::key::LimitKey;
use crate::retry::turns::{Turns, Waiter};
use crate::time::{Mono, Nanos, Now};

/// The recipient policies that apply to a flow.
pub(super) type RecipientRules = Vec<Applied>;

/// The most limits of recipients that are known at a time.
const RECIPIENTS_MAX: usize = 1 << 20;
/// How long a message waits when so many are known.
const FULL_PAUSE: Nanos = Nanos::from_secs(60);
/// Idle limits looked at with each use.
const SWEEP: usize = 2;
/// A limit that was asked less long ago is not forgotten: a message may be on
/// its way back to what was reserved for it.
const KEPT: Nanos = Nanos::from_secs(60);
/// Nobody is put off for longer than this because of others.
const HORIZON: Nanos = Nanos::from_secs(86_400);

type Key = (Arc<LimitKey>, Recipient);

/// A message before its recipient's limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<'a> {
    pub rules: &'a RecipientRules,
    pub recipient: Recipient,
    pub class: Class,
    pub cost: u32,
}

/// What a recipient's limits say to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may go.
    Now,
    /// It steps aside until then.
    Later(Mono),
    /// It costs more than a limit ever admits.
    Never,
}

/// One limit of one recipient.
#[derive(Debug)]
struct Live {
    limit: Limit,
    turns: Turns,
    asked_at: Mono,
}

/// The live limits of recipients.
#[derive(Debug, Default)]
pub(super) struct Recipients {
    limits: BTreeMap<Key, Live>,
    /// All keys, in the order in which they are looked at for idleness.
    round: VecDeque<Key>,
    /// Reservations on their way to the disk, in order.
    reserving: VecDeque<Key>,
    /// What the journal knew before the start, and when it stops to matter.
    known: VecDeque<(Mono, LimitKey)>,
    keys: BTreeMap<LimitKey, Arc<LimitKey>>,
    /// How often a recipient's limits told a message to step aside.
    pub refused: u64,
}

/// The largest cost that all of these rules can ever admit.
pub(super) fn cost_max(rules: &RecipientRules) -> u32 {
    let capacities = rules.iter().map(|rule| rule.spec.capacity());
    capacities.min().unwrap_or(u32::MAX)
}

impl Recipients {
    /// No live limits; `known` to the journal are these, each until a time.
    pub fn new(mut known: Vec<(Mono, LimitKey)>) -> Self {
        known.sort();
        Self {
            known: known.into(),
            ..Self::default()
        }
    }

    /// Whether a recipient's limits admit a message now, or when to ask again.
    pub fn admits(
        &mut self,
        now: &Now,
        visit: &Visit<'_>,
        maker: &mut Maker,
        journal: &mut impl FnMut(Record),
    ) -> Admission {
        if visit.cost > cost_max(visit.rules) {
            return Admission::Never;
        }
        self.sweep(now, maker, journal);
        let mut later = None;
        for rule in visit.rules {
            let key = self.key(rule, visit.recipient);
            let at = match self.live(now, rule, &key, maker) {
                Some(live) => live.admits(now, visit, |limit, block| {
                    let of_recipient = Arc::new(rule.key.for_recipient(visit.recipient));
                    journal(Record::Reservation {
                        key: of_recipient,
                        saved: limit.save(now),
                        block,
                    });
                }),
                None => Err((now.mono + FULL_PAUSE, false)),
            };
            if let Err((at, reserving)) = at {
                later = later.max(Some(at));
                if reserving {
                    self.reserving.push_back(key);
                }
            }
        }
        self.refused += u64::from(later.is_some());
        later.map_or(Admission::Now, Admission::Later)
    }

    /// Takes a message's cost from its recipient's limits, which admitted it.
    pub fn take(&mut self, now: &Now, visit: &Visit<'_>) {
        for rule in visit.rules {
            let key = self.key(rule, visit.recipient);
            if let Some(live) = self.limits.get_mut(&key) {
                live.limit.take(now, visit.class, visit.cost);
            }
        }
    }

    /// The oldest reservation that was on its way is durable.
    pub fn reserved(&mut self, block: u32) {
        if let Some(key) = self.reserving.pop_front()
            && let Some(live) = self.limits.get_mut(&key)
        {
            live.limit.reserve_committed(block);
        }
    }

    /// How many limits are looked at for idleness, again and again.
    pub fn looked_at(&self) -> usize {
        self.round.len() + self.known.len()
    }

    /// How many limits of recipients are known.
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

    /// The limit of a recipient as its rule is now, made if there is room.
    fn live(
        &mut self,
        now: &Now,
        rule: &Applied,
        key: &Key,
        maker: &mut Maker,
    ) -> Option<&mut Live> {
        if !self.limits.contains_key(key) {
            if self.limits.len() + self.known.len() >= RECIPIENTS_MAX {
                return None;
            }
            let limit = maker.make_owned(now, &rule.key.for_recipient(key.1), rule);
            let live = Live {
                limit,
                turns: Turns::default(),
                asked_at: now.mono,
            };
            self.limits.insert(key.clone(), live);
            self.round.push_back(key.clone());
        }
        let live = self.limits.get_mut(key)?;
        live.limit.reconfigure(now, rule.spec.clone());
        live.limit.set_headroom(rule.headroom);
        live.asked_at = now.mono;
        Some(live)
    }

    /// Forgets a few limits that a fresh one would know as much as.
    pub fn sweep(&mut self, now: &Now, maker: &mut Maker, journal: &mut impl FnMut(Record)) {
        for _ in 0..SWEEP.min(self.round.len()) {
            let Some(key) = self.round.pop_front() else {
                break;
            };
            let Some(live) = self.limits.get(&key) else {
                continue;
            };
            if now.mono.since(live.asked_at) < KEPT || !live.limit.is_idle(now) {
                self.round.push_back(key);
                continue;
            }
            if live.limit.needs_reserve() {
                let key = Arc::new(key.0.for_recipient(key.1));
                journal(Record::Forgotten { key });
            }
            self.limits.remove(&key);
            // Beside this one, only the table of names has it.
            if Arc::strong_count(&key.0) == 2 {
                self.keys.remove(&*key.0);
            }
        }
        for _ in 0..SWEEP {
            let Some((_, key)) = self.known.pop_front_if(|(until, _)| *until <= now.mono) else {
                break;
            };
            if maker.drop_known(&key) {
                let key = Arc::new(key);
                journal(Record::Forgotten { key });
            }
        }
    }
}

impl Live {
    /// Whether a message may go, or when it is to come back, and whether a
    /// reservation was asked for.
    fn admits(
        &mut self,
        now: &Now,
        visit: &Visit<'_>,
        reserve: impl FnOnce(&Limit, u32),
    ) -> Result<(), (Mono, bool)> {
        let (class, cost) = (visit.class, visit.cost);
        self.limit.expect_cost(cost);
        let until = self
            .limit
            .until_above_floor(now, class, Need::whole(cost), cost);
        let earliest = match until {
            Until::Now => return Ok(()),
            Until::At(at) => at,
            Until::Granted | Until::Released | Until::Never => {
                // What is promised already is for those who asked before.
                match self.limit.until_behind_promised(now, class, cost) {
                    Until::At(at) => at,
                    Until::Never => now.mono + self.gap(cost),
                    Until::Now | Until::Granted | Until::Released => {
                        let block = self.limit.reservation_for(cost);
                        if let Some(block) = block {
                            reserve(&self.limit, block);
                            self.limit.reserve_asked(block);
                        }
                        return Err((now.mono, block.is_some()));
                    }
                }
            }
        };
        Err((self.turn(now, earliest, cost), false))
    }

    /// A moment of its own for a message that may not go before `earliest`.
    fn turn(&mut self, now: &Now, earliest: Mono, cost: u32) -> Mono {
        let Self { limit, turns, .. } = self;
        if limit.window_around(now, earliest).is_none() {
            let gap = self.gap(cost);
            return self.turns.next(now.mono, earliest, gap, HORIZON);
        }
        let count = limit.shape().capacity;
        let waiter = Waiter {
            earliest,
            cost,
            count,
        };
        turns.next_of_window(now.mono, waiter, HORIZON, |at| {
            limit.window_around(now, at).unwrap_or((at, at))
        })
    }

    /// How far apart messages of this cost may go in the long run.
    fn gap(&self, cost: u32) -> Nanos {
        let rate = self.limit.shape().rate;
        rate.map_or(Nanos::ZERO, |rate| rate.time_for(u64::from(cost)))
    }
}
