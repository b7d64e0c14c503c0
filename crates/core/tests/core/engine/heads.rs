//! What is looked at when a message is about to go: its recipient's limit, its
//! tenant's retry budget, its expiry.

use outflow_core::engine::Settings;
use outflow_core::engine::action::Record;
use outflow_core::message::{Head, Seq, State};
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::time::Nanos;

use super::{Desk, START, account, throttled};

/// Deferrals without an attempt: who stepped aside, and for how long.
fn stepped_aside(desk: &Desk) -> Vec<(u64, Nanos)> {
    let aside = desk.written.iter().filter_map(|record| match record {
        Record::Deferral {
            seq,
            until,
            attempt: None,
            ..
        } => Some((seq.0, until.since(START))),
        _ => None,
    });
    aside.collect()
}

#[test]
fn retries_beyond_the_budget_wait_without_losing_an_attempt() {
    // One retry a minute, and none for first attempts.
    let settings = Settings {
        retry_budget: (0, 1),
        learns: false,
        ..Settings::default()
    };
    let mut desk = Desk::with_settings(settings, Policies::default());
    desk.set_account(account("main", &[]));
    let flow = desk.flow("google");
    desk.queue(flow, 1..=2);
    assert_eq!(desk.sent(), [1, 2]);
    desk.reply(1, throttled());
    desk.reply(2, throttled());
    let mut again: Vec<Head> = Vec::new();
    let is_message = |record: &&Record| !matches!(record, Record::Adapted { .. });
    for record in desk.written.iter().filter(is_message) {
        let Record::Deferral {
            seq,
            attempt: Some(attempt),
            ..
        } = record
        else {
            panic!("{record:?} was written");
        };
        assert_eq!(attempt.account.as_str(), "main");
        let mut head = Head::new(*seq, START);
        head.attempts = attempt.attempts;
        head.first_attempt_at = attempt.first_attempt_at;
        again.push(head);
    }
    desk.written.clear();
    desk.queue_heads(flow, again);
    assert_eq!(desk.sent(), [1, 2, 1], "the budget pays for one");
    assert_eq!(stepped_aside(&desk), [(2, Nanos::from_secs(60))]);
    desk.reply(1, Reply::accepted());
    assert_eq!(desk.settled(), [(1, State::Delivered)]);
}

#[test]
fn an_expired_head_is_settled_where_it_waits() {
    let mut desk = Desk::new(Policies::default());
    desk.set_account(account("main", &["1/min"]));
    let flow = desk.flow("google");
    let mut heads: Vec<Head> = (1..=3).map(|seq| Head::new(Seq(seq), START)).collect();
    heads[1].expires_at = START + Nanos::from_secs(30);
    desk.queue_heads(flow, heads);
    desk.pass(Nanos::from_secs(60));
    assert_eq!(desk.sent(), [1, 3]);
    assert_eq!(desk.settled(), [(2, State::Expired)]);
}
