//! Accounts that change or go while messages wait.

use outflow_core::account::{AccountSpec, SessionKind};
use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::engine::event::Event;
use outflow_core::engine::explain::Obstacle;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::Rate;
use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::time::Nanos;

use super::{Desk, account, google_at_one, throttled, to, with};

#[test]
fn a_raised_limit_lets_waiting_messages_go() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &["2/min"]));
    desk.queue(flow, 1..=6);
    assert_eq!(desk.sent(), [1, 2]);
    // What was sent still counts in the larger window.
    desk.set_account(account("main", &["5/min"]));
    assert_eq!(desk.sent(), [1, 2, 3, 4, 5]);
    desk.set_account(account("main", &[]));
    assert_eq!(desk.deliveries.len(), 6, "no limit, no wait");
}

#[test]
fn a_lowered_limit_holds_at_once() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &["5/min"]));
    desk.queue(flow, 1..=2);
    desk.set_account(account("main", &["2/min"]));
    desk.queue(flow, 3..=3);
    assert_eq!(desk.sent(), [1, 2]);
    desk.pass(Nanos::from_secs(60));
    assert_eq!(desk.sent(), [1, 2, 3]);
}

#[test]
fn a_removed_account_sends_no_more_and_its_replies_still_count() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    desk.set_account(account("main", &["2/min"]));
    desk.queue(flow, 1..=3);
    let gone = Name::from("main");
    desk.step(Event::AccountRemoved { account: gone });
    assert_eq!(desk.waiting_on(flow), [Obstacle::NoAccount]);
    desk.reply(1, Reply::accepted());
    desk.reply(2, throttled());
    assert_eq!(desk.settled(), [(1, State::Delivered)]);
    desk.pass(Nanos::from_secs(3_600));
    assert_eq!(desk.deliveries.len(), 2);
    desk.set_account(account("next", &[]));
    assert_eq!(desk.sent(), [1, 2, 3]);
}

#[test]
fn an_account_that_changes_its_pool_leaves_the_old_one() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    let mut main = account("main", &[]);
    desk.set_account(main.clone());
    main.pool = Name::from("other");
    desk.set_account(main);
    desk.queue(flow, 1..=1);
    assert_eq!(desk.waiting_on(flow), [Obstacle::NoAccount]);
    assert!(desk.deliveries.is_empty());
}

#[test]
fn a_limit_made_so_slow_that_it_must_reserve_goes_on() {
    let mut desk = Desk::new(google_at_one());
    let flow = desk.flow("google");
    desk.set_account(account("main", &["10/s burst 1"]));
    desk.queue(flow, 1..=3);
    assert_eq!(desk.sent(), [1]);
    // Both now take longer to fill than a restart may forget.
    let mut slow = Policy::new(to("google"));
    slow.rate = Some(RateOrShare::Rate(Rate::parse("6/min").unwrap()));
    slow.burst = Some(1);
    let policies = Box::new(with(slow));
    desk.step(Event::PolicyChanged { policies });
    desk.set_account(account("main", &["3/min burst 1"]));
    desk.pass(Nanos::from_secs(60));
    assert_eq!(desk.sent(), [1, 2, 3]);
}

#[test]
fn what_an_account_keeps_for_higher_classes_does_not_starve_a_lower_one() {
    let mut desk = Desk::new(Policies::default());
    let of_class = |class: Class| FlowKey {
        class,
        ..FlowKey::to(Destination::isp("google"))
    };
    let critical = desk.flow_of(of_class(Class::Critical));
    let low = desk.flow_of(of_class(Class::Low));
    // A fifth is kept for critical ones, and they take each token as it comes.
    desk.set_account(account("main", &["10/s burst 10"]));
    desk.queue(critical, 1..=2_000);
    desk.queue(low, 2_001..=2_100);
    let mut answered = 0;
    while desk.sent().len() < 1_000 {
        desk.pass(Nanos::from_millis(100));
        for seq in desk.sent().split_off(answered) {
            answered += 1;
            desk.reply(seq, Reply::accepted());
        }
    }
    let low = desk.sent().iter().filter(|seq| **seq > 2_000).count();
    assert!((18..=30).contains(&low), "{low} of 1,000");
}

#[test]
fn an_idle_connection_makes_way_in_the_step_in_which_a_message_comes() {
    let mut desk = Desk::new(Policies::default());
    let (google, yahoo) = (desk.flow("google"), desk.flow("yahoo"));
    let mut main = AccountSpec::new("main");
    main.sessions.kind = SessionKind::Connections;
    main.sessions.max_connections = 1;
    desk.set_account(main);
    desk.queue(google, 1..=1);
    desk.reply(1, Reply::accepted());
    // Nothing else happens that would have the engine look again.
    desk.queue(yahoo, 2..=2);
    assert_eq!(desk.sent(), [1, 2]);
}
