use outflow_core::class::Class;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use super::Summary;
use crate::chart::svg;
use crate::recorder::Recorder;
use crate::report::Outcome;
use crate::trace::{Answered, Observer, Trace};

/// Receipts of 2,000 in 200 ms against 100 a second, with digests before and
/// passwords between them, as a perfect sender would send them.
fn run() -> Summary {
    let mut recorder = Recorder::default();
    let spec = LimitSpec::TokenBucket {
        rate: Rate::per_second(100),
        burst: 1,
    };
    let key = Name::from("isp:google");
    let leased = false;
    recorder.observe(
        Nanos::ZERO,
        &Trace::Limit {
            limit: 0,
            key: &key,
            spec: &spec,
            leased,
        },
    );
    let flows = [Class::Critical, Class::High, Class::Low];
    for (n, class) in flows.into_iter().enumerate() {
        let (flow, name) = (n as u32, Name::from(format!("tenant-{n}")));
        let tenant = Trace::Tenant {
            tenant: flow,
            name: &name,
            weight: 1,
        };
        recorder.observe(Nanos::ZERO, &tenant);
        let opened = Trace::Flow {
            flow,
            class,
            tenant: flow,
            limits: &[0],
        };
        recorder.observe(Nanos::ZERO, &opened);
    }
    let mut arrivals: Vec<(u64, u32)> = Vec::new();
    arrivals.extend((0..1_500).map(|_| (0, 2)));
    arrivals.extend((0..2_000).map(|n| (10_000 + n / 10, 1)));
    arrivals.extend((0..80).map(|n| (500 * n + 250, 0)));
    arrivals.sort_unstable();
    let mut queues = [const { std::collections::VecDeque::new() }; 3];
    let mut next = arrivals.iter().enumerate().peekable();
    let mut slot = 0;
    while next.peek().is_some() || queues.iter().any(|queue| !queue.is_empty()) {
        let at = slot * 10;
        while let Some((message, (when, flow))) = next.next_if(|(_, (when, _))| *when <= at) {
            let event = Trace::Accepted {
                node: 0,
                message: message as u64,
                flow: *flow,
                cost: 1,
                due: Nanos::ZERO,
                expires: Nanos::MAX,
            };
            recorder.observe(Nanos::from_millis(*when), &event);
            queues[*flow as usize].push_back(message as u64);
        }
        if let Some(message) = queues.iter_mut().find_map(|queue| queue.pop_front()) {
            let sent = Trace::Dispatched {
                node: 0,
                message,
                attempt: 1,
                account: 0,
                cost: 1,
                limits: &[0],
            };
            let at = Nanos::from_millis(at);
            recorder.observe(at, &sent);
            recorder.observe(
                at,
                &Trace::Taken {
                    message,
                    attempt: 1,
                },
            );
            let replied = Trace::Replied {
                node: 0,
                message,
                attempt: 1,
                answer: Answered::Accepted,
            };
            recorder.observe(at, &replied);
            let state = State::Delivered;
            recorder.observe(at, &Trace::Settled { message, state });
        }
        slot += 1;
    }
    recorder.finish("hand-made", 1, Nanos::from_millis(slot * 10))
}

#[test]
fn the_figures_are_those_of_the_run() {
    let metrics = run().metrics();
    let metric = |name: &str| metrics.get(name).copied().unwrap_or(f64::NAN);
    assert_eq!(metric("accepted"), 3_580.0);
    assert_eq!(metric("delivered"), 3_580.0);
    assert_eq!(metric("unfinished"), 0.0);
    assert_eq!(metric("critical.delivered"), 80.0);
    assert_eq!(metric("tenant.tenant-2.delivered"), 1_500.0);
    assert!(metric("critical.wait_p99_ms") <= 10.0);
    assert!((18_000.0..20_800.0).contains(&metric("high.wait_max_ms")));
    assert!(
        metric("utilisation.isp:google") >= 0.999,
        "{}",
        metric("utilisation.isp:google")
    );
    assert_eq!(metric("granted.isp:google"), 3_580.0);
    assert_eq!(metric("deferred_share"), 0.0);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let outcome = |summary| Outcome {
        title: "A hand-made run".to_owned(),
        summary,
        verdicts: Vec::new(),
        violations: Vec::new(),
    };
    let (one, two) = (outcome(run()), outcome(run()));
    assert_eq!(one.json().to_string(), two.json().to_string());
    assert!(one.held());
    assert!(one.table().contains("isp:google"), "{}", one.table());
}

#[test]
fn the_chart_shows_both_panels() {
    let chart = svg(&run(), "A hand-made run", &[]).unwrap();
    for word in [
        "offered",
        "sent",
        "limit",
        "critical",
        "low",
        "messages waiting",
        "seconds",
    ] {
        assert!(chart.contains(word), "{word}");
    }
}
