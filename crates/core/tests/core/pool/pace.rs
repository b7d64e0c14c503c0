//! Sessions in step are led out of it where critical messages are about, and
//! only there.

use std::collections::BTreeSet;

use outflow_core::class::Class;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::pool::{ClassMask, Pool, PoolSettings, SessionCaps, SessionKind};
use outflow_core::time::{Mono, Nanos};

const A: AccountId = AccountId(7);
const X: LaneId = LaneId(3);
const LOW: ClassMask = ClassMask::of(Class::Low);
const REPLY: Nanos = Nanos::from_millis(200);

/// Eight sessions with more low messages than they can carry.
struct World {
    pool: Pool,
    now: Mono,
    replies: BTreeSet<(Mono, SessionId)>,
    /// When messages left, and their class.
    sends: Vec<(Mono, Class)>,
    /// The classes of which there is always another message.
    backlog: ClassMask,
}

impl World {
    fn new(kind: SessionKind) -> Self {
        let mut pool = Pool::new(PoolSettings::default());
        pool.add_lane(X);
        let caps = SessionCaps {
            kind,
            max_connections: 8,
            per_destination: 8,
            messages_per_session: 100_000,
            idle_timeout: outflow_core::time::Nanos::from_secs(30),
            rate_milli: 1_000_000,
        };
        pool.add_account(A, caps);
        pool.set_ready(A, ClassMask::ALL);
        pool.set_backlog(X, LOW, 1_000_000);
        Self {
            pool,
            now: Mono(0),
            replies: BTreeSet::new(),
            sends: Vec::new(),
            backlog: LOW,
        }
    }

    fn pump(&mut self) {
        loop {
            self.pool.check();
            if let Some((account, lane, class)) = self.pool.next_match() {
                assert!(self.pool.can_send(lane, class));
                let session = self.pool.take_from(self.now, account, lane, class, 1);
                let session = session.expect("it was matched");
                self.replies.insert((self.now + REPLY, session));
                self.sends.push((self.now, class));
                self.pool.set_backlog(X, self.backlog, 1_000_000);
            } else if let Some((session, _, _)) = self.pool.next_open(self.now) {
                self.pool.session_ready(self.now, session);
            } else {
                return;
            }
        }
    }

    fn run_until(&mut self, end: Mono) {
        loop {
            self.pump();
            let reply = self.replies.first().map_or(Mono::NEVER, |(at, _)| *at);
            let wake = self.pool.next_wake().unwrap_or(Mono::NEVER);
            if reply.min(wake) > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(reply.min(wake));
            if wake <= reply {
                self.pool.wake(self.now);
            } else if let Some((_, session)) = self.replies.pop_first() {
                self.pool.released(self.now, session, true);
            }
        }
    }

    fn critical_waits(&mut self) {
        let both = LOW.with(Class::Critical);
        self.pool.set_backlog(X, both, 1_000_001);
    }

    /// The longest time without a send since then, and the sends.
    fn longest_gap(&self, since: Mono) -> (Nanos, usize) {
        let times: Vec<Mono> = self
            .sends
            .iter()
            .map(|(at, _)| *at)
            .filter(|at| *at >= since)
            .collect();
        let gaps = times.windows(2).map(|two| two[1].since(two[0]));
        (gaps.max().unwrap_or(Nanos::ZERO), times.len())
    }
}

fn after(seconds: u64) -> Mono {
    Mono(0) + Nanos::from_secs(seconds)
}

#[test]
fn messages_that_keep_their_distance_earn_their_part() {
    let mut world = World::new(SessionKind::Slots);
    world.backlog = LOW.with(Class::Critical);
    world.critical_waits();
    world.run_until(after(60));
    let low = world.sends.iter().filter(|(_, class)| *class == Class::Low);
    let (low, all) = (low.count(), world.sends.len());
    assert!(low * 1_000 >= all * 18, "{low} of {all}");
}

#[test]
fn a_critical_message_leads_sessions_out_of_step_for_good() {
    for kind in [SessionKind::Connections, SessionKind::Slots] {
        let mut world = World::new(kind);
        world.run_until(after(1));
        world.critical_waits();
        world.run_until(after(12));
        let (gap, sends) = world.longest_gap(after(2));
        assert!(gap <= Nanos::from_millis(26), "{kind:?}: {gap:?}");
        assert!((399..=401).contains(&sends), "{kind:?}: nothing is lost");
    }
}

#[test]
fn without_critical_messages_nothing_waits() {
    for kind in [SessionKind::Connections, SessionKind::Slots] {
        let mut world = World::new(kind);
        world.run_until(after(4));
        assert_eq!(world.sends.len(), 21 * 8, "{kind:?}");
        assert_eq!(world.longest_gap(after(2)).0, REPLY, "{kind:?}");
    }
}

#[test]
fn critical_messages_keep_no_distance() {
    let mut world = World::new(SessionKind::Connections);
    world.run_until(after(1) - Nanos(1));
    world.critical_waits();
    world.run_until(after(1));
    // All came free at once: two took a message, the others keep a distance.
    assert!(!world.pool.can_send(X, Class::High));
    assert!(!world.pool.can_send(X, Class::Low));
    assert!(world.pool.take(world.now, X, Class::Low, 1).is_none());
    assert!(world.pool.can_send(X, Class::Critical));
    assert!(world.pool.take(world.now, X, Class::Critical, 1).is_some());
    world.pool.check();
}
