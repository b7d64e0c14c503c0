//! What is found in a history, and how it is written.

use serde_json::json;

use super::{NOON, PERIOD, entry, incident, rate, slice, story, turn};
use crate::report::case::Case;
use crate::report::change::{Change, Effect};
use crate::report::material::{History, MINUTE, Rate, SECOND};
use crate::report::phase::Kind;
use crate::report::series::Series;
use crate::report::{escape, figures, marks, scale};

const AT: i64 = 20 * SECOND;

#[test]
fn an_incident_has_a_beginning_an_answer_and_an_end() {
    let (history, entries) = incident();
    let story = story(&history, &entries, Some(0));
    assert_eq!(story.cases.len(), 1);
    let case = &story.cases[0];
    assert_eq!(case.start(), Some(NOON + 60 * MINUTE + 12 * SECOND));
    assert_eq!(case.last_refused(), Some(NOON + 70 * MINUTE));
    assert_eq!((case.attempts, case.refused), (15_000, 6_300));
    assert_eq!(case.before.length, 60 * MINUTE);
    assert_eq!((case.before.rate, case.before.peak), (40.0, 60.0));
    assert_eq!(case.limit_before, Some(40.0));
    assert_eq!(case.lowest, Some((NOON + 65 * MINUTE + AT, 5.0)));
    let answer = case.mitigation.as_ref().unwrap();
    assert_eq!(
        (answer.at, answer.to),
        (NOON + 61 * MINUTE + AT, Some(20.0))
    );
    assert_eq!(case.recovered, Some(NOON + 120 * MINUTE + AT));
    assert_eq!(case.worst, (1_200, 2_400));
    let kinds: Vec<Kind> = case.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [Kind::Refused, Kind::Slowed, Kind::Recovering]);
    let others: Vec<&str> = story.others.iter().map(|it| it.target.as_str()).collect();
    assert_eq!(others, ["b"], "tokens change nothing about the flow");
}

/// A limit that is back is not used at once.
#[test]
fn recovery_is_when_as_much_is_taken_as_before() {
    let (mut history, entries) = incident();
    for slice in &mut history.slices {
        let minute = (slice.at - NOON) / MINUTE;
        if slice.destination == "isp:google" && (120..125).contains(&minute) {
            *slice = super::slice(minute, "isp:google", 1_200, 0);
        }
    }
    let story = story(&history, &entries, Some(0));
    let case = &story.cases[0];
    assert_eq!(case.recovered, Some(NOON + 125 * MINUTE));
    assert_eq!(case.phases.last().unwrap().kind, Kind::Recovering);
}

/// A policy far above all that was sent says nothing about what is needed.
#[test]
fn a_limit_is_back_when_it_allows_what_was_sent_before() {
    let (mut history, _) = incident();
    history.rates = vec![rate(-1, 1_000.0), rate(61, 5.0), rate(120, 60.0)];
    let story = story(&history, &[turn(61, "limit.cut", 1_000.0, 5.0)], Some(0));
    assert_eq!(story.cases[0].recovered, Some(NOON + 120 * MINUTE + AT));
}

/// A few refusals, too few to count, stopped the flow for a moment just before.
#[test]
fn a_stop_just_before_is_not_the_limit_before() {
    let (mut history, entries) = incident();
    history.rates.push(rate(59, 0.0));
    let story = story(&history, &entries, Some(0));
    assert_eq!(story.cases[0].limit_before, Some(40.0));
}

/// Who answers late has not recovered before.
#[test]
fn a_late_answer_is_no_early_recovery() {
    let (mut history, _) = incident();
    for slice in &mut history.slices {
        if slice.destination == "isp:google" && slice.at < NOON + 100 * MINUTE {
            *slice = super::slice(
                (slice.at - NOON) / MINUTE,
                "isp:google",
                100,
                u64::from(slice.at >= NOON + 60 * MINUTE) * 50,
            );
        }
    }
    history.rates = vec![rate(-1, 40.0), rate(90, 1.0), rate(130, 40.0)];
    let story = story(&history, &[turn(90, "limit.cut", 40.0, 1.0)], Some(0));
    assert_eq!(story.cases[0].recovered, Some(NOON + 130 * MINUTE + AT));
    history.rates.truncate(1);
    let story = super::story(&history, &[], Some(0));
    assert_eq!(
        story.cases[0].recovered,
        Some(NOON + 100 * MINUTE),
        "no limit fell"
    );
}

/// A trial that is refused is neither a recovery nor the end of one.
#[test]
fn a_rate_that_does_not_stay_is_not_back() {
    let (mut history, mut entries) = incident();
    history
        .rates
        .extend([rate(80, 39.0), rate(81, 0.0), rate(82, 5.0)]);
    entries.extend([
        turn(80, "limit.raised", 5.0, 39.0),
        turn(81, "limit.stopped", 39.0, 0.0),
        turn(82, "limit.resumed", 0.0, 5.0),
        turn(83, "limit.cut", 5.0, 4.9),
    ]);
    let story = story(&history, &entries, Some(0));
    let case = &story.cases[0];
    assert_eq!(case.recovered, Some(NOON + 120 * MINUTE + AT));
    assert_eq!(case.lowest.unwrap().1, 5.0, "a stop is no rate");
    let turns: Vec<i64> = case
        .phases
        .iter()
        .map(|it| (it.from - NOON) / MINUTE)
        .collect();
    assert_eq!(turns, [60, 61, 100]);
    history
        .rates
        .retain(|it| it.rate < Some(39.0) || it.at < NOON);
    let never = super::story(&history, &entries, Some(0));
    assert_eq!(never.cases[0].recovered, None);
    assert!(
        never
            .headline()
            .ends_with("it is not back to what it was yet.")
    );
}

/// The example of the contract: somebody patches a policy.
#[test]
fn a_mitigation_by_a_person_is_an_answer() {
    let patch = json!({
        "before": { "rate": "40/s", "burst": 40 },
        "after": { "rate": "2/s", "burst": 5, "mitigation_reason": "421s",
                   "cooldown_until": "2026-01-31T13:30:00Z" },
    });
    let change = Change::of(&entry(1, "jo", "policy.set", "isp:att", patch));
    assert_eq!(change.effect, Effect::Slower);
    assert_eq!((change.from, change.to), (Some(40.0), Some(2.0)));
    assert_eq!(change.what, "mitigated");
    assert_eq!(change.why, "421s (until 2026-01-31T13:30:00Z)");
    assert!(change.concerns("isp:att") && !change.concerns("isp:google"));
    let all = Change::of(&entry(1, "jo", "policy.set", "isp:*", json!(null)));
    assert!(all.concerns("isp:att") && !all.concerns("host:att"));
    let stopped = Change::of(&entry(
        1,
        "rule:control",
        "limit.stopped",
        "isp:att",
        json!({ "from": 5 }),
    ));
    assert_eq!((stopped.from, stopped.to), (Some(5.0), Some(0.0)));
    let resumed = json!({ "from": 0.000011, "to": 3, "evidence": { "refused": 0, "of": 0 } });
    let resumed = Change::of(&entry(1, "rule:control", "limit.resumed", "x", resumed));
    assert_eq!((resumed.from, resumed.to), (Some(0.0), Some(3.0)));
    assert_eq!(resumed.evidence, "");
    for detail in [
        json!(null),
        json!([]),
        json!({ "from": "x", "evidence": [1] }),
        json!("x"),
    ] {
        Change::of(&entry(1, "x", "limit.cut", "", detail));
    }
}

#[test]
fn a_few_refusals_are_no_trouble() {
    let history = History {
        step: 60,
        slices: vec![
            slice(0, "isp:google", 2, 2),
            slice(1, "isp:google", 1_000, 40),
            slice(2, "isp:google", 1_000, 50),
            slice(30, "isp:google", 10, 3),
        ],
        ..History::default()
    };
    let spells = Series::of(&history, "isp:google").spells();
    let minutes = |at: i64| (at - NOON) / MINUTE;
    let spells: Vec<(i64, i64)> = spells
        .iter()
        .map(|(a, b)| (minutes(*a), minutes(*b)))
        .collect();
    assert_eq!(spells, [(2, 3), (30, 31)]);
}

#[test]
fn limits_of_accounts_add_up_and_the_tightest_kind_counts() {
    let of = |limit: &str, it: Rate| Rate {
        limit: limit.to_owned(),
        ..it
    };
    let history = History {
        step: 60,
        rates: vec![
            rate(0, 10.0),
            of("account:b/isp:google", rate(0, 10.0)),
            of("isp:google", rate(5, 15.0)),
            of("account:b/isp:google", rate(10, 2.0)),
            of("isp:google", rate(12, 15.0)),
            of("account:a/isp:google#learnt", rate(20, 1.0)),
            of("account:b/isp:google#learnt", rate(21, 1.5)),
        ],
        ..History::default()
    };
    let series = Series::of(&history, "isp:google");
    let minute = |at: i64| NOON + at * MINUTE + AT;
    assert_eq!(series.limit_at(minute(-1)), None);
    let steps = series.limit_steps(NOON, minute(60));
    assert_eq!(
        steps,
        [
            (minute(0), 20.0),
            (minute(5), 15.0),
            (minute(10), 12.0),
            (minute(20), 1.0),
            (minute(21), 2.5),
        ]
    );
}

/// A limit that is gone holds nobody: not the others, and not for ever.
#[test]
fn a_limit_that_is_gone_counts_no_more() {
    let gone = |limit: &str, minute| Rate {
        limit: limit.to_owned(),
        rate: None,
        ..rate(minute, 0.0)
    };
    let learnt = "account:a/isp:google#learnt";
    let history = History {
        step: 60,
        rates: vec![
            rate(0, 40.0),
            Rate {
                limit: learnt.to_owned(),
                ..rate(5, 1.0)
            },
            gone(learnt, 10),
            gone("account:a/isp:google", 20),
        ],
        ..History::default()
    };
    let series = Series::of(&history, "isp:google");
    let minute = |at: i64| NOON + at * MINUTE + AT;
    let steps = series.limit_steps(NOON, minute(60));
    assert_eq!(
        steps,
        [
            (minute(0), 40.0),
            (minute(5), 1.0),
            (minute(10), 40.0),
            (minute(20), f64::INFINITY),
        ]
    );
    assert_eq!(series.limit_at(minute(30)), None);
    // Whoever sends without a limit has recovered, and the line ends.
    let (mut history, _) = incident();
    history.rates = vec![
        rate(-1, 40.0),
        rate(61, 5.0),
        gone("account:a/isp:google", 120),
    ];
    let story = story(&history, &[turn(61, "limit.cut", 40.0, 5.0)], Some(0));
    let case = &story.cases[0];
    assert_eq!(case.recovered, Some(NOON + 120 * MINUTE + AT));
    assert_eq!(case.lowest, Some((NOON + 61 * MINUTE + AT, 5.0)));
    let drawing = crate::report::chart::svg(case, story.now);
    assert!(
        !drawing.contains("inf") && !drawing.contains("NaN"),
        "{drawing}"
    );
}

#[test]
fn a_drawing_shows_what_came_before_and_after_and_not_the_whole_day() {
    let (history, entries) = incident();
    let changes: Vec<Change> = entries.iter().map(Change::of).collect();
    let long = crate::report::case::Period {
        since: PERIOD.since - 20 * 60 * MINUTE,
        until: PERIOD.until + 20 * 60 * MINUTE,
    };
    let case = Case::of(
        "isp:google",
        Series::of(&history, "isp:google"),
        &changes,
        long,
    );
    assert!(case.drawn.since > NOON && case.drawn.since < NOON + 60 * MINUTE);
    assert!(case.drawn.until > NOON + 120 * MINUTE && case.drawn.until < long.until);
    let more: Vec<Change> = (0..100)
        .map(|it| turn(61 + it % 60, "limit.cut", 2.0, 1.0))
        .map(|it| Change::of(&it))
        .collect();
    let case = Case::of(
        "isp:google",
        Series::of(&history, "isp:google"),
        &more,
        long,
    );
    assert_eq!((case.changes.len(), case.untold), (40, 60));
}

#[test]
fn numbers_and_names_are_easy_to_read() {
    let rates = [0.0, 0.01, 0.5, 1.0, 12.34, 40.0, 1_234.5].map(figures::rate);
    assert_eq!(
        rates,
        ["0", "0.6/min", "30/min", "1/s", "12.3/s", "40/s", "1234/s"]
    );
    assert_eq!(figures::share(1, 3), "33 %");
    assert_eq!(figures::share(0, 0), "0 %");
    assert_eq!(figures::length(-5), "0 s");
    assert_eq!(figures::length(112 * MINUTE), "1 h 52 min");
    let letters = [0, 25, 26, 51, 52].map(marks::letter);
    assert_eq!(letters, ["A", "Z", "A2", "Z2", "A3"]);
    let places = [
        (0, 0.0),
        (1, 5.0),
        (2, 10.0),
        (3, 90.0),
        (4, 200.0),
        (5, 205.0),
    ];
    let marks: Vec<String> = marks::marks(&places).iter().map(|it| it.text()).collect();
    assert_eq!(marks, ["A\u{2013}C", "D", "E\u{2013}F"]);
    assert_eq!(scale::round_ticks(44.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
    assert_eq!(scale::round_ticks(f64::NAN), [0.0]);
    assert_eq!(scale::time_step(0), 1_000);
    let names = ["isp:google", "../../etc/passwd", "", "Ä", "host:a.b"].map(escape::file_name);
    assert_eq!(
        names,
        ["isp-google", "etc-passwd", "unnamed", "unnamed", "host-a-b"]
    );
}
