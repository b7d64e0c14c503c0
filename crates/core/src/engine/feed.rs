//! Where granted tokens come from: leases from a ledger, blocks from the
//! journal.
//!
//! A fed limit spends only what it was given. Leased ones are given tokens by
//! the ledger, sized by recent use and by what waits; one request per limit is
//! under way at a time; what is not used goes back. Reserved ones are given
//! blocks that the journal made durable before they are used, so that a restart
//! never sends faster.

mod away;
mod back;
mod share;
mod slots;
mod unused;

use std::sync::Arc;

use self::share::Share;
use self::unused::Unused;
use super::action::{Action, Alert, LeaseRequest, Record};
use super::appends::Appends;
use super::event::LeaseAnswer;
use crate::class::Class;
use crate::handle::LimitId;
use crate::limit::need::Need;
use crate::limit::{Grant, Limit};
use crate::policy::key::LimitKey;
use crate::policy::policy::WhenAway;
use crate::pool::ClassMask;
use crate::time::{Clocks, Mono, Nanos, Now};

/// The wait before an away ledger is asked again.
const AWAY_PAUSE: Nanos = Nanos::from_millis(100);
/// Who was refused asks again after this long, whatever he was told.
const REFUSED_MAX: Nanos = Nanos::from_secs(10);
/// The share of the burst asked for before there is any use to go by.
const FIRST_SHARE: u32 = 8;
/// The part of a life's worth that a lease has at least.
const WORTH: u64 = 64;
/// An answer about slots is waited for in such a part of their life.
const HOLD_TRIES: u64 = 12;

/// A limit that is left to other nodes is looked at again after this: a session
/// may be there for messages that wait.
const LEFT_LOOK: Nanos = Nanos::from_millis(300);

/// A request for tokens that has no answer yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    no: u32,
    at: Mono,
    clocks: Clocks,
    class: Class,
    out_of_turn: bool,
    held: u32,
    /// The largest cost that the ledger was told.
    at_most: u32,
}

impl Asked {
    /// A lease is void if the clocks moved against each other while it was
    /// asked for (the machine slept), and late answers are not trusted.
    fn is_trustworthy(&self, now: &Now, life: Nanos) -> bool {
        !self.is_late(now, life) && self.clocks.parted(now) <= parting_max(life)
    }

    fn is_late(&self, now: &Now, life: Nanos) -> bool {
        now.mono.since(self.at).0 > life.0 / 2
    }
}

/// What a fast limit is worth asking for at once: a part of what accrues in the
/// life of a lease. Slow ones are asked for what is wanted.
fn worth(limit: &Limit, life: Nanos) -> u32 {
    let Some(rate) = limit.shape().rate else {
        return 0;
    };
    let accrued = u128::from(rate.count) * u128::from(life.0 / WORTH);
    let tokens = accrued / u128::from(rate.per.0.max(1));
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// How far the clocks may part under a lease.
const fn parting_max(life: Nanos) -> Nanos {
    Nanos(life.0 / 4)
}

/// The feeding of one limit.
#[derive(Debug)]
pub(crate) struct Feed {
    key: Arc<LimitKey>,
    pub when_away: WhenAway,
    /// The request under way.
    asked: Option<Asked>,
    requests: u32,
    /// Not to be asked again before this.
    retry_at: Mono,
    /// A class that was refused a turn out of order, and until when.
    refused: Option<(Class, Mono)>,
    /// The life of the last lease.
    life: Nanos,
    /// For whom the last lease was, and when it ends.
    leased: Option<(Class, Mono)>,
    /// Whether tokens were granted since it was last refused.
    was_granted: bool,
    /// Tokens taken since the last request, and the mean of that.
    taken: u32,
    use_per_request: u32,
    share: Share,
    unused: Unused,
    /// Slots that the ledger counts for this node.
    counted: u32,
    away: bool,
}

/// What to ask for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    class: Class,
    out_of_turn: bool,
    earned: bool,
    tokens: u32,
    at_least: u32,
    held: u32,
    waiting: ClassMask,
}

/// What stands before a limit that needs tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The most urgent class that wants tokens, or one that has earned some.
    pub class: Class,
    /// Whether more urgent ones want tokens too.
    pub out_of_turn: bool,
    /// Whether it has earned what it wants: then nothing is kept from it.
    pub earned: bool,
    pub cost: u32,
    /// How many flows of that class stand there.
    pub flows: usize,
    /// The classes that stand there. Less urgent ones could not use what is
    /// leased for this class.
    pub waiting: ClassMask,
    /// Whether no session is lacking to use tokens, only those of other limits.
    /// Asked of limits whose tokens ended unused.
    pub has_session: bool,
}

impl Feed {
    /// The feed that a limit needs, if it spends what it is given.
    pub fn of(limit: &Limit, key: &LimitKey, when_away: WhenAway) -> Option<Self> {
        let fed = limit.is_leased() || limit.needs_reserve();
        fed.then(|| Self::new(Arc::new(key.clone()), when_away))
    }

    pub fn new(key: Arc<LimitKey>, when_away: WhenAway) -> Self {
        Self {
            key,
            when_away,
            asked: None,
            requests: 0,
            retry_at: Mono(0),
            refused: None,
            life: Nanos::from_millis(300),
            leased: None,
            was_granted: false,
            taken: 0,
            use_per_request: 0,
            share: Share::default(),
            unused: Unused::default(),
            counted: 0,
            away: false,
        }
    }

    /// When it may be asked again; in the past if it may.
    pub fn asks_again_at(&self) -> Mono {
        self.retry_at
    }

    /// Whether an answer of the ledger is on its way.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// The class whose last lease ended without a single use: something else
    /// holds its messages, perhaps a lane that gets no session. As long as it
    /// is asked for first, nobody below it gets anything.
    pub fn fruitless(&self, now: Mono) -> Option<Class> {
        let (class, ends_at) = self.leased?;
        (self.taken == 0 && ends_at <= now).then_some(class)
    }

    /// Whether tokens may be asked for out of turn for a class.
    pub fn may_ask_for(&self, now: Mono, class: Class) -> bool {
        self.refused
            .is_none_or(|(refused, until)| class < refused || until <= now)
    }

    /// Numbers its requests after those of another limit, whose answers may
    /// still come.
    pub fn number_after(&mut self, last: u32) {
        self.requests = last;
    }

    /// The number of its last request.
    pub fn last_request(&self) -> u32 {
        self.requests
    }

    /// The numbers have changed: what was refused under the old ones may be
    /// granted now, and what is on its way was asked for under them.
    pub fn renumber(&mut self) {
        self.retry_at = Mono(0);
        self.refused = None;
        self.asked = None;
        self.leased = None;
    }

    /// Changes what happens while the ledger is away.
    pub fn set_when_away(&mut self, when_away: WhenAway) {
        self.when_away = when_away;
    }

    /// Notes that tokens were taken.
    pub fn note_taken(&mut self, now: Mono, cost: u32) {
        self.taken = self.taken.saturating_add(cost);
        if cost > 0 {
            self.unused.expect_use();
        }
        self.share.note(now, cost);
    }

    /// Asks for more if the limit runs low. When to look again, if not asked.
    /// `version` is that of the policies that the numbers come from.
    pub(super) fn refill(
        &mut self,
        now: &Now,
        (id, version): (LimitId, u64),
        limit: &mut Limit,
        demand: Option<Demand>,
        appends: &mut Appends,
        actions: &mut Vec<Action>,
    ) -> Mono {
        if let Some(block) = limit.reservation_due() {
            let saved = limit.save(now);
            limit.reserve_asked(block);
            let key = Arc::clone(&self.key);
            appends.append(Record::Reservation { key, saved, block }, actions);
        }
        if limit.is_leased() {
            return self.lease(now, (id, version), limit, demand, actions);
        }
        Mono::NEVER
    }

    /// The same for a limit that is leased.
    pub fn lease(
        &mut self,
        now: &Now,
        (id, version): (LimitId, u64),
        limit: &mut Limit,
        demand: Option<Demand>,
        actions: &mut Vec<Action>,
    ) -> Mono {
        if let Some(asked) = self.asked {
            let deadline = asked.at + self.patience(limit);
            if now.mono < deadline {
                return deadline;
            }
            // As good as away; what comes after all is not trusted.
            return self.answered(now, limit, asked.no, LeaseAnswer::Away, actions);
        }
        if limit.holds().is_some() {
            return self.hold(now, (id, version), limit, demand, actions);
        }
        let kept_until = self.give_back(now, limit, demand.is_some(), actions);
        let Some(demand) = demand else {
            return kept_until;
        };
        if now.mono < self.retry_at {
            return self.retry_at.min(kept_until);
        }
        let low = Need::whole(demand.cost.max(self.use_per_request / 2));
        if limit.fits(now, demand.class, low) || limit.waits_for_disk(now, demand.class, low) {
            // Enough for now; what lapses unused must be asked for again.
            let lapses_at = limit.lapses_at(now).unwrap_or(Mono::NEVER);
            return lapses_at.min(kept_until);
        }
        // What one node cannot use would be lost to those that can.
        let unused = &self.unused;
        if matches!(id, LimitId::Account(_))
            && !demand.out_of_turn
            && let Some(at) = unused.leaves_until(now.mono, self.life, demand.has_session)
        {
            return at.min(now.mono + LEFT_LOOK).min(kept_until);
        }
        self.use_per_request = (self.use_per_request + self.taken).div_ceil(2);
        self.taken = 0;
        let waiting = u32::try_from(demand.flows)
            .unwrap_or(u32::MAX)
            .saturating_mul(demand.cost);
        let first = (limit.spec().capacity() / FIRST_SHARE).max(1);
        let others_below = demand.class.below().any(|it| demand.waiting.contains(it));
        let ahead = if others_below {
            0
        } else {
            self.use_per_request.saturating_mul(2)
        };
        let tokens = ahead
            .max(waiting.min(first))
            .max(worth(limit, self.life))
            .max(demand.cost)
            .min(limit.spec().capacity());
        // No more than was earned.
        let tokens = if demand.earned { demand.cost } else { tokens };
        let wanted = Wanted {
            class: demand.class,
            out_of_turn: demand.out_of_turn,
            earned: demand.earned,
            tokens,
            at_least: demand.cost,
            held: 0,
            waiting: demand.waiting,
        };
        self.ask(now, (id, version), limit, wanted, actions)
    }

    /// How long an answer is waited for. Slots must be asked for again, more than
    /// once if need be, before their life ends.
    fn patience(&self, limit: &Limit) -> Nanos {
        let life = match limit.holds() {
            Some(_) => Nanos(self.life.0 / HOLD_TRIES),
            None => self.life,
        };
        life.max(AWAY_PAUSE)
    }

    /// Sends a request. When its answer is overdue.
    fn ask(
        &mut self,
        now: &Now,
        (id, version): (LimitId, u64),
        limit: &Limit,
        wanted: Wanted,
        actions: &mut Vec<Action>,
    ) -> Mono {
        self.requests += 1;
        let (no, class) = (self.requests, wanted.class);
        let at_most = limit.expected_cost().max(wanted.at_least);
        self.asked = Some(Asked {
            at_most,
            no,
            at: now.mono,
            clocks: now.clocks(),
            class,
            out_of_turn: wanted.out_of_turn,
            held: wanted.held,
        });
        actions.push(Action::Lease(LeaseRequest {
            limit: id,
            no,
            key: Arc::clone(&self.key),
            spec: limit.spec().clone(),
            headroom: limit.headroom(),
            class: match wanted.earned {
                true => Class::Critical,
                false => class,
            },
            waiting: wanted.waiting,
            tokens: wanted.tokens,
            at_least: wanted.at_least,
            at_most,
            held: wanted.held,
            version,
        }));
        now.mono + self.patience(limit)
    }

    /// Takes the ledger's answer in. When to look again.
    pub fn answered(
        &mut self,
        now: &Now,
        limit: &mut Limit,
        no: u32,
        answer: LeaseAnswer,
        actions: &mut Vec<Action>,
    ) -> Mono {
        let Some(asked) = self.asked.take_if(|asked| asked.no == no) else {
            self.return_unused(limit, answer, actions);
            return Mono::NEVER;
        };
        let class = asked.class;
        match answer {
            LeaseAnswer::Leased {
                tokens,
                life,
                wait,
                spacing,
                receipt,
                owed: _,
            } => {
                self.life = life;
                self.was_granted = true;
                self.back();
                if limit.holds().is_some() {
                    return self.held(now, &asked, limit, tokens, life);
                }
                if asked.is_trustworthy(now, life) {
                    let (usable_from, ends_at) = (asked.at + wait, asked.at + life);
                    self.leased = Some((class, ends_at));
                    self.unused.leased(ends_at);
                    limit.grant(
                        now,
                        Grant {
                            tokens,
                            class,
                            usable_from,
                            ends_at,
                            spacing,
                            cost: asked.at_most,
                            asked_at: asked.at,
                            asked: asked.clocks,
                            parting_max: parting_max(life),
                            receipt: Some(receipt),
                        },
                    );
                    return usable_from;
                }
                self.return_unused(limit, answer, actions);
                // As good as away, but worth asking at once.
                if asked.is_late(now, life) {
                    self.grant_alone(now, limit, class);
                }
                self.retry_at = now.mono;
                now.mono
            }
            LeaseAnswer::Refused { retry_after } if asked.out_of_turn => {
                self.back();
                // More is kept from this class than from those above it, who
                // need not wait as long.
                self.refused = Some((class, now.mono + retry_after.min(REFUSED_MAX)));
                now.mono
            }
            LeaseAnswer::Refused { retry_after } => {
                self.back();
                self.counted = 0;
                // All nodes are told the same time. Who got tokens since he was
                // last refused lets the others go first: else the nearest one
                // would get them all.
                let turn = match std::mem::take(&mut self.was_granted) {
                    true => retry_after.times(2),
                    false => retry_after,
                };
                // Somebody may give back what he did not use.
                self.retry_at = now.mono + turn.min(REFUSED_MAX);
                self.retry_at
            }
            LeaseAnswer::Away => {
                if !std::mem::replace(&mut self.away, true) {
                    let key = Arc::clone(&self.key);
                    actions.push(Action::Alert {
                        alert: Alert::LedgerAway { key },
                    });
                }
                self.retry_at = now.mono + AWAY_PAUSE;
                self.grant_alone(now, limit, class);
                self.retry_at
            }
        }
    }

    fn back(&mut self) {
        if std::mem::replace(&mut self.away, false) {
            self.share.end();
        }
    }
}

#[cfg(test)]
mod tests;
