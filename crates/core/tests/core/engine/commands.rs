//! Pauses, cancels, moves and retries while messages wait.

use outflow_core::destination::Destination;
use outflow_core::engine::action::{Hasten, Record};
use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::explain::Obstacle;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::suppression::Reason;
use outflow_core::time::{Nanos, Wall};

use super::{Desk, account, google_at_one, to};

fn of_tenant(tenant: &str) -> Match {
    Match::from_pairs([("tenant", tenant)]).unwrap()
}

#[test]
fn a_pause_holds_its_flow_and_a_resume_lets_it_go() {
    let mut desk = Desk::new(google_at_one());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    let (id, matches) = (PauseId(1), to("google"));
    desk.command(Command::Pause {
        id,
        matches,
        until: None,
    });
    desk.queue(flow, 1..=3);
    assert!(desk.deliveries.is_empty());
    assert!(desk.waiting_on(flow).contains(&Obstacle::Paused));
    desk.command(Command::Resume { id });
    assert_eq!(desk.sent(), [1]);
}

#[test]
fn what_is_cancelled_is_settled_and_never_sent() {
    let mut desk = Desk::new(google_at_one());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    desk.queue(flow, 1..=3);
    desk.command(Command::Cancel { flow, seq: Seq(2) });
    assert_eq!(desk.settled(), [(2, State::Cancelled)]);
    // The first is on its way: it is not cancelled any more.
    desk.command(Command::Cancel { flow, seq: Seq(1) });
    assert_eq!(desk.settled().len(), 1);
}

#[test]
fn what_is_suppressed_is_settled_with_its_reason_and_never_sent() {
    let mut desk = Desk::new(google_at_one());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    let error = || Box::new(Reason::OptOut.error(Wall(0)));
    // One is on its way from the store, one is not yet known to be there.
    desk.slow_pages = true;
    desk.queue(flow, 1..=2);
    let seq = Seq(1);
    desk.command(Command::Suppress {
        flow,
        seq,
        error: error(),
    });
    desk.slow_pages = false;
    desk.hand_over();
    assert_eq!(desk.settled(), [(1, State::Suppressed)]);
    assert_eq!(desk.sent(), [2]);
    let written = desk.written.first();
    let Some(Record::Settlement { error, .. }) = written else {
        panic!("{written:?}");
    };
    let text = &error.as_ref().unwrap().text;
    assert!(
        text.contains("opt_out, since 1970-01-01T00:00:00Z"),
        "{text}"
    );
}

#[test]
fn cancel_all_settles_heads_and_tells_the_store_of_the_rest() {
    let mut desk = Desk::new(google_at_one());
    desk.set_account(account("main", &[]));
    let (google, other) = (desk.flow("google"), desk.flow("other"));
    desk.queue(google, 1..=3);
    desk.queue(other, 4..=4);
    let (matches, through) = (to("google"), Seq(2));
    desk.command(Command::CancelAll { matches, through });
    // One is in flight, three came later than the command.
    assert_eq!(desk.settled(), [(2, State::Cancelled)]);
    let told = desk.written.iter().filter(|record| {
        matches!(record, Record::Cancelled { flow, through } if *flow == google && *through == Seq(2))
    });
    assert_eq!(told.count(), 1);
    assert_eq!(desk.sent(), [1, 4]);
    assert_eq!(desk.engine.waiting(&to("google")), 1);
}

#[test]
fn what_is_withdrawn_while_a_page_is_on_its_way_is_not_sent() {
    let mut desk = Desk::new(Policies::default());
    desk.set_account(account("main", &[]));
    let flow = desk.flow("google");
    desk.slow_pages = true;
    desk.queue(flow, 1..=4);
    // The store has handed them over, the engine has not seen them.
    desk.command(Command::Cancel { flow, seq: Seq(2) });
    let (matches, through) = (to("google"), Seq(1));
    desk.command(Command::CancelAll { matches, through });
    desk.hand_over();
    assert_eq!(desk.sent(), [3, 4]);
    let cancelled = [(2, State::Cancelled), (1, State::Cancelled)];
    assert_eq!(desk.settled(), cancelled);
}

#[test]
fn move_all_hands_what_waits_to_another_pool() {
    let mut desk = Desk::new(google_at_one());
    desk.set_account(account("main", &[]));
    let from = desk.flow("google");
    desk.queue(from, 1..=3);
    desk.slow_pages = true;
    desk.queue(from, 4..=5);
    let pool = Name::from("backup");
    let (matches, through) = (Match::everything(), Seq(5));
    desk.command(Command::MoveAll {
        matches,
        pool: pool.clone(),
        through,
    });
    desk.hand_over();
    let mut key = FlowKey::to(Destination::isp("google"));
    key.pool = pool;
    let to = desk.flow_of(key);
    let mut moved: Vec<u64> = Vec::new();
    for record in &desk.written {
        match record {
            Record::Moved {
                flow,
                to: target,
                held,
                ..
            } => {
                assert_eq!((*flow, *target), (from, to));
                moved.extend(held.iter().map(|seq| seq.0));
            }
            other => panic!("{other:?} was written"),
        }
    }
    assert_eq!(moved, [2, 3, 4, 5], "heads held, and those on their way");
    assert_eq!(desk.sent(), [1]);
    assert_eq!(desk.engine.waiting(&Match::everything()), 0);
}

#[test]
fn retries_tell_the_store_what_is_due_now() {
    let mut desk = Desk::new(Policies::default());
    let mut acme = FlowKey::to(Destination::isp("google"));
    acme.tenant = Name::from("acme");
    let acme = desk.flow_of(acme);
    let other = desk.flow("google");
    desk.command(Command::Retry {
        flow: other,
        seq: Seq(7),
    });
    let (matches, through) = (of_tenant("acme"), Seq(9));
    desk.command(Command::RetryAll { matches, through });
    let hastened = desk.written.iter().map(|record| match record {
        Record::Hastened { flow, which } => (*flow, *which),
        other => panic!("{other:?} was written"),
    });
    assert_eq!(
        hastened.collect::<Vec<_>>(),
        [
            (other, Hasten::One(Seq(7))),
            (acme, Hasten::Through(Seq(9)))
        ]
    );
}

#[test]
fn draining_finishes_what_is_in_flight_and_sends_no_more() {
    let mut desk = Desk::new(Policies::default());
    desk.set_account(account("main", &[]));
    let flow = desk.flow("google");
    desk.queue(flow, 1..=1);
    desk.command(Command::Drain);
    desk.queue(flow, 2..=2);
    assert_eq!(desk.sent(), [1]);
    assert!(!desk.engine.is_quiet());
    assert_eq!(desk.waiting_on(flow), [Obstacle::Draining]);
    desk.reply(1, outflow_core::reply::Reply::accepted());
    assert!(desk.engine.is_quiet());
    assert_eq!(desk.settled(), [(1, State::Delivered)]);
}

#[test]
fn a_flow_ends_however_often_operators_look_at_all_flows() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    desk.queue(flow, 1..=1);
    desk.reply(1, Reply::accepted());
    for pause in 0..10 {
        desk.pass(Nanos::from_secs(1));
        let id = PauseId(pause);
        desk.command(Command::Pause {
            id,
            matches: of_tenant("nobody"),
            until: None,
        });
        desk.pass(Nanos::from_secs(1));
        desk.set_account(account("main", &[]));
        desk.command(Command::Resume { id });
    }
    assert_eq!(desk.closing, [flow]);
}

#[test]
fn a_flow_ends_however_often_operators_cancel_what_matches_it() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    desk.queue(flow, 1..=1);
    desk.reply(1, Reply::accepted());
    for _ in 0..10 {
        desk.pass(Nanos::from_secs(2));
        desk.command(Command::CancelAll {
            matches: to("google"),
            through: Seq(1),
        });
    }
    assert_eq!(desk.closing.first(), Some(&flow));
}
