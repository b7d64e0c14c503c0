//! Sessions to a relay carry messages for any lane of their account.

use outflow_core::class::Class;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::pool::{ClassMask, Pool, PoolSettings, SessionCaps, SessionKind};
use outflow_core::time::{Mono, Nanos};

use super::case::{Case, Load};
use super::run;

const A: AccountId = AccountId(7);
const X: LaneId = LaneId(3);
const Y: LaneId = LaneId(300);
const NORMAL: ClassMask = ClassMask::of(Class::Normal);

fn ms(millis: u64) -> Mono {
    Mono(0) + Nanos::from_millis(millis)
}

fn caps(max_connections: u32) -> SessionCaps {
    SessionCaps {
        kind: SessionKind::RelayConnections,
        max_connections,
        per_destination: max_connections,
        ..SessionCaps::default()
    }
}

/// One relay that is ready for all classes, and so many lanes.
fn pool(caps: SessionCaps, lanes: impl IntoIterator<Item = LaneId>) -> Pool {
    let mut pool = Pool::new(PoolSettings::default());
    for lane in lanes {
        pool.add_lane(lane);
    }
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

#[test]
fn a_session_that_was_opened_for_one_lane_serves_another() {
    let mut pool = pool(caps(1), [X, Y]);
    let session = open(&mut pool, X, ms(0));
    for (step, lane) in [Y, X, Y].into_iter().enumerate() {
        pool.set_backlog(lane, NORMAL, 1);
        assert_eq!(pool.next_match(), Some((A, lane, Class::Normal)));
        let at = ms(step as u64);
        let taken = pool.take_from(at, A, lane, Class::Normal, 1);
        assert_eq!(taken, Some(session));
        assert_eq!(pool.lane_counts(lane).busy, 1);
        pool.set_backlog(lane, ClassMask::NONE, 0);
        pool.check();
        pool.released(at, session, true);
        assert_eq!(pool.lane_counts(lane).live(), 0);
        pool.check();
    }
    assert_eq!((pool.next_open(ms(9)), pool.next_close()), (None, None));
    assert_eq!(pool.work().openings, 1);
}

#[test]
fn many_lanes_need_no_more_sessions_than_the_relay_may_have() {
    let lanes: Vec<LaneId> = (0..10_000).map(LaneId).collect();
    let fast = SessionCaps {
        rate_milli: 1_000_000,
        ..caps(8)
    };
    let mut pool = pool(fast, lanes.iter().copied());
    let mut left = vec![3_u32; lanes.len()];
    for lane in &lanes {
        pool.set_backlog(*lane, NORMAL, 3);
    }
    let (mut sent, mut at) = (0, ms(0));
    while sent < 30_000 {
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
        assert!(
            busy.len() == 8 || sent + busy.len() == 30_000,
            "all are busy"
        );
        sent += busy.len();
        at = at + Nanos::from_millis(1);
        for session in busy {
            pool.released(at, session, true);
        }
    }
    let work = pool.work();
    assert!(work.openings <= 300 + 8, "{work:?}");
    assert!(work.searches <= 3 * work.sends, "{work:?}");
    assert!(work.looks <= 70 * work.sends, "{work:?}");
}

#[test]
fn a_failed_connect_backs_the_relay_off_and_no_lane() {
    let mut pool = pool(caps(4), [X, Y]);
    pool.set_backlog(X, NORMAL, 2);
    let (first, _, _) = pool.next_open(ms(0)).expect("there is room");
    let (second, _, _) = pool.next_open(ms(0)).expect("there is room");
    pool.session_failed(ms(100), first);
    // It was on its way before the first failed: one failure, not two.
    pool.session_failed(ms(110), second);
    pool.set_backlog(Y, NORMAL, 2);
    assert_eq!(pool.next_open(ms(500)), None, "the host is the same");
    pool.check();
    pool.wake(ms(1_100));
    let (probe, _, _) = pool.next_open(ms(1_100)).expect("after a second");
    assert_eq!(pool.next_open(ms(1_100)), None, "one tries first");
    pool.session_failed(ms(1_200), probe);
    pool.wake(ms(3_199));
    assert_eq!(pool.next_open(ms(3_199)), None, "twice as long");
    pool.wake(ms(3_200));
    let (probe, _, _) = pool.next_open(ms(3_200)).expect("after two seconds");
    pool.session_ready(ms(3_300), probe);
    assert!(pool.next_match().is_some());
    pool.check();
}

#[test]
fn too_many_connections_are_those_of_the_relay() {
    let mut pool = pool(caps(8), [X, Y]);
    pool.set_backlog(X, NORMAL, 2);
    let (first, _, _) = pool.next_open(ms(0)).expect("there is room");
    let (second, _, _) = pool.next_open(ms(0)).expect("there is room");
    pool.session_ready(ms(10), first);
    assert!(pool.take(ms(10), X, Class::Normal, 1).is_some());
    assert_eq!(pool.session_unwelcome(ms(20), second), Some(1));
    pool.set_backlog(Y, NORMAL, 2);
    assert_eq!(pool.next_open(ms(20)), None, "whichever lane asks");
    let welcome = pool.welcome_of(A, Y).expect("it was found out");
    assert_eq!(welcome.sessions, Some(1));
    pool.check();
    pool.wake(welcome.try_at);
    assert!(
        pool.next_open(welcome.try_at).is_some(),
        "one more is tried"
    );
    pool.check();
}

#[test]
fn the_cap_of_a_destination_counts_what_is_carried_there() {
    let few = SessionCaps {
        per_destination: 2,
        ..caps(4)
    };
    let mut pool = pool(few, [X, Y]);
    pool.set_backlog(Y, NORMAL, 4);
    for _ in 0..2 {
        let (session, _, _) = pool.next_open(ms(0)).expect("there is room");
        pool.session_ready(ms(1), session);
        let taken = pool.take(ms(1), X, Class::Normal, 1);
        assert!(taken.is_some(), "opened for one lane, used by the other");
        pool.check();
    }
    assert!(!pool.can_send(X, Class::Normal), "two are on their way");
    let (session, _, lane) = pool.next_open(ms(2)).expect("for the other lane");
    assert_eq!(lane, Y);
    pool.session_ready(ms(3), session);
    assert!(!pool.can_send(X, Class::Normal));
    assert!(pool.can_send(Y, Class::Normal));
    pool.check();
}

#[test]
fn a_removed_lane_leaves_the_sessions_of_a_relay_to_others() {
    let mut pool = pool(caps(2), [X, Y]);
    let idle = open(&mut pool, X, ms(0));
    pool.remove_lane(ms(1), X);
    pool.check();
    assert_eq!(pool.next_close(), None);
    let taken = pool.take(ms(2), Y, Class::Normal, 1);
    assert_eq!(taken, Some((A, idle)));
    // Its lane is removed while it carries a message: it stays, too.
    pool.remove_lane(ms(3), Y);
    pool.released(ms(4), idle, true);
    assert_eq!((pool.next_close(), pool.counts().idle), (None, 1));
    pool.check();
    pool.add_lane(X);
    pool.add_lane(LaneId(9));
    assert!(pool.can_send(X, Class::Normal) && pool.can_send(LaneId(9), Class::Normal));
    pool.check();
    // One that is being opened for a removed lane is closed.
    assert!(pool.take(ms(5), X, Class::Normal, 1).is_some());
    pool.set_backlog(X, NORMAL, 1);
    let (opening, _, _) = pool.next_open(ms(5)).expect("there is room");
    pool.remove_lane(ms(6), X);
    assert_eq!(pool.next_close(), Some(opening));
    pool.check();
}

#[test]
fn an_account_becomes_a_relay_once_its_sessions_are_closed() {
    let hosts = SessionCaps {
        kind: SessionKind::Connections,
        ..caps(2)
    };
    let mut pool = pool(hosts, [X, Y]);
    let idle = open(&mut pool, X, ms(0));
    let busy = open(&mut pool, Y, ms(0));
    assert!(pool.take(ms(1), Y, Class::Normal, 1).is_some());
    pool.add_account(A, caps(2));
    pool.check();
    assert_eq!(pool.next_wake(), Some(Mono(0)));
    pool.wake(ms(2));
    assert_eq!(pool.next_close(), Some(idle));
    pool.session_closed(ms(2), idle);
    pool.set_backlog(X, NORMAL, 2);
    assert_eq!(pool.next_open(ms(3)), None, "the other is busy");
    pool.released(ms(4), busy, true);
    assert_eq!(pool.next_close(), Some(busy));
    pool.session_closed(ms(4), busy);
    pool.check();
    let (session, _, _) = pool.next_open(ms(5)).expect("there is room");
    pool.session_ready(ms(5), session);
    assert!(pool.can_send(Y, Class::Normal), "it serves both");
    // And back again.
    pool.add_account(A, hosts);
    pool.wake(ms(6));
    assert_eq!(pool.next_close(), Some(session));
    pool.session_closed(ms(6), session);
    pool.check();
    let (session, _, _) = pool.next_open(ms(7)).expect("there is room");
    pool.session_ready(ms(7), session);
    assert!(pool.can_send(X, Class::Normal) && !pool.can_send(Y, Class::Normal));
    pool.check();
}

#[test]
fn few_relays_serve_many_lanes_with_few_sessions() {
    let mut case = Case::new(4, 100, Load::Percent(70))
        .rate(20, 5)
        .sessions(8, 100);
    case.caps.kind = SessionKind::RelayConnections;
    case.measured_s = 100;
    let findings = run(case, 1);
    assert!(findings.drained, "{findings:?}");
    assert!(findings.of_possible >= 0.99, "{findings:?}");
    assert!(findings.worst_lane >= 0.9, "{findings:?}");
    assert!(findings.openings_per_1000 <= 15.0, "{findings:?}");
}
