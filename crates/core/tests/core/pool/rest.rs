//! What lanes leave behind when they are gone: nothing.

use outflow_core::class::Class;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::pool::{ClassMask, Pool, PoolSettings, SessionCaps};
use outflow_core::time::{Mono, Nanos};

const A: AccountId = AccountId(0);
const NORMAL: ClassMask = ClassMask::of(Class::Normal);
/// Lanes at the same time, and how often as many come and go.
const LANES: u32 = 300;
const ROUNDS: u64 = 4;

fn at(round: u64, millis: u64) -> Mono {
    Mono(0) + Nanos::from_millis(round * 1_000_000 + millis)
}

/// A pool whose account has a session for each of many lanes.
fn crowded(pool: &mut Pool, round: u64, is_beside: bool) -> Vec<SessionId> {
    for lane in (0..LANES).map(LaneId) {
        // Every second lane is a tenant's, beside the shared one.
        let beside = (is_beside && lane.0 % 2 == 1).then(|| LaneId(lane.0 - 1));
        pool.add_lane_beside(lane, beside.map(|_| 7), beside);
        pool.set_backlog(lane, NORMAL, 1);
    }
    let mut sessions = Vec::new();
    while let Some((session, _, _)) = pool.next_open(at(round, 0)) {
        pool.session_ready(at(round, 1), session);
        sessions.push(session);
    }
    pool.check();
    sessions
}

fn pool() -> Pool {
    let mut pool = Pool::new(PoolSettings::default());
    let caps = SessionCaps {
        max_connections: LANES,
        per_destination: 1,
        ..SessionCaps::default()
    };
    pool.add_account(A, caps);
    pool.set_ready(A, ClassMask::ALL);
    pool
}

/// Lanes go in this order; their sessions are closed first.
fn end(pool: &mut Pool, round: u64, sessions: &[SessionId], order: impl Iterator<Item = u32>) {
    for lane in (0..LANES).map(LaneId) {
        pool.set_backlog(lane, ClassMask::NONE, 0);
    }
    for &session in sessions {
        pool.session_closed(at(round, 2), session);
    }
    for lane in order.map(LaneId) {
        pool.remove_lane(at(round, 3), lane);
        while pool.next_match().is_some() || pool.next_open(at(round, 3)).is_some() {}
    }
    pool.check();
}

#[test]
fn places_of_lanes_that_are_gone_are_given_back() {
    for is_beside in [false, true] {
        let mut pool = pool();
        for round in 0..ROUNDS {
            let sessions = crowded(&mut pool, round, is_beside);
            assert!(pool.places_kept() >= LANES as usize);
            match round % 2 {
                0 => end(&mut pool, round, &sessions, 0..LANES),
                _ => end(&mut pool, round, &sessions, (0..LANES).rev()),
            }
            assert_eq!(pool.places_kept(), 0, "round {round}, beside: {is_beside}");
        }
    }
}

#[test]
fn timers_of_places_that_were_given_back_do_nothing() {
    let mut pool = pool();
    for lane in (0..LANES).map(LaneId) {
        pool.add_lane(lane);
        pool.set_backlog(lane, NORMAL, 1);
    }
    let mut failed = 0;
    while let Some((session, _, _)) = pool.next_open(at(0, 0)) {
        pool.session_failed(at(0, 1), session);
        failed += 1;
    }
    assert!(failed > 0 && pool.next_wake().is_some());
    end(&mut pool, 0, &[], 0..LANES);
    assert_eq!(pool.places_kept(), 0);
    for lane in (0..2).map(LaneId) {
        pool.add_lane(lane);
    }
    while let Some(due) = pool.next_wake() {
        pool.wake(due);
        pool.check();
    }
}
