//! An idle session gives way to a lane that has work.

use outflow_core::class::Class;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::pool::{ClassMask, Pool, PoolSettings, SessionCaps, SessionKind};
use outflow_core::time::{Mono, Nanos};

const A: AccountId = AccountId(0);
const X: LaneId = LaneId(0);
const Y: LaneId = LaneId(1);
const NORMAL: ClassMask = ClassMask::of(Class::Normal);

fn ms(millis: u64) -> Mono {
    Mono(0) + Nanos::from_millis(millis)
}

/// One account of connections to destinations.
fn pool(max_connections: u32, lanes: u32) -> Pool {
    let mut pool = Pool::new(PoolSettings::default());
    for lane in (0..lanes).map(LaneId) {
        pool.add_lane(lane);
    }
    let caps = SessionCaps {
        max_connections,
        per_destination: max_connections,
        ..SessionCaps::default()
    };
    pool.add_account(A, caps);
    pool.set_ready(A, ClassMask::ALL);
    pool
}

fn open(pool: &mut Pool, lane: LaneId, at: Mono) -> SessionId {
    pool.set_backlog(lane, NORMAL, 1);
    let (session, _, opened) = pool.next_open(at).expect("there is room");
    assert_eq!(opened, lane);
    pool.set_backlog(lane, ClassMask::NONE, 0);
    pool.session_ready(at, session);
    pool.check();
    session
}

/// Closes the session that makes way and opens the one it makes way for.
fn make_way(pool: &mut Pool, at: Mono, old: SessionId, lane: LaneId) -> SessionId {
    assert_eq!(pool.next_open(at), None);
    pool.check();
    assert_eq!(pool.next_close(), Some(old));
    pool.session_closed(at, old);
    let (session, _, opened) = pool.next_open(at).expect("the slot is free");
    assert_eq!(opened, lane);
    pool.check();
    session
}

#[test]
fn one_connection_serves_two_lanes_in_turn_at_once() {
    let mut pool = pool(1, 2);
    let mut session = open(&mut pool, X, ms(0));
    for step in 1..20 {
        let lane = LaneId(step % 2);
        let at = ms(u64::from(step));
        pool.set_backlog(lane, NORMAL, 1);
        session = make_way(&mut pool, at, session, lane);
        pool.session_ready(at, session);
        let taken = pool.take(at, lane, Class::Normal, 1);
        assert_eq!(taken, Some((A, session)));
        pool.set_backlog(lane, ClassMask::NONE, 0);
        pool.released(at, session, true);
        pool.check();
    }
}

#[test]
fn a_session_gives_way_when_its_lane_has_nothing_left() {
    let mut pool = pool(1, 2);
    let session = open(&mut pool, X, ms(0));
    pool.take(ms(1), X, Class::Normal, 1).expect("idle");
    pool.set_backlog(Y, NORMAL, 1);
    assert_eq!((pool.next_open(ms(1)), pool.next_close()), (None, None));
    pool.released(ms(2), session, true);
    make_way(&mut pool, ms(2), session, Y);

    // And when what it had is cancelled.
    let mut pool = self::pool(1, 2);
    let session = open(&mut pool, X, ms(0));
    pool.set_ready(A, ClassMask::NONE);
    pool.set_backlog(X, NORMAL, 1);
    pool.set_backlog(Y, NORMAL, 1);
    assert_eq!((pool.next_open(ms(1)), pool.next_close()), (None, None));
    pool.set_backlog(X, ClassMask::NONE, 0);
    make_way(&mut pool, ms(2), session, Y);
}

/// A lane with many sessions leaves the last free slot to others. That is no
/// reason to let its messages wait beside a session that nobody uses.
#[test]
fn a_lane_that_stands_back_from_free_slots_takes_what_is_idle() {
    const B: AccountId = AccountId(1);
    let mut pool = pool(1, 2);
    let idle = open(&mut pool, X, ms(0));
    let caps = SessionCaps {
        max_connections: 6,
        per_destination: 6,
        ..SessionCaps::default()
    };
    pool.add_account(B, caps);
    pool.set_ready(B, ClassMask::ALL);
    pool.set_backlog(Y, NORMAL, 40);
    let mut opened = Vec::new();
    while let Some((session, account, lane)) = pool.next_open(ms(1)) {
        assert_eq!(lane, Y);
        opened.push(account);
        pool.session_ready(ms(1), session);
        pool.take(ms(1), Y, Class::Normal, 1).expect("idle");
    }
    pool.check();
    assert_eq!(opened, [B; 5], "one is left to others");
    assert_eq!(pool.next_close(), Some(idle));
    pool.session_closed(ms(2), idle);
    let made = pool
        .next_open(ms(2))
        .map(|(_, account, lane)| (account, lane));
    assert_eq!(made, Some((A, Y)));
    assert_eq!(pool.next_open(ms(2)), None, "one is left to others");
    pool.check();
}

#[test]
fn a_lane_that_sends_quickly_keeps_its_session_over_the_gap() {
    let mut pool = pool(1, 2);
    let session = open(&mut pool, X, ms(0));
    // Fifty a second, in a fifth of the time that connecting takes each.
    for step in 0..90 {
        let at = ms(step * 20);
        pool.wake(at);
        pool.take(at, X, Class::Normal, 1).expect("idle");
        pool.released(at + Nanos::from_millis(5), session, true);
    }
    let last = 89 * 20 + 5;
    pool.set_backlog(Y, NORMAL, 1);
    assert_eq!(pool.next_open(ms(last + 1)), None);
    assert_eq!(pool.next_close(), None, "its next message is about to come");
    let due = pool.next_wake().expect("the end of the gap");
    assert!(
        due.since(ms(last)) <= Nanos::from_millis(250),
        "and not long"
    );
    pool.wake(due);
    make_way(&mut pool, due, session, Y);
}

#[test]
fn what_is_idle_beyond_a_lowered_cap_is_closed() {
    let mut pool = pool(2, 3);
    let first = open(&mut pool, X, ms(0));
    let second = open(&mut pool, Y, ms(1));
    let caps = SessionCaps {
        max_connections: 1,
        ..SessionCaps::default()
    };
    pool.add_account(A, caps);
    pool.wake(ms(2));
    assert_eq!(pool.next_close(), Some(first), "it was idle for longer");
    assert_eq!(pool.next_close(), None);
    pool.session_closed(ms(2), first);
    pool.set_backlog(LaneId(2), NORMAL, 1);
    make_way(&mut pool, ms(2), second, LaneId(2));
}

#[test]
fn a_message_that_waits_comes_before_a_session_that_is_kept_warm() {
    let settings = PoolSettings {
        keep_warm: 2,
        ..PoolSettings::default()
    };
    let mut pool = Pool::new(settings);
    for lane in (0..100).map(LaneId) {
        pool.add_lane(lane);
    }
    pool.set_backlog(LaneId(99), NORMAL, 1);
    let caps = SessionCaps {
        max_connections: 1,
        ..SessionCaps::default()
    };
    pool.add_account(A, caps);
    pool.set_ready(A, ClassMask::ALL);
    let opened = pool.next_open(ms(0)).map(|(_, _, lane)| lane);
    assert_eq!(opened, Some(LaneId(99)));
    pool.check();
}

#[test]
fn more_lanes_than_connections_are_all_served_without_idle_connections() {
    const LANES: u32 = 2_000;
    let mut pool = pool(100, LANES);
    let mut left = vec![3_u32; LANES as usize];
    for lane in (0..LANES).map(LaneId) {
        pool.set_backlog(lane, NORMAL, 3);
    }
    let (mut sent, mut at) = (0, ms(0));
    while sent < LANES * 3 {
        let mut busy = Vec::new();
        loop {
            if let Some((account, lane, class)) = pool.next_match() {
                let session = pool.take_from(at, account, lane, class, 1);
                busy.push(session.expect("it was matched"));
                let left = &mut left[lane.index()];
                *left -= 1;
                let classes = if *left > 0 { NORMAL } else { ClassMask::NONE };
                pool.set_backlog(lane, classes, *left);
            } else if let Some((session, _, _)) = pool.next_open(at) {
                pool.session_ready(at, session);
            } else if let Some(session) = pool.next_close() {
                pool.session_closed(at, session);
            } else {
                break;
            }
        }
        sent += busy.len() as u32;
        assert!(
            busy.len() >= 90 || sent > LANES * 3 - 300,
            "{sent}: {}",
            busy.len()
        );
        assert!(!busy.is_empty(), "{sent}");
        at = at + Nanos::from_millis(1);
        for session in busy {
            pool.released(at, session, true);
        }
    }
    let work = pool.work();
    assert!(work.openings <= u64::from(LANES) * 3, "{work:?}");
    assert!(work.looks <= 70 * work.sends, "{work:?}");
}

#[test]
fn lanes_of_one_destination_share_sessions() {
    let mut pool = Pool::new(PoolSettings::default());
    pool.add_lane(X);
    pool.add_lane_beside(Y, Some(1), Some(X));
    let caps = SessionCaps {
        max_connections: 4,
        per_destination: 1,
        ..SessionCaps::default()
    };
    pool.add_account(A, caps);
    pool.set_ready(A, ClassMask::ALL);
    let session = open(&mut pool, X, ms(0));
    // Idle, and another lane begins to wait.
    pool.set_backlog(Y, NORMAL, 5);
    pool.check();
    assert_eq!(pool.next_match(), Some((A, Y, Class::Normal)));
    let taken = pool.take_from(ms(1), A, Y, Class::Normal, 1);
    assert_eq!(taken, Some(session));
    // Both have messages: they take turns.
    pool.set_backlog(X, NORMAL, 5);
    let mut served = Vec::new();
    for step in 2..8 {
        pool.released(ms(step), session, true);
        pool.check();
        let (account, lane, class) = pool.next_match().expect("the session is idle");
        let taken = pool.take_from(ms(step), account, lane, class, 1);
        assert_eq!(taken, Some(session));
        served.push(lane);
    }
    let of_x = served.iter().filter(|lane| **lane == X).count();
    assert!((2..=4).contains(&of_x), "{served:?}");
    assert_eq!((pool.next_open(ms(9)), pool.next_close()), (None, None));
}

/// A far end may let connects hang: one that is on its way is no reason to
/// leave an idle session of the same destination alone.
#[test]
fn a_lane_of_the_same_destination_gets_what_is_idle_while_its_own_opens() {
    let mut pool = pool(2, 1);
    pool.add_lane_beside(Y, Some(1), Some(X));
    pool.set_backlog(Y, NORMAL, 1);
    let (_, _, opened) = pool.next_open(ms(0)).expect("there is room");
    assert_eq!(opened, Y);
    pool.set_backlog(Y, ClassMask::NONE, 0);
    let idle = open(&mut pool, X, ms(1));
    pool.set_backlog(Y, NORMAL, 1);
    pool.check();
    assert_eq!(pool.next_match(), Some((A, Y, Class::Normal)));
    assert_eq!(
        pool.take_from(ms(2), A, Y, Class::Normal, 1),
        Some(idle),
        "the session of the other lane"
    );
}

/// The same if it waited first, for tokens: one more connection to the same host
/// brings nothing.
#[test]
fn no_session_opens_beside_one_that_is_idle_at_the_same_host() {
    let mut pool = pool(2, 1);
    pool.add_lane_beside(Y, Some(1), Some(X));
    let idle = open(&mut pool, X, ms(0));
    pool.set_ready(A, ClassMask::NONE);
    pool.set_backlog(X, NORMAL, 1);
    pool.set_backlog(Y, NORMAL, 1);
    assert_eq!(pool.next_open(ms(1)), None);
    pool.set_backlog(X, ClassMask::NONE, 0);
    pool.set_ready(A, ClassMask::ALL);
    pool.check();
    assert_eq!(pool.next_match(), Some((A, Y, Class::Normal)));
    assert_eq!(pool.take_from(ms(2), A, Y, Class::Normal, 1), Some(idle));
}

/// A lane that has messages and may not send them, since it is paused at this
/// account or the account is kept for another tenant, does not keep its sessions
/// from others of its destination.
#[test]
fn a_session_that_its_lane_may_not_use_serves_the_other() {
    let bars: [fn(&mut Pool); 3] = [
        |pool| pool.hold_pair(A, X, true),
        |pool| pool.keep_for(A, Some(1)),
        |pool| pool.set_product_open(A, X, ClassMask::NONE),
    ];
    for bar in bars {
        let mut pool = pool(1, 1);
        pool.add_lane_beside(Y, Some(1), Some(X));
        let idle = open(&mut pool, X, ms(0));
        pool.set_ready(A, ClassMask::NONE);
        pool.set_backlog(X, NORMAL, 5);
        pool.set_backlog(Y, NORMAL, 1);
        pool.set_ready(A, ClassMask::ALL);
        bar(&mut pool);
        pool.check();
        assert_eq!(pool.next_match(), Some((A, Y, Class::Normal)));
        let taken = pool.take_from(ms(1), A, Y, Class::Normal, 1);
        assert_eq!(taken, Some(idle));
        pool.check();
    }
}

/// A lane's own idle sessions are no help if their account has no tokens.
#[test]
fn a_session_beside_an_idle_one_without_tokens_serves() {
    const B: AccountId = AccountId(1);
    let mut pool = pool(1, 1);
    pool.add_lane_beside(Y, Some(1), Some(X));
    let idle = open(&mut pool, X, ms(0));
    pool.set_ready(A, ClassMask::NONE);
    pool.add_account(B, SessionCaps::default());
    pool.keep_for(B, Some(1));
    let own = open(&mut pool, Y, ms(0));
    assert_ne!(own, idle);
    pool.set_ready(B, ClassMask::NONE);
    pool.set_backlog(Y, NORMAL, 1);
    assert_eq!(pool.next_match(), None);
    pool.set_ready(A, ClassMask::ALL);
    pool.check();
    assert_eq!(pool.next_match(), Some((A, Y, Class::Normal)));
    let taken = pool.take_from(ms(1), A, Y, Class::Normal, 1);
    assert_eq!(taken, Some(idle));
    pool.check();
}

/// Whoever watches that nothing is idle beside a message must not ask for more
/// connects than messages wait.
#[test]
fn no_further_session_is_wanted_while_one_is_on_its_way_for_each_message() {
    let mut pool = pool(3, 1);
    pool.set_backlog(X, NORMAL, 2);
    let wants_more = |pool: &Pool| pool.carriers(X).1.iter().any(|it| it.may_connect);
    for _ in 0..2 {
        assert!(wants_more(&pool));
        assert!(pool.next_open(ms(0)).is_some());
    }
    assert!(!wants_more(&pool));
}

#[test]
fn request_slots_do_not_make_a_lane_leave_connections_to_others() {
    let mut pool = pool(1, 2);
    let slots = AccountId(1);
    let caps = SessionCaps {
        kind: SessionKind::Slots,
        max_connections: 5,
        per_destination: 5,
        ..SessionCaps::default()
    };
    pool.add_account(slots, caps);
    pool.set_ready(slots, ClassMask::ALL);
    for _ in 0..5 {
        let taken = pool.take(ms(0), X, Class::Normal, 1);
        assert_eq!(taken.map(|(account, _)| account), Some(slots));
    }
    pool.set_backlog(X, NORMAL, 1);
    let opened = pool.next_open(ms(0));
    assert_eq!(opened.map(|(_, account, to)| (account, to)), Some((A, X)));
    pool.check();
}
