//! Where granted tokens come from: leases from a ledger, blocks from the
//! journal.
//!
//! A fed limit spends only what it was given. Leased ones are given tokens by
//! the ledger, sized by recent use and by what waits; one request per limit is
//! under way at a time. Reserved ones are given blocks that the journal made
//! durable before they are used, so that a restart never sends faster.

use std::sync::Arc;

use super::action::{Action, Alert, LeaseRequest, Record};
use super::appends::Appends;
use super::event::LeaseAnswer;
use crate::class::Class;
use crate::handle::LimitId;
use crate::limit::need::Need;
use crate::limit::{Grant, Limit};
use crate::policy::key::LimitKey;
use crate::policy::policy::WhenAway;
use crate::time::{Clocks, Mono, Nanos, Now};

/// How long a limit that is open while its ledger is away spends at a time.
const OPEN_LIFE: Nanos = Nanos::from_millis(200);
/// The wait before an away ledger is asked again.
const AWAY_PAUSE: Nanos = Nanos::from_millis(100);
/// The share of the burst asked for before there is any use to go by.
const FIRST_SHARE: u32 = 8;

/// A request for tokens that has no answer yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    no: u32,
    at: Mono,
    clocks: Clocks,
    class: Class,
}

impl Asked {
    /// A lease is void if the clocks moved against each other while it was
    /// asked for (the machine slept), and late answers are not trusted.
    fn is_trustworthy(&self, now: &Now, life: Nanos) -> bool {
        now.mono.since(self.at).0 <= life.0 / 2 && self.clocks.parted(now) <= parting_max(life)
    }
}

/// How far the clocks may part under a lease.
const fn parting_max(life: Nanos) -> Nanos {
    Nanos(life.0 / 4)
}

/// The feeding of one limit.
#[derive(Debug)]
pub(super) struct Feed {
    key: Arc<LimitKey>,
    pub when_away: WhenAway,
    /// The request under way.
    asked: Option<Asked>,
    requests: u32,
    /// Not to be asked again before this.
    retry_at: Mono,
    /// The life of the last lease.
    life: Nanos,
    /// For whom the last lease was, and when it ends.
    leased: Option<(Class, Mono)>,
    /// Tokens taken since the last request, and the mean of that.
    taken: u32,
    use_per_request: u32,
    away: bool,
}

/// What stands before a limit that needs tokens.
pub(super) struct Demand {
    /// The most urgent class that wants tokens.
    pub class: Class,
    pub cost: u32,
    /// How many flows of that class stand there.
    pub flows: usize,
    /// Whether less urgent ones stand there too: they could not use what is
    /// leased for this class.
    pub others_below: bool,
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
            life: Nanos::from_millis(300),
            leased: None,
            taken: 0,
            use_per_request: 0,
            away: false,
        }
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

    /// Numbers its requests after those of another limit, whose answers may
    /// still come.
    pub fn number_after(&mut self, last: u32) {
        self.requests = last;
    }

    /// The number of its last request.
    pub fn last_request(&self) -> u32 {
        self.requests
    }

    /// Changes what happens while the ledger is away.
    pub fn set_when_away(&mut self, when_away: WhenAway) {
        self.when_away = when_away;
    }

    /// Notes that tokens were taken.
    pub fn note_taken(&mut self, cost: u32) {
        self.taken = self.taken.saturating_add(cost);
    }

    /// Asks for more if the limit runs low. When to look again, if not asked.
    pub fn refill(
        &mut self,
        now: &Now,
        id: LimitId,
        limit: &mut Limit,
        demand: Option<Demand>,
        appends: &mut Appends,
        actions: &mut Vec<Action>,
    ) -> Mono {
        if limit.is_leased() {
            return self.lease(now, id, limit, demand, actions);
        }
        if let Some(block) = limit.reservation_due() {
            let saved = limit.save(now);
            limit.reserve_asked(block);
            let key = Arc::clone(&self.key);
            appends.append(Record::Reservation { key, saved, block }, actions);
        }
        Mono::NEVER
    }

    fn lease(
        &mut self,
        now: &Now,
        id: LimitId,
        limit: &mut Limit,
        demand: Option<Demand>,
        actions: &mut Vec<Action>,
    ) -> Mono {
        if let Some(asked) = self.asked {
            let deadline = asked.at + self.life.max(AWAY_PAUSE);
            if now.mono < deadline {
                return deadline;
            }
            // As good as away; what comes after all is not trusted.
            return self.answered(now, limit, asked.no, LeaseAnswer::Away, actions);
        }
        if now.mono < self.retry_at {
            return self.retry_at;
        }
        let Some(demand) = demand else {
            return Mono::NEVER;
        };
        let low = Need::whole(demand.cost.max(self.use_per_request / 2));
        if limit.fits(now, demand.class, low) {
            // Enough for now; what lapses unused must be asked for again.
            return limit.lapses_at(now).unwrap_or(Mono::NEVER);
        }
        self.use_per_request = (self.use_per_request + self.taken).div_ceil(2);
        self.taken = 0;
        let waiting = u32::try_from(demand.flows)
            .unwrap_or(u32::MAX)
            .saturating_mul(demand.cost);
        let first = (limit.spec().capacity() / FIRST_SHARE).max(1);
        let ahead = if demand.others_below {
            0
        } else {
            self.use_per_request.saturating_mul(2)
        };
        let tokens = ahead
            .max(waiting.min(first))
            .max(demand.cost)
            .min(limit.spec().capacity());
        self.requests += 1;
        let (no, class) = (self.requests, demand.class);
        self.asked = Some(Asked {
            no,
            at: now.mono,
            clocks: now.clocks(),
            class,
        });
        let key = Arc::clone(&self.key);
        actions.push(Action::Lease(LeaseRequest {
            limit: id,
            no,
            key,
            spec: limit.spec().clone(),
            headroom: limit.headroom(),
            class,
            tokens,
            at_least: demand.cost,
        }));
        now.mono + self.life.max(AWAY_PAUSE)
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
            return Mono::NEVER;
        };
        let class = asked.class;
        match answer {
            LeaseAnswer::Leased {
                tokens,
                life,
                wait,
                spacing,
            } => {
                self.life = life;
                self.away = false;
                if asked.is_trustworthy(now, life) {
                    let (usable_from, ends_at) = (asked.at + wait, asked.at + life);
                    self.leased = Some((class, ends_at));
                    limit.grant(
                        now,
                        Grant {
                            tokens,
                            class,
                            usable_from,
                            ends_at,
                            spacing,
                            asked: asked.clocks,
                            parting_max: parting_max(life),
                        },
                    );
                    return usable_from;
                }
                self.retry_at = now.mono;
                now.mono
            }
            LeaseAnswer::Refused { retry_after } => {
                self.away = false;
                self.retry_at = now.mono + retry_after;
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

    /// What the policy lets this node spend while the ledger is away.
    fn grant_alone(&self, now: &Now, limit: &mut Limit, class: Class) {
        let tokens = match self.when_away {
            WhenAway::Closed => return,
            WhenAway::Open => limit.spec().capacity(),
            WhenAway::LocalShare => self.use_per_request,
        };
        let (usable_from, ends_at) = (now.mono, now.mono + OPEN_LIFE);
        limit.grant(
            now,
            Grant {
                tokens,
                class,
                usable_from,
                ends_at,
                spacing: Nanos::ZERO,
                asked: now.clocks(),
                parting_max: parting_max(OPEN_LIFE),
            },
        );
    }
}
