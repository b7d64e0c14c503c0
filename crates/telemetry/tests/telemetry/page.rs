//! The page that Prometheus reads.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_core::class::Class;
use outflow_core::engine::action::Alert;
use outflow_core::engine::meters::AccountMeter;
use outflow_core::message::{Channel, State};
use outflow_core::name::Name;
use outflow_core::policy::scope::Scope;
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::schedule::waits::Waits;
use outflow_core::time::Nanos;
use outflow_telemetry::catalogue::{Commit, Event, Reported, Requested, Settled, Submission};
use outflow_telemetry::declarations::{ALL, Kind, find};
use outflow_telemetry::metrics::{Bounds, Depth, LimitNow, ThrottleNow};
use outflow_telemetry::{Metrics, Sink, Snapshot};

use super::{attempt, key};

/// A page with something in every metric.
fn page() -> String {
    let bounds = Bounds {
        destinations: 2,
        limits: 1,
        accounts: 1,
    };
    let metrics = Metrics::new("1.2.3", bounds);
    for name in ["google", "yahoo", "third", "fourth"] {
        let key = key(name);
        let slot = metrics.slot(&key);
        metrics.emit(&Event::Attempted(attempt(&key, slot)));
        assert_eq!(metrics.slot(&key), slot, "a name is kept");
    }
    metrics.emit(&Event::Accepted {
        channel: Channel::Email,
        class: Class::Critical,
        count: 5,
    });
    for (state, secs) in [(State::Delivered, 2), (State::Expired, 9)] {
        metrics.emit(&Event::Settled(Settled {
            message: None,
            key: &key("google"),
            state,
            account: None,
            error: None,
            age: Some(Nanos::from_secs(secs)),
        }));
    }
    metrics.emit(&Event::Alert(&Alert::StoreFailing));
    metrics.emit(&Event::Committed(Commit {
        duration: Nanos::from_millis(2),
        records: 3,
        bytes: 400,
    }));
    for status in [200, 200, 418] {
        metrics.emit(&Event::Requested(Requested {
            method: "GET",
            route: "/api/v1/messages/{id}",
            status,
            duration: Nanos::from_millis(1),
        }));
    }
    let peer = IpAddr::from([192, 0, 2, 1]);
    for what in [
        Submission::Connected { peer },
        Submission::Connected { peer },
        Submission::LoginRefused { peer },
        Submission::Refused {
            peer,
            reply: "535 5.7.8",
        },
        Submission::Left { peer },
    ] {
        metrics.emit(&Event::Submission(what));
    }
    metrics.emit(&Event::Dns { is_away: true });
    metrics.emit(&Event::Reported(Reported {
        unread: 1,
        unmatched: 2,
        matched: 3,
        suppressed: 1,
    }));
    let mut waits = Waits {
        came: 4,
        waited: Nanos::from_millis(1_500),
        ..Waits::default()
    };
    waits.parts[0] = 2;
    waits.parts[12] = 1;
    let limit = |key: &str, rate| LimitNow {
        key: key.to_owned(),
        tokens: 7,
        rate,
    };
    let account = |name: &str| AccountMeter {
        account: Name::from(name),
        held: 3,
        waiting: 2,
    };
    metrics.render(&Snapshot {
        queue: vec![Depth {
            channel: Channel::Email,
            class: Class::Low,
            state: State::Deferred,
            messages: 12,
        }],
        oldest_age: [None, Some(Nanos::from_millis(2_500)), None, None],
        in_flight: 1,
        sessions: 2,
        breakers: vec![("default/isp:google".to_owned(), 2)],
        limits: vec![
            limit("isp:google", Some(0.5)),
            limit("a", None),
            limit("b", Some(2.0)),
        ],
        accounts: vec![account("x\"\\\ny"), account("b"), account("c")],
        waits: vec![(ScopeSet::of(&[Scope::Ip, Scope::Isp]), waits)],
        throttle: ThrottleNow {
            results: [5, 4, 3],
            waited: 2,
            waiting: 1,
            keys: 7,
            permits: 6,
        },
        suppressed: 41,
        suppressions_held: 5,
        suppressions_let_go: 6,
        lines_dropped: [0, 9, 8],
    })
}

#[test]
fn the_page_says_what_was_counted() {
    let page = page();
    for line in [
        r#"outflow_reports_total{result="unmatched"} 2"#,
        "outflow_suppressed_recipients 41",
        "outflow_suppressions_held 5",
        "outflow_suppressions_let_go_total 6",
        r#"outflow_messages_accepted_total{channel="email",class="critical"} 5"#,
        r#"outflow_attempts_total{channel="email",destination="isp:google",outcome="deferred"} 1"#,
        r#"outflow_attempts_total{channel="email",destination="other",outcome="deferred"} 2"#,
        r#"outflow_messages_settled_total{channel="email",class="high",state="expired"} 1"#,
        r#"outflow_queue_messages{channel="email",class="low",state="deferred"} 12"#,
        r#"outflow_queue_oldest_age_seconds{class="high"} 2.5"#,
        r#"outflow_time_to_delivery_seconds_bucket{class="high",le="1"} 0"#,
        r#"outflow_time_to_delivery_seconds_bucket{class="high",le="2.5"} 1"#,
        r#"outflow_time_to_delivery_seconds_count{class="high"} 1"#,
        r#"outflow_time_to_delivery_seconds_sum{class="high"} 2"#,
        r#"outflow_limit_wait_seconds_bucket{scope="ip/isp",le="0.001"} 2"#,
        r#"outflow_limit_wait_seconds_bucket{scope="ip/isp",le="+Inf"} 3"#,
        r#"outflow_limit_wait_seconds_sum{scope="ip/isp"} 1.5"#,
        r#"outflow_limit_refused_total{scope="ip/isp"} 4"#,
        r#"outflow_limit_tokens{limit="isp:google"} 7"#,
        r#"outflow_limit_tokens{limit="other"} 14"#,
        r#"outflow_limit_rate{limit="isp:google"} 0.5"#,
        r#"outflow_rate_limited_total{account_id="x\"\\\ny"} 3"#,
        r#"outflow_deferred{account_id="other"} 4"#,
        r#"outflow_breaker_state{lane="default/isp:google"} 2"#,
        "outflow_store_commit_seconds_count 1",
        "outflow_store_failing 1",
        r#"outflow_http_requests_total{method="GET",route="/api/v1/messages/{id}",status="200"} 2"#,
        r#"outflow_http_requests_total{method="GET",route="/api/v1/messages/{id}",status="other"} 1"#,
        "outflow_submission_connections 1",
        "outflow_submission_connections_total 2",
        r#"outflow_submission_logins_total{result="refused"} 1"#,
        r#"outflow_submission_refused_total{reply="535 5.7.8"} 1"#,
        "outflow_dns_away 1",
        r#"outflow_log_lines_dropped_total{log="attempts"} 9"#,
        r#"outflow_log_lines_dropped_total{log="grants"} 8"#,
        r#"outflow_throttle_acquires_total{result="refused"} 4"#,
        "outflow_throttle_waiting 1",
        "outflow_throttle_permits 6",
        r#"outflow_build_info{version="1.2.3"} 1"#,
    ] {
        assert!(page.lines().any(|it| it == line), "{line}\n\n{page}");
    }
}

/// The names of the labels of a sample.
fn labels(sample: &str) -> Vec<String> {
    let Some((_, rest)) = sample.split_once('{') else {
        return Vec::new();
    };
    let (mut names, mut name, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for letter in rest.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '=' => names.push(std::mem::take(&mut name)),
            ',' => {}
            '}' => break,
            other => name.push(other),
        }
    }
    names
}

#[test]
fn every_sample_is_as_declared_and_every_declaration_has_samples() {
    let page = page();
    let mut samples: BTreeMap<&str, usize> = BTreeMap::new();
    let mut current = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let metric = find(name).unwrap();
            assert_eq!(metric.kind.as_str(), kind);
            assert!(samples.insert(metric.name, 0).is_none(), "{name} twice");
            current = metric.name;
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let metric = find(name).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(metric.name, current, "samples stand under their metric");
            let mut found = labels(line);
            found.retain(|label| label != "le");
            assert_eq!(found, metric.labels, "{line}");
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            *samples.get_mut(current).unwrap() += 1;
        }
    }
    for metric in ALL {
        assert!(samples[metric.name] > 0, "{} has no samples", metric.name);
        let total = metric.name.ends_with("_total");
        assert_eq!(total, metric.kind == Kind::Counter, "{}", metric.name);
    }
}
