//! Breakers: what moves them and what does not.

mod engine;

use outflow_core::breaker::signal::is_refusal;
use outflow_core::breaker::{Breaker, BreakerSettings, Change, Refusals, Signal, State};
use outflow_core::classify::Rules;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos};
use proptest::prelude::*;

const SETTINGS: BreakerSettings = BreakerSettings {
    enabled: true,
    failures: 5,
    share_permille: 500,
    open_for: Nanos::from_secs(10),
    open_max: Nanos::from_secs(60),
    refusals_permille: 200,
    refusals_least: 20,
    stop_for: Nanos::from_secs(30),
};

fn at(millis: u64) -> Mono {
    Mono(0) + Nanos::from_millis(millis)
}

fn fails(breaker: &mut Breaker, now: Mono) -> Option<Change> {
    breaker.replied(&SETTINGS, now, now, Signal::Failed, true)
}

#[test]
fn five_failures_in_a_row_open_it_and_one_probe_closes_it() {
    let mut breaker = Breaker::new(at(0), 0);
    for tick in 0..4 {
        assert_eq!(fails(&mut breaker, at(tick)), None);
    }
    let until = at(10_004);
    assert_eq!(fails(&mut breaker, at(4)), Some(Change::Opened { until }));
    assert!(!breaker.may_send());
    assert!(!breaker.wake(at(10_003)));
    assert!(breaker.wake(until));
    assert!(breaker.may_send());
    assert!(breaker.sent(at(10_100)));
    assert!(!breaker.may_send(), "one probe only");
    // A late reply to a message from before is not the probe's.
    let late = breaker.replied(&SETTINGS, at(10_150), at(3), Signal::Fine, true);
    assert_eq!(late, None);
    let fine = breaker.replied(&SETTINGS, at(10_200), at(10_100), Signal::Fine, true);
    assert_eq!(fine, Some(Change::Closed));
    assert!(breaker.may_send());
}

#[test]
fn each_failed_probe_doubles_the_wait_up_to_the_cap() {
    let mut breaker = Breaker::new(at(0), 0);
    let mut now = at(1);
    let mut waits = Vec::new();
    for _ in 0..4 {
        fails(&mut breaker, now);
    }
    for _ in 0..6 {
        let Some(Change::Opened { until }) = fails(&mut breaker, now) else {
            panic!("it did not open");
        };
        waits.push(until.since(now).0 / 1_000_000_000);
        now = until;
        assert!(breaker.wake(now) && breaker.sent(now));
    }
    assert_eq!(waits, [10, 20, 40, 60, 60, 60]);
}

#[test]
fn a_hiccup_among_thousands_does_not_open_it() {
    let mut breaker = Breaker::new(at(60_000), 60_000);
    for tick in 0..200 {
        assert_eq!(fails(&mut breaker, at(60_000 + tick)), None);
    }
    // If nothing else comes for long enough, it does.
    let opened = (0..200).find_map(|tick| fails(&mut breaker, at(61_000 + tick * 100)));
    assert!(opened.is_some());
}

#[test]
fn refusals_above_a_fifth_stop_for_half_a_minute() {
    let mut refusals = Refusals::default();
    let mut stopped = None;
    for tick in 0..40_u64 {
        let refused = tick % 4 == 0;
        stopped = stopped.or(refusals.replied(&SETTINGS, at(tick * 100), refused));
    }
    // The 21st reply is the sixth refusal: 6 of 21 are more than a fifth, and
    // the 20th was none.
    assert_eq!(stopped, Some(at(2_000) + Nanos::from_secs(30)));
    let mut refusals = Refusals::default();
    for tick in 0..1_000_u64 {
        let refused = tick % 5 == 4;
        assert_eq!(refusals.replied(&SETTINGS, at(tick * 100), refused), None);
    }
}

#[test]
fn what_a_reply_says() {
    let rules = Rules::generic();
    let says = |reply: &Reply| {
        let outcome = rules.classify(None, reply, 1);
        (Signal::of(&outcome), is_refusal(&outcome))
    };
    let said = |code, text| says(&Reply::said(Stage::Data, code, text));
    assert_eq!(said(202, "Accepted"), (Signal::Fine, false));
    assert_eq!(said(429, "Too Many Requests"), (Signal::Silent, true));
    assert_eq!(said(503, "Service Unavailable"), (Signal::Failed, true));
    assert_eq!(said(500, "Internal Server Error"), (Signal::Failed, true));
    assert_eq!(says(&Reply::Uncertain), (Signal::Failed, false));
    let network = Reply::Network {
        stage: Stage::Sender,
        text: "timed out".into(),
    };
    assert_eq!(says(&network).0, Signal::Failed);
    let unknown = Reply::said(Stage::Recipient, 550, "5.1.1 No such user");
    assert_eq!(says(&unknown), (Signal::Fine, false));
    let spam = Reply::said(Stage::Data, 552, "5.7.0 Message contains a virus");
    assert_eq!(says(&spam).0, Signal::Fine);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Passes(u64),
    Sends,
    Replies(usize, Signal),
}

fn step() -> impl Strategy<Value = Step> {
    let signal = prop_oneof![
        4 => Just(Signal::Failed),
        1 => Just(Signal::Fine),
        2 => Just(Signal::Silent),
    ];
    prop_oneof![
        1 => (1_u64..8_000).prop_map(Step::Passes),
        3 => Just(Step::Sends),
        3 => (0_usize..20, signal).prop_map(|(at, signal)| Step::Replies(at, signal)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Half open, never two are in flight; a refusal for our rate never moves
    /// it but to probe again; it never opens twice within its least time.
    #[test]
    fn one_probe_no_flapping_and_deaf_to_rates(steps in prop::collection::vec(step(), 1..300)) {
        let mut breaker = Breaker::new(at(1), 0);
        let (mut now, mut clock) = (at(1), 1);
        let mut flying: Vec<Mono> = Vec::new();
        let mut probes = 0;
        let mut opened_at: Option<Mono> = None;
        for step in steps {
            // No two messages are sent in the same nanosecond.
            now = Mono(now.0 + 1);
            match step {
                Step::Passes(millis) => {
                    clock += millis;
                    now = now + Nanos::from_millis(millis);
                    breaker.wake(now);
                }
                Step::Sends => {
                    if breaker.may_send() {
                        let half = matches!(breaker.state(), State::HalfOpen { .. });
                        prop_assert_eq!(breaker.sent(now), half);
                        probes += u32::from(half);
                        prop_assert!(probes <= 1);
                        flying.push(now);
                    }
                }
                Step::Replies(which, signal) => {
                    if flying.is_empty() {
                        continue;
                    }
                    let sent = flying.swap_remove(which % flying.len());
                    let before = breaker.state();
                    let change = breaker.replied(&SETTINGS, now, sent, signal, true);
                    if let State::HalfOpen { probe: Some(probe) } = before
                        && probe == sent
                    {
                        probes = 0;
                        prop_assert!(change.is_some());
                    } else if signal != Signal::Failed {
                        prop_assert_eq!(change, None);
                        prop_assert_eq!(breaker.state(), before);
                    }
                    if signal == Signal::Silent {
                        prop_assert!(matches!(change, None | Some(Change::ProbeAgain)));
                    }
                    if let Some(Change::Opened { until }) = change {
                        if let Some(last) = opened_at {
                            prop_assert!(now.since(last) >= SETTINGS.open_for);
                        }
                        prop_assert!(until.since(now) >= SETTINGS.open_for);
                        opened_at = Some(now);
                    }
                }
            }
        }
        prop_assert!(clock > 0);
    }
}

#[test]
fn a_hiccup_among_thousands_stops_nobody() {
    let mut refusals = Refusals::new(at(0), 6_000);
    for reply in 0..200 {
        let now = at(reply);
        assert_eq!(refusals.replied(&SETTINGS, now, reply % 2 == 0), None);
    }
    // It goes on for a minute: then what was before is over.
    let mut stopped = None;
    for reply in 0..10_000 {
        let now = at(reply * 10);
        stopped = stopped.or(refusals
            .replied(&SETTINGS, now, reply % 2 == 0)
            .map(|_| now));
    }
    let stopped = stopped.expect("half of all were refused");
    assert!((at(10_000)..=at(70_000)).contains(&stopped), "{stopped:?}");
}
