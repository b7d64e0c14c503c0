//! The rules of the gate, one by one.

use outflow_core::class::Class;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::pool::{ClassMask, Pool, PoolSettings, SessionCaps, SessionKind};
use outflow_core::time::{Mono, Nanos};

const A: AccountId = AccountId(7);
const B: AccountId = AccountId(70);
const X: LaneId = LaneId(3);
const Y: LaneId = LaneId(300);
const NORMAL: ClassMask = ClassMask::of(Class::Normal);

fn ms(millis: u64) -> Mono {
    Mono(0) + Nanos::from_millis(millis)
}

fn caps(max_connections: u32) -> SessionCaps {
    SessionCaps {
        max_connections,
        per_destination: max_connections,
        ..SessionCaps::default()
    }
}

/// Accounts that are ready for all classes, and the lanes X and Y.
fn pool(accounts: &[AccountId], caps: SessionCaps) -> Pool {
    let mut pool = Pool::new(PoolSettings::default());
    pool.add_lane(X);
    pool.add_lane(Y);
    for account in accounts {
        pool.add_account(*account, caps);
        pool.set_ready(*account, ClassMask::ALL);
    }
    pool
}

/// Opens one session for a lane, and leaves the lane without a backlog.
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
fn a_message_waits_for_a_session_and_tokens_for_both() {
    let mut pool = pool(&[A], caps(2));
    assert!(!pool.can_send(X, Class::Normal));
    let session = open(&mut pool, X, ms(0));
    assert!(pool.can_send(X, Class::Normal));
    assert!(
        !pool.can_send(Y, Class::Normal),
        "a session serves one lane"
    );
    pool.set_ready(A, ClassMask::down_to(Class::High));
    assert!(!pool.can_send(X, Class::Normal));
    assert!(pool.can_send(X, Class::High));
    let taken = pool.take(ms(1), X, Class::High, 1);
    assert_eq!(taken, Some((A, session)));
    assert!(!pool.can_send(X, Class::High), "the only session is busy");
    pool.released(ms(2), session, true);
    assert!(pool.can_send(X, Class::High));
}

#[test]
fn a_bit_that_flips_starts_a_search_and_a_decline_ends_it() {
    let mut pool = pool(&[A], caps(2));
    open(&mut pool, X, ms(0));
    pool.set_ready(A, ClassMask::NONE);
    pool.set_backlog(X, NORMAL, 5);
    assert_eq!(pool.next_match(), None);
    pool.set_ready(A, ClassMask::ALL);
    assert_eq!(pool.next_match(), Some((A, X, Class::Normal)));
    pool.decline(X, Class::Normal);
    assert_eq!(pool.next_match(), None);
    pool.set_backlog(X, NORMAL, 5);
    assert_eq!(pool.next_match(), Some((A, X, Class::Normal)));
    assert!(pool.take_from(ms(1), A, X, Class::Normal, 1).is_some());
    assert_eq!(pool.next_match(), None);
    pool.check();
}

#[test]
fn the_most_urgent_goes_first_and_the_least_is_not_starved() {
    let slots = SessionCaps {
        kind: SessionKind::Slots,
        ..caps(1)
    };
    let mut pool = pool(&[A], slots);
    let all = ClassMask::of(Class::High).with(Class::Low);
    pool.set_backlog(X, all, 1_000);
    let mut low = 0;
    for step in 0..1_000 {
        let (account, lane, class) = pool.next_match().expect("a slot is free");
        low += u32::from(class == Class::Low);
        let session = pool.take_from(ms(step), account, lane, class, 1);
        pool.released(ms(step), session.expect("it was matched"), true);
    }
    assert!((15..=25).contains(&low), "{low} of 1,000");
}

/// One account with one request slot.
fn one_slot() -> Pool {
    let slots = SessionCaps {
        kind: SessionKind::Slots,
        ..caps(1)
    };
    pool(&[A], slots)
}

/// Sends what the pool matches, each message of this cost; how often each class
/// had its turn.
fn turns(pool: &mut Pool, steps: u64, cost: u32) -> [u32; Class::COUNT] {
    let mut turns = [0; Class::COUNT];
    for step in 0..steps {
        let (account, lane, class) = pool.next_match().expect("a slot is free");
        turns[class.index()] += 1;
        let session = pool.take_from(ms(step), account, lane, class, cost);
        pool.released(ms(step), session.expect("it was matched"), true);
    }
    turns
}

#[test]
fn each_of_three_lower_classes_gets_its_part() {
    let mut pool = one_slot();
    pool.set_backlog(X, ClassMask::ALL, 1_000);
    let [_, lower @ ..] = turns(&mut pool, 10_000, 1);
    for class in lower {
        assert!(class >= 200, "{lower:?} of 10,000");
    }
}

#[test]
fn what_goes_in_order_makes_no_debt() {
    let mut pool = one_slot();
    for _ in 0..10 {
        // Nobody waits above it: these are not the turns that it earns.
        pool.set_backlog(X, ClassMask::of(Class::Low), 10);
        assert_eq!(turns(&mut pool, 5, 5), [0, 0, 0, 5]);
        pool.set_backlog(X, ClassMask::of(Class::High).with(Class::Low), 100);
        let [_, _, _, low] = turns(&mut pool, 100, 1);
        assert_eq!(low, 2, "of 100");
    }
}

#[test]
fn slots_need_no_opening_and_keep_their_caps() {
    let mut pool = pool(
        &[A],
        SessionCaps {
            kind: SessionKind::Slots,
            per_destination: 2,
            ..caps(3)
        },
    );
    let take = |pool: &mut Pool, lane| pool.take(ms(1), lane, Class::Normal, 1);
    let (_, first) = take(&mut pool, X).expect("a slot");
    assert!(take(&mut pool, X).is_some());
    assert!(take(&mut pool, X).is_none(), "two to one destination");
    assert!(take(&mut pool, Y).is_some());
    assert!(take(&mut pool, Y).is_none(), "three in all");
    pool.released(ms(2), first, true);
    assert!(take(&mut pool, Y).is_some());
    assert_eq!(pool.next_open(ms(3)), None);
    pool.check();
}

#[test]
fn an_arriving_message_takes_the_account_used_least_recently() {
    let mut pool = pool(&[A, B], caps(2));
    open(&mut pool, X, ms(0));
    open(&mut pool, X, ms(0));
    let mut used = Vec::new();
    for step in 1..=4 {
        let (account, session) = pool.take(ms(step), X, Class::Normal, 1).expect("idle");
        pool.released(ms(step), session, true);
        used.push(account);
    }
    assert!(used == [A, B, A, B] || used == [B, A, B, A], "{used:?}");
}

#[test]
fn a_used_up_session_is_closed_and_late_events_are_ignored() {
    let one = SessionCaps {
        messages_per_session: 1,
        ..caps(1)
    };
    let mut pool = pool(&[A], one);
    let session = open(&mut pool, X, ms(0));
    assert!(pool.take(ms(1), X, Class::Normal, 1).is_some());
    pool.released(ms(2), session, true);
    assert_eq!(pool.next_close(), Some(session));
    assert_eq!(pool.counts().closing, 1, "counts until it is closed");
    pool.session_closed(ms(3), session);
    let before = pool.counts();
    pool.session_closed(ms(4), session);
    pool.released(ms(4), session, true);
    pool.session_ready(ms(4), session);
    assert_eq!(pool.counts(), before);
    let next = open(&mut pool, X, ms(5));
    pool.session_closed(ms(6), session);
    assert_eq!(pool.counts().idle, 1, "another generation");
    assert_ne!(next, session);
}

#[test]
fn a_failed_connect_backs_the_pair_off_twice_as_long_each_time() {
    let mut pool = pool(&[A], caps(1));
    pool.set_backlog(X, NORMAL, 100);
    let mut now = ms(0);
    let mut waits = Vec::new();
    let (mut session, _, _) = pool.next_open(now).expect("there is room");
    for _ in 0..9 {
        pool.session_failed(now, session);
        let failed_at = now;
        session = loop {
            if let Some((session, _, _)) = pool.next_open(now) {
                break session;
            }
            now = pool.next_wake().expect("a back-off ends");
            pool.wake(now);
        };
        waits.push(now.since(failed_at).0 / 1_000_000_000);
        pool.check();
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn eight_failures_over_many_accounts_leave_one_probe() {
    let accounts: Vec<AccountId> = (0..20).map(AccountId).collect();
    let mut pool = pool(&accounts, caps(1));
    pool.set_backlog(X, NORMAL, 100);
    let mut failed = 0;
    while let Some((session, _, _)) = pool.next_open(ms(0)) {
        pool.session_failed(ms(0), session);
        failed += 1;
    }
    assert_eq!(failed, 8);
    pool.wake(ms(1_000));
    let (probe, _, _) = pool.next_open(ms(1_000)).expect("one probe");
    assert_eq!(pool.next_open(ms(1_000)), None, "only one");
    pool.session_ready(ms(1_100), probe);
    assert!(pool.next_open(ms(1_100)).is_some(), "and then all");
}

#[test]
fn a_session_is_taken_only_after_a_while_from_a_lane_that_has_messages() {
    let mut pool = pool(&[A], caps(1));
    let session = open(&mut pool, X, ms(0));
    pool.set_ready(A, ClassMask::NONE);
    pool.set_backlog(X, NORMAL, 1);
    pool.set_backlog(Y, NORMAL, 1);
    assert_eq!(pool.next_open(ms(10)), None);
    assert_eq!(pool.next_close(), None, "held too short");
    let due = pool.next_wake().expect("the end of the hold");
    pool.wake(due);
    assert_eq!(pool.next_open(due), None);
    assert_eq!(pool.next_close(), Some(session));
    pool.session_closed(due, session);
    let (_, _, lane) = pool.next_open(due).expect("the slot is free");
    assert_eq!(lane, Y);
    pool.check();
}

#[test]
fn a_critical_message_without_a_session_does_not_wait_for_that() {
    let mut pool = pool(&[A], caps(1));
    let session = open(&mut pool, X, ms(0));
    pool.set_backlog(Y, ClassMask::of(Class::Critical), 1);
    assert_eq!(pool.next_open(ms(10)), None);
    assert_eq!(pool.next_close(), Some(session));
}

#[test]
fn held_lanes_and_blocked_accounts_do_nothing() {
    let mut pool = pool(&[A], caps(2));
    open(&mut pool, X, ms(0));
    pool.hold_lane(X, true);
    pool.set_backlog(X, NORMAL, 10);
    assert!(!pool.can_send(X, Class::Normal));
    assert_eq!(pool.next_match(), None);
    assert_eq!(pool.next_open(ms(1)), None);
    pool.hold_lane(X, false);
    pool.block_account(A);
    assert_eq!(pool.next_match(), None);
    assert_eq!(pool.next_open(ms(1)), None);
    pool.unblock_account(A);
    assert_eq!(pool.next_match(), Some((A, X, Class::Normal)));
}

#[test]
fn an_idle_session_is_closed_in_time() {
    let mut pool = pool(&[A], caps(2));
    let session = open(&mut pool, X, ms(0));
    pool.wake(ms(29_999));
    assert_eq!(pool.next_close(), None);
    pool.wake(ms(30_000));
    assert_eq!(pool.next_close(), Some(session));
}

#[test]
fn a_shut_product_stops_one_pair_only() {
    let mut pool = pool(&[A], caps(2));
    open(&mut pool, X, ms(0));
    open(&mut pool, Y, ms(0));
    pool.set_product_open(A, X, ClassMask::of(Class::Critical));
    assert!(!pool.can_send(X, Class::Normal));
    assert!(pool.can_send(X, Class::Critical));
    assert!(pool.can_send(Y, Class::Normal));
    pool.set_product_open(A, X, ClassMask::ALL);
    assert!(pool.can_send(X, Class::Normal));
}

#[test]
fn a_removed_account_lets_its_sessions_go() {
    let mut pool = pool(&[A, B], caps(1));
    let first = open(&mut pool, X, ms(0));
    let (account, session) = pool.take(ms(1), X, Class::Normal, 1).expect("idle");
    pool.remove_account(ms(2), account);
    pool.released(ms(3), session, true);
    assert_eq!(pool.next_close(), Some(first));
    pool.session_closed(ms(4), first);
    assert_eq!(pool.counts().live(), 0);
    pool.remove_lane(ms(5), X);
    pool.add_lane(X);
    pool.add_account(account, caps(1));
    pool.set_ready(account, ClassMask::ALL);
    pool.check();
    open(&mut pool, X, ms(6));
}
