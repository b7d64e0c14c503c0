//! Limits that the node counts: those of policies, which messages take from as
//! well, and those that must outlive a restart.
//!
//! What is kept here is looked at first, then the node is asked, and only then
//! is taken what is kept here: nobody gives tokens back. If what is kept here
//! went to somebody else meanwhile, the request waits for that alone. Whoever
//! may wait asks the node again when it said to.

use std::collections::{BTreeMap, BTreeSet};

use outflow_core::class::Class;
use outflow_core::engine::lend::{Lent, Want};
use outflow_core::fair::Shares;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::throttle::{Owner, Ticket, Why};
use outflow_core::time::{Mono, Nanos};
use outflow_ports::throttle::{Acquired, Reply, ThenAcquired};

use crate::names::Named;
use crate::service::{Ask, Service};

/// Limits with numbers of their own that forget within this time are counted
/// here and begin empty after a restart; the node remembers the others.
const OWN_MAX: Nanos = Nanos::from_secs(60);
/// The generation of tickets of requests that the node is asked for; no other
/// place is ever used so often.
const LENT: u32 = u32::MAX;
/// The longest that is waited before the node is asked again.
const AGAIN_MAX: Nanos = Nanos::from_secs(1);

/// Whether the node counts a limit. Slots are counted here, since here is known
/// who holds them.
pub(crate) fn is_lent(named: &Named) -> bool {
    let is_slots = matches!(named.spec, LimitSpec::Concurrency { .. });
    !is_slots && (named.is_of_policies() || is_long(&named.spec))
}

/// Whether a limit remembers for so long that it must outlive a restart.
pub(crate) fn is_long(spec: &LimitSpec) -> bool {
    match spec {
        LimitSpec::Concurrency { .. } => false,
        LimitSpec::TokenBucket { rate, burst } => rate.time_for(u64::from(*burst)) > OWN_MAX,
        LimitSpec::LeakyBucket { rate } => rate.time_for(1) > OWN_MAX,
        LimitSpec::SlidingWindow { window, .. } => *window > OWN_MAX,
        LimitSpec::CalendarWindow { .. } => true,
    }
}

/// A request that the node is asked for.
pub(crate) struct Lending {
    /// What is counted here.
    pub own: Vec<Named>,
    /// What the node counts.
    pub lent: Vec<Named>,
    /// What to log when it is granted.
    pub logged: Vec<(String, u32)>,
    pub class: Class,
    pub owner: Owner,
    pub deadline: Mono,
    pub ttl: Nanos,
    pub then: ThenAcquired,
}

/// All requests that the node is asked for, or will be again.
pub(crate) struct Lendings {
    last: u32,
    live: BTreeMap<u32, Lending>,
    again: BTreeSet<(Mono, u32)>,
    /// How many of them each owner has.
    shares: Shares<Owner>,
}

impl Lendings {
    /// None; at most so many.
    pub const fn of(max: usize) -> Self {
        Self {
            last: 0,
            live: BTreeMap::new(),
            again: BTreeSet::new(),
            shares: Shares::of(max as u64),
        }
    }

    /// How many an owner has, and how many more it may have now.
    pub fn of_owner(&self, owner: Owner) -> (u64, u64) {
        self.shares.standing(&owner)
    }

    fn remove(&mut self, id: u32) -> Option<Lending> {
        let lending = self.live.remove(&id)?;
        self.shares.give_back(&lending.owner, 1);
        Some(lending)
    }

    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// When somebody is to be asked for again.
    pub fn next(&self) -> Mono {
        self.again.first().map_or(Mono::NEVER, |(at, _)| *at)
    }

    pub fn add(&mut self, lending: Lending) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.shares.force(&lending.owner, 1);
        self.live.insert(self.last, lending);
        self.last
    }

    /// All of them, who are not asked for any more.
    pub fn drain(&mut self) -> Vec<Lending> {
        self.again.clear();
        let all = std::mem::take(&mut self.live).into_values();
        all.inspect(|it| self.shares.give_back(&it.owner, 1))
            .collect()
    }

    fn due(&mut self, now: Mono) -> Option<u32> {
        let (at, id) = self.again.first().copied()?;
        if at > now {
            return None;
        }
        self.again.remove(&(at, id));
        Some(id)
    }
}

/// The ticket of a request that the node is asked for.
pub(crate) const fn ticket(id: u32) -> Ticket {
    Ticket {
        index: id,
        generation: LENT,
    }
}

impl Service {
    /// Somebody who waits for the node has gone. Whether it was such a one.
    pub(crate) fn cancel_lending(&self, ticket: Ticket) -> bool {
        if ticket.generation != LENT {
            return false;
        }
        self.lock().lendings.remove(ticket.index);
        true
    }

    /// Asks the node for those whose time has come.
    pub(crate) fn lend_again(&self, now: Mono) {
        loop {
            let Some(id) = self.lock().lendings.due(now) else {
                return;
            };
            self.lend(id);
        }
    }

    /// Asks the node.
    pub(crate) fn lend(&self, id: u32) {
        let (Some(lender), Some(service)) = (&self.lender, self.me.upgrade()) else {
            return;
        };
        let (wants, class) = {
            let state = self.lock();
            let Some(it) = state.lendings.live.get(&id) else {
                return;
            };
            let wants = it.lent.iter().map(|named| Want {
                applied: named.applied(),
                cost: named.cost,
            });
            (wants.collect(), it.class)
        };
        lender.lend(wants, class, Box::new(move |lent| service.lent(id, lent)));
    }

    /// The node answered.
    fn lent(&self, id: u32, lent: Lent) {
        let mut state = self.lock();
        let now = state.clock.now().mono;
        let (by, retry_after) = match lent {
            Lent::Granted => {
                let lending = state.lendings.remove(id);
                drop(state);
                // Whoever has gone wastes what was lent.
                if let Some(lending) = lending {
                    self.take_own(lending, now);
                }
                return;
            }
            Lent::Refused { by, retry_after } => (by, retry_after),
        };
        let Some(lending) = state.lendings.live.get(&id) else {
            return;
        };
        let never = retry_after == Nanos::MAX;
        if !never && now + retry_after <= lending.deadline {
            // Looked at again before that: others may give up meanwhile.
            let again = now + retry_after.min(AGAIN_MAX).max(Nanos(1));
            state.lendings.again.insert((again, id));
            drop(state);
            self.bell.ring();
            return;
        }
        let Some(lending) = state.lendings.remove(id) else {
            return;
        };
        drop(state);
        let named = lending.lent.get(by);
        let why = match named {
            Some(named) if never => Why::TooLarge {
                largest: named.spec.capacity(),
            },
            _ => Why::Limited,
        };
        let answer = Acquired::Refused {
            by: named.map_or(0, |named| usize::from(named.asked)),
            why,
            retry_after: (!never).then_some(retry_after),
        };
        self.count(&answer);
        (lending.then)(Ok(answer));
    }

    /// Takes what is counted here, for a request that has what the node counts.
    fn take_own(&self, lending: Lending, now: Mono) {
        let mut then = Some(lending.then);
        let ask = Ask {
            class: lending.class,
            owner: lending.owner,
            wait: lending.deadline.since(now),
            ttl: lending.ttl,
            logged: &mut || lending.logged.clone(),
        };
        let answer = if lending.own.is_empty() {
            let answer = Acquired::Granted(None);
            self.granted_now(ask, &answer);
            Ok(answer)
        } else {
            let wants: Vec<_> = lending.own.iter().map(Named::wanted).collect();
            let asked: Vec<u8> = lending.own.iter().map(|named| named.asked).collect();
            let reply = self.decide(self.lock(), ask, &wants, &asked, &mut || {
                then.take().unwrap_or_else(|| Box::new(|_| ()))
            });
            match reply {
                Reply::Now(answer) => answer,
                Reply::Later(_) => return,
            }
        };
        if let Some(then) = then {
            then(answer);
        }
    }
}
