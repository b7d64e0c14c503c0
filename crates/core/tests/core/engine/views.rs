//! Lanes, limits and depth as they are shown.

use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::explain::Obstacle;
use outflow_core::engine::view::LaneView;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::message::Seq;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::Policy;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::tally::{Counter, Window};
use outflow_core::time::Nanos;

use super::{Desk, START, account, google_at_one, limits, to, with};

fn lane(desk: &Desk, name: &str) -> Option<LaneView> {
    let mut lanes = desk.engine.lanes(&desk.now).into_iter();
    lanes.find(|lane| format!("{}/{}", lane.pool, lane.destination) == name)
}

/// How far a plan is goes by what is counted of its pair.
#[test]
fn a_pair_with_a_quota_is_counted_however_many_came_before() {
    let pair = Match::from_pairs([("account", "main"), ("isp", "google")]).unwrap();
    let mut policy = Policy::new(pair);
    policy.limits = vec![LimitSpec::parse("1000/day@UTC").unwrap()];
    let mut desk = Desk::new(with(policy));
    desk.set_account(account("main", &[]));
    let others = (1..=1_030).map(|no| (no, format!("provider-{no}")));
    for (seq, name) in others.chain([(1_031, "google".to_owned())]) {
        let flow = desk.flow(&name);
        desk.queue(flow, seq..=seq);
        desk.reply(seq, Reply::accepted());
    }
    let counted = |name: &str| {
        let key: LimitKey = format!("account:main/isp:{name}").parse().unwrap();
        let mut tallies = desk.engine.tallies();
        let tally = tallies.find(|(own, _)| ***own == key)?.1;
        Some(tally.count(desk.now.mono, Window::Minute, Counter::Attempts))
    };
    assert_eq!(counted("provider-1"), Some(1));
    assert_eq!(counted("provider-1030"), None, "there is no room for all");
    assert_eq!(counted("google"), Some(1));
}

#[test]
fn a_lane_shows_what_waits_what_flies_and_what_holds_it() {
    let mut desk = Desk::new(google_at_one());
    desk.set_account(account("main", &[]));
    let flow = desk.flow("google");
    assert!(desk.engine.lanes(&desk.now).is_empty(), "nothing to show");
    desk.queue(flow, 1..=3);
    let mut critical = FlowKey::to(Destination::isp("google"));
    critical.class = Class::Critical;
    let critical = desk.flow_of(critical);
    desk.pass(Nanos::from_millis(500));
    desk.queue(critical, 4..=4);
    let google = lane(&desk, "default/isp:google").unwrap();
    assert_eq!(google.waiting, [1, 0, 2, 0]);
    assert_eq!((google.in_flight, google.sent), (1, 1));
    assert_eq!(google.sessions, 1);
    assert_eq!(google.oldest, Some(START));
    assert!(!google.paused);
    let held = limits(&google.waiting_on, START);
    assert_eq!(held, [("isp:google".to_owned(), Some(1))]);

    let depth = desk.engine.depth();
    assert_eq!(depth.waiting, [1, 0, 2, 0]);
    assert_eq!(depth.in_flight, [0, 0, 1, 0]);
    let half = START + Nanos::from_millis(500);
    assert_eq!(depth.oldest, [Some(half), None, Some(START), None]);

    desk.reply(1, Reply::accepted());
    desk.pass(Nanos::from_secs(5));
    for seq in [4, 2, 3] {
        desk.reply(seq, Reply::accepted());
    }
    assert!(lane(&desk, "default/isp:google").is_none(), "all is done");
    assert_eq!(desk.engine.depth(), Default::default());
}

#[test]
fn a_message_is_held_in_flight_or_neither() {
    let mut desk = Desk::new(google_at_one());
    desk.set_account(account("main", &[]));
    let flow = desk.flow("google");
    desk.queue(flow, 1..=2);
    let engine = &desk.engine;
    assert!(engine.is_in_flight(flow, Seq(1)) && !engine.holds(flow, Seq(1)));
    assert!(engine.holds(flow, Seq(2)) && !engine.is_in_flight(flow, Seq(2)));
    assert_eq!(engine.in_flight(), [Seq(1)]);
    desk.reply(1, Reply::accepted());
    let engine = &desk.engine;
    assert!(!engine.holds(flow, Seq(1)) && !engine.is_in_flight(flow, Seq(1)));
}

#[test]
fn a_lane_is_paused_if_all_of_it_is() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow("google");
    let mut low = FlowKey::to(Destination::isp("google"));
    low.class = Class::Low;
    desk.flow_of(low);
    let pause = |id, matches| Command::Pause {
        id: PauseId(id),
        matches,
        until: None,
    };
    desk.command(pause(1, "class:low".parse().unwrap()));
    desk.queue(flow, 1..=1);
    assert!(!lane(&desk, "default/isp:google").unwrap().paused);
    desk.command(pause(2, to("google")));
    let google = lane(&desk, "default/isp:google").unwrap();
    assert!(google.paused);
    assert_eq!(google.waiting_on, [Obstacle::Paused, Obstacle::NoAccount]);
}

#[test]
fn a_domain_that_nobody_resolved_is_a_lane_of_its_own() {
    let mut desk = Desk::new(Policies::default());
    let flow = desk.flow_of(FlowKey::to(Destination::unresolved("example.com")));
    desk.queue(flow, 1..=2);
    let waiting = lane(&desk, "default/domain:example.com").unwrap();
    assert_eq!(waiting.waiting, [0, 0, 2, 0]);
    assert_eq!(waiting.waiting_on, [Obstacle::Unresolved]);
}

#[test]
fn limits_show_tokens_waiters_and_the_next_grant() {
    let mut desk = Desk::new(google_at_one());
    desk.set_account(account("main", &["5/min", "40/s spaced", "3 concurrent"]));
    let google = desk.flow("google");
    let other = desk.flow("other");
    desk.queue(google, 1..=3);
    desk.queue(other, 4..=9);
    desk.pass(Nanos::from_millis(200));
    let views = desk.engine.limit_views(&desk.now);
    let shown: Vec<(String, String, u64, u64, u64)> = views
        .iter()
        .map(|view| {
            let waiters = view.waiters.iter().sum();
            let (key, spec) = (view.key.to_string(), view.spec.to_string());
            (key, spec, view.tokens, view.capacity, waiters)
        })
        .collect();
    let expected = [
        ("account:main", "40/s spaced", 1, 1, 0),
        ("account:main#concurrency", "3 concurrent", 0, 3, 1),
        ("account:main#minute", "5/min", 2, 5, 0),
        ("isp:google", "1/s", 0, 1, 1),
    ];
    let expected = expected.map(|(key, spec, tokens, capacity, waiters)| {
        (key.to_owned(), spec.to_owned(), tokens, capacity, waiters)
    });
    assert_eq!(shown, expected);
    let next = views.last().unwrap().next_grant;
    assert_eq!(next, Some(START + Nanos::from_secs(1)));
}

/// Every submission brings names of its own; flows are many and stay.
#[test]
fn flows_share_the_names_that_they_have_in_common() {
    let mut desk = Desk::new(Policies::default());
    let keys = ["google", "outlook"].map(|isp| {
        let mut key = FlowKey::to(Destination::isp(isp));
        key.tenant = "acme".into();
        key.sender_domain = Some("acme.example".into());
        let flow = desk.flow_of(key);
        desk.engine.flow_key(flow).cloned().unwrap()
    });
    let names = keys.map(|key| {
        let sender_domain = key.sender_domain.clone().unwrap();
        [key.pool.clone(), key.tenant.clone(), sender_domain].map(|it| it.as_str().as_ptr())
    });
    assert_eq!(names[0], names[1]);
}
