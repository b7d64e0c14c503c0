//! The connections that an account really has.
//!
//! The engine counts sessions, and lets the next one open when it has told one
//! to close. That one still says goodbye, and the far end counts it until its
//! connection is gone. So a session takes a berth before it connects and leaves
//! it when its connection is closed; one that opens meanwhile waits for that. It
//! never waits for long: a goodbye has its time-out, and what the engine thinks
//! is open fits into the caps by itself.
//!
//! It is the same with the connection rate: the engine knows of sessions, and a
//! session that leads to another server for its next message connects anew. So
//! all take turns here, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outflow_core::account::{AccountSpec, SessionKind};
use outflow_core::destination::Destination;
use outflow_core::limit::spec::Rate;
use outflow_core::name::Name;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many are taken, by account and by its destination.
#[derive(Default)]
struct Taken {
    accounts: BTreeMap<Name, u32>,
    destinations: BTreeMap<(Name, Destination), u32>,
    /// When an account may connect next.
    next: BTreeMap<Name, Instant>,
}

/// All berths.
#[derive(Default)]
pub(crate) struct Berths {
    taken: Mutex<Taken>,
    left: Notify,
}

/// Whose berth, and how many there may be.
#[derive(Clone)]
pub(crate) struct Claim {
    account: Name,
    destination: Destination,
    account_max: u32,
    destination_max: u32,
    connect_rate: Option<Rate>,
}

impl Claim {
    pub fn new(account: &AccountSpec, destination: &Destination) -> Self {
        Self {
            account: account.id.clone(),
            destination: destination.clone(),
            account_max: account.sessions.max_connections,
            // A connection to a relay is bound to no destination: how many carry
            // messages for one is the engine's to see to.
            destination_max: match account.sessions.kind {
                SessionKind::RelayConnections => u32::MAX,
                _ => account.sessions.per_destination,
            },
            connect_rate: account.sessions.connect_rate,
        }
    }

    fn pair(&self) -> (Name, Destination) {
        (self.account.clone(), self.destination.clone())
    }
}

impl Berths {
    /// Takes a berth, once there is one.
    pub async fn take(self: Arc<Self>, claim: Claim) -> Berth {
        loop {
            let mut left = std::pin::pin!(self.left.notified());
            // From here on nobody leaves unheard.
            left.as_mut().enable();
            if self.try_take(&claim) {
                let berths = Arc::clone(&self);
                return Berth { claim, berths };
            }
            left.await;
        }
    }

    fn try_take(&self, claim: &Claim) -> bool {
        let mut taken = self.lock();
        let pair = claim.pair();
        let of_account = taken.accounts.get(&claim.account).copied().unwrap_or(0);
        let of_pair = taken.destinations.get(&pair).copied().unwrap_or(0);
        if of_account >= claim.account_max || of_pair >= claim.destination_max {
            return false;
        }
        taken.accounts.insert(claim.account.clone(), of_account + 1);
        taken.destinations.insert(pair, of_pair + 1);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A berth, left when it is dropped.
pub(crate) struct Berth {
    claim: Claim,
    berths: Arc<Berths>,
}

impl Berth {
    /// Waits until the account may connect.
    pub async fn turn(&self) {
        if let Some(rate) = self.claim.connect_rate {
            sleep_until(self.next_turn(rate, Instant::now())).await;
        }
    }

    /// When that is. The turn is taken, used or not.
    fn next_turn(&self, rate: Rate, now: Instant) -> Instant {
        let apart = Duration::from_nanos(rate.time_for(1).0);
        let mut taken = self.berths.lock();
        let next = taken.next.get(&self.claim.account);
        let at = next.map_or(now, |next| now.max(*next));
        let after = at.checked_add(apart).unwrap_or(at);
        taken.next.insert(self.claim.account.clone(), after);
        at
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        let mut taken = self.berths.lock();
        fewer(&mut taken.accounts, &self.claim.account);
        fewer(&mut taken.destinations, &self.claim.pair());
        drop(taken);
        self.berths.left.notify_waiters();
    }
}

fn fewer<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(counts.remove(key)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use outflow_core::account::{AccountSpec, Sessions};
    use outflow_core::destination::Destination;

    use super::{Berths, Claim};

    fn claim(destination: &str) -> Claim {
        let mut account = AccountSpec::new("a");
        account.sessions = Sessions {
            max_connections: 3,
            per_destination: 2,
            ..Sessions::default()
        };
        Claim::new(&account, &Destination::isp(destination))
    }

    #[test]
    fn whoever_comes_too_many_waits_until_one_leaves() {
        let berths = Arc::new(Berths::default());
        let mut context = Context::from_waker(Waker::noop());
        let mut take = |destination| {
            let mut taking = Box::pin(Arc::clone(&berths).take(claim(destination)));
            match taking.as_mut().poll(&mut context) {
                Poll::Ready(berth) => Ok(berth),
                Poll::Pending => Err(taking),
            }
        };
        let first = take("x").ok().unwrap();
        let second = take("x").ok().unwrap();
        let mut third_of_x = take("x").err().unwrap();
        let third = take("y").ok().unwrap();
        let mut fourth = take("y").err().unwrap();
        drop(third);
        let mut context = Context::from_waker(Waker::noop());
        assert!(third_of_x.as_mut().poll(&mut context).is_pending());
        let Poll::Ready(_fourth) = fourth.as_mut().poll(&mut context) else {
            panic!("a berth of the account is free");
        };
        drop(first);
        let Poll::Ready(_third_of_x) = third_of_x.as_mut().poll(&mut context) else {
            panic!("a berth of the destination is free");
        };
        drop(second);
        assert_eq!(berths.lock().accounts.values().sum::<u32>(), 2);
    }
}
