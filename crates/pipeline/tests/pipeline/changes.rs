//! Questions and changes while messages flow.

use outflow_core::engine::command::PauseId;
use outflow_core::engine::explain::Obstacle;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::control::{Bulk, Control, Touched};
use outflow_ports::query::{Filter, Query};
use outflow_transport_sandbox::{Answer, Behaviour, Failure};

use super::seat::{Seat, account, ask, settled};

fn google() -> Match {
    Match::from_pairs([("isp", "google")]).unwrap()
}

fn failing(answer: Answer) -> Behaviour {
    Behaviour {
        failures: vec![Failure {
            permille: 1_000,
            answer,
        }],
        ..Behaviour::default()
    }
}

/// The numbers of all live messages in a state, page by page.
fn in_state(seat: &Seat, state: State, matches: Option<Match>) -> Vec<Seq> {
    let filter = Filter {
        states: vec![state],
        matches,
    };
    let mut found = Vec::new();
    let mut from = Some(Seq(0));
    while let Some(next) = from {
        let page = ask(|then| seat.handle.messages(filter.clone(), next, 3, then));
        assert!(page.items.len() <= 3);
        found.extend(page.items.iter().map(|message| message.seq));
        from = page.next;
    }
    found
}

#[test]
fn a_pause_holds_and_says_so_and_what_is_cancelled_is_gone() {
    let seat = Seat::new(&["2/min"]);
    seat.handle.pause(PauseId(1), google(), None);
    let seqs = seat.submit(8);
    for &seq in &seqs {
        assert_eq!(seat.state(seq), Some(State::Queued));
    }
    let (message, why) = seat.explain(seqs[3]).unwrap();
    assert_eq!(message.key.destination.to_string(), "isp:google");
    assert_eq!(why.waiting_on[0], Obstacle::Paused);
    assert_eq!(why.earliest, None, "nobody knows when it is resumed");
    assert_eq!(why.ahead_in_flow, 3);
    let lanes = ask(|then| seat.handle.lanes(then));
    assert_eq!(lanes.len(), 1);
    assert_eq!(lanes[0].name, "default/isp:google");
    assert_eq!((lanes[0].waiting, lanes[0].paused), ([0, 0, 8, 0], true));

    assert_eq!(seat.cancel(seqs[0]), Touched::Done);
    assert_eq!(seat.cancel(Seq(999)), Touched::Unknown);
    seat.until("the cancelled one is gone", |seat| {
        seat.message(seqs[0]).is_none()
    });
    assert_eq!(in_state(&seat, State::Queued, None), seqs[1..]);
    let nobody = Some(Match::from_pairs([("tenant", "nobody")]).unwrap());
    assert_eq!(in_state(&seat, State::Queued, nobody), []);

    seat.handle.resume(PauseId(1));
    seat.until("the window is full", |seat| seat.taken() == 2);
    seat.until("the window is explained", |seat| {
        let (_, why) = seat.explain(seqs[3]).unwrap();
        let named = why.waiting_on.iter().any(|obstacle| {
            matches!(obstacle, Obstacle::Limit { key, until: Some(_) }
                if key.to_string() == "account:main#minute")
        });
        named && why.earliest.is_some()
    });
    let limits = ask(|then| seat.handle.limits(then));
    assert_eq!(limits.len(), 1);
    assert_eq!((limits[0].spec.as_str(), limits[0].tokens), ("2/min", 0));
    assert!(limits[0].next_grant.is_some());

    let count = |dry_run| ask(|then| seat.handle.bulk(Bulk::Cancel, google(), dry_run, then));
    assert_eq!(count(true), 5);
    assert_eq!(in_state(&seat, State::Queued, Some(google())).len(), 5);
    assert_eq!(count(false), 5);
    seat.until("all are gone", |seat| {
        in_state(seat, State::Queued, None).is_empty() && seat.depth() == Default::default()
    });
    let mut end = seat.end();
    let settled = settled(&mut end);
    let cancelled = settled.values().filter(|it| **it == [State::Cancelled]);
    assert_eq!(cancelled.count(), 6);
    let delivered = settled.values().filter(|it| **it == [State::Delivered]);
    assert_eq!(delivered.count(), 2);
}

#[test]
fn what_is_deferred_says_until_when_and_is_tried_now_on_demand() {
    let seat = Seat::new(&[]);
    seat.behave(failing(Answer::out_of_order()));
    let seqs = seat.submit(3);
    seat.until("all are deferred", |seat| {
        in_state(seat, State::Deferred, None) == seqs
    });
    assert_eq!(seat.depth().deferred, [0, 0, 3, 0]);
    let (message, why) = seat.explain(seqs[0]).unwrap();
    let until = message.due_at.unwrap();
    assert_eq!((message.state, message.attempts), (State::Deferred, 1));
    assert_eq!(why.waiting_on, [Obstacle::Deferred { until }]);
    assert_eq!(why.earliest, Some(until));

    seat.behave(Behaviour::default());
    let retry = |seq| ask(|then| seat.handle.retry(seq, then));
    assert_eq!(retry(seqs[0]), Touched::Done);
    seat.until("one is delivered", |seat| seat.taken() == 1);
    seat.until("one is settled", |seat| seat.message(seqs[0]).is_none());
    assert_eq!(retry(seqs[0]), Touched::Unknown);
    let all = ask(|then| seat.handle.bulk(Bulk::Retry, google(), false, then));
    assert_eq!(all, 2);
    seat.until("all are delivered", |seat| seat.taken() == 3);
    seat.end();
}

#[test]
fn what_is_on_its_way_is_not_cancelled() {
    let seat = Seat::new(&[]);
    let after = Nanos::from_secs(3_600);
    seat.behave(failing(Answer::Silence { after }));
    let seq = seat.submit(1)[0];
    seat.until("it is on its way", |seat| {
        seat.state(seq) == Some(State::Sending)
    });
    assert_eq!(seat.cancel(seq), Touched::Sending);
    assert_eq!(in_state(&seat, State::Sending, None), [seq]);
    assert!(seat.explain(seq).is_none(), "it does not wait");
    seat.handle.shut_down(Nanos::ZERO);
    seat.thread.join().unwrap();
}

#[test]
fn what_waits_for_an_account_moves_to_a_pool_that_has_one() {
    let seat = Seat::new(&[]);
    seat.handle.remove_account(Name::from("main"));
    let seqs = seat.submit(4);
    let (_, why) = seat.explain(seqs[0]).unwrap();
    assert_eq!(why.waiting_on, [Obstacle::NoAccount]);
    let mut other = account(&[]);
    other.pool = Name::from("other");
    seat.handle.set_account(other);
    let pool = Name::from("other");
    let moved = ask(|then| {
        let bulk = Bulk::Move { pool };
        seat.handle.bulk(bulk, google(), false, then);
    });
    assert_eq!(moved, 4);
    seat.until("all are delivered", |seat| seat.taken() == 4);
    assert!(seat.sandbox.last(1)[0].at > Wall(0));
    seat.end();
}
