//! "Why has this message not been sent yet?"

use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::explain::Obstacle;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::name::Name;
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Nanos, Wall};

use super::{Desk, START, account, google_at_one, limits, to};

#[test]
fn a_waiting_message_names_its_limit_and_the_time() {
    let mut desk = Desk::new(google_at_one());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    desk.queue(flow, 1..=3);
    assert_eq!(desk.sent(), [1], "a burst of one lets one message out");
    let answer = desk.explain(flow, 0);
    assert_eq!(
        limits(&answer.waiting_on, START),
        [("isp:google".to_owned(), Some(1))]
    );
    let second = START + Nanos::from_secs(1);
    assert_eq!(answer.earliest, Some(second));
    // Two behind it wait two seconds longer.
    let later = desk.explain(flow, 3);
    assert_eq!(later.earliest, Some(second + Nanos::from_secs(2)));
    assert_eq!(later.ahead_in_flow, 3);
}

#[test]
fn a_pool_without_accounts_says_so() {
    let mut desk = Desk::new(google_at_one());
    let flow = desk.flow("google");
    desk.queue(flow, 1..=1);
    assert!(desk.deliveries.is_empty());
    let answer = desk.explain(flow, 0);
    assert_eq!(answer.waiting_on, [Obstacle::NoAccount]);
    assert_eq!(answer.earliest, None);
}

#[test]
fn a_full_window_of_the_account_is_named_with_the_time_it_admits() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &["2/min", "100/h"]));
    desk.queue(flow, 1..=1);
    desk.pass(Nanos::from_secs(20));
    desk.queue(flow, 2..=4);
    assert_eq!(desk.sent(), [1, 2]);
    let answer = desk.explain(flow, 0);
    // The first of the two leaves the window 60 s after it was sent, not at
    // the next full minute.
    let named = limits(&answer.waiting_on, desk.now.wall);
    assert_eq!(named, [("account:main#minute".to_owned(), Some(40))]);
    assert_eq!(answer.earliest, Some(START + Nanos::from_secs(60)));
    desk.pass(Nanos::from_secs(40));
    assert_eq!(desk.sent(), [1, 2, 3], "it went at the time that was said");
}

#[test]
fn of_several_accounts_the_one_that_opens_first_is_named() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("slow", &["1/h"]));
    desk.set_account(account("quick", &["1/min"]));
    desk.queue(flow, 1..=3);
    assert_eq!(desk.deliveries.len(), 2);
    let answer = desk.explain(flow, 0);
    let named = limits(&answer.waiting_on, desk.now.wall);
    assert_eq!(named, [("account:quick#minute".to_owned(), Some(60))]);
    assert_eq!(answer.earliest, Some(START + Nanos::from_secs(60)));
}

#[test]
fn those_ahead_count_at_the_rate_of_a_lone_account() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &["10/min"]));
    desk.queue(flow, 1..=30);
    assert_eq!(desk.deliveries.len(), 10);
    // Ten pass with the next window, the last of these ten more a minute later.
    let answer = desk.explain(flow, 20);
    assert_eq!(
        answer.earliest,
        Some(START + Nanos::from_secs(60) + Nanos::from_secs(60))
    );
}

#[test]
fn a_blocked_account_is_named_with_its_time() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    desk.queue(flow, 1..=1);
    let wait = Nanos::from_secs(90);
    desk.reply(
        1,
        Reply::Said {
            stage: Stage::Data,
            code: 429,
            enhanced: None,
            text: "Too Many Requests".into(),
            retry_after: Some(wait),
            allows: None,
        },
    );
    desk.queue(flow, 2..=2);
    let until = START + wait;
    let answer = desk.explain(flow, 0);
    let account = Name::from("main");
    let blocked = Obstacle::AccountBlocked { account, until };
    assert_eq!(answer.waiting_on, [blocked]);
    assert_eq!(answer.earliest, Some(until));
    desk.pass(wait);
    assert_eq!(desk.sent(), [1, 2]);
}

#[test]
fn busy_sessions_are_no_limit() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    desk.queue(flow, 1..=11);
    assert_eq!(desk.deliveries.len(), 10, "ten slots");
    assert_eq!(desk.waiting_on(flow), [Obstacle::NoAccountReady]);
}

#[test]
fn a_lacking_session_is_named_beside_a_limit_that_those_ahead_use() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &["20/min"]));
    desk.queue(flow, 1..=60);
    assert_eq!(desk.deliveries.len(), 10, "ten slots, and tokens for more");
    let waiting_on = desk.explain(flow, 40).waiting_on;
    let named = limits(&waiting_on, desk.now.wall);
    assert_eq!(named.len(), 1, "forty ahead need more tokens: {named:?}");
    assert_eq!(waiting_on.last(), Some(&Obstacle::NoAccountReady));
}

#[test]
fn a_pause_with_an_end_says_when() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &[]));
    let until = START + Nanos::from_secs(300);
    desk.command(Command::Pause {
        id: PauseId(1),
        matches: to("google"),
        until: Some(until),
    });
    desk.queue(flow, 1..=1);
    let answer = desk.explain(flow, 0);
    assert_eq!(answer.waiting_on, [Obstacle::Paused]);
    assert_eq!(answer.earliest, Some(until));
    let deferred = answer.not_before(Wall(until.0 + 1));
    assert_eq!(deferred.earliest, Some(Wall(until.0 + 1)));
}

#[test]
fn limits_are_written_as_they_are_read() {
    for text in [
        "14/s burst 28",
        "14/s",
        "0.5/s",
        "600/min",
        "50k/day",
        "2M/day",
        "100/h burst 5",
        "40/s spaced",
        "0.5/min spaced",
        "50k/day@America/Los_Angeles",
        "8 concurrent",
    ] {
        let spec = LimitSpec::parse(text).unwrap();
        assert_eq!(spec.to_string(), text);
        assert_eq!(LimitSpec::parse(&spec.to_string()).unwrap(), spec);
    }
}
