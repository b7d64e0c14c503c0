//! What the server writes into the audit, as a report tells it. The shapes here
//! are the server's own; `tests/server/report.rs` holds them against a real one.

use outflow_api::standstills;
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Alert, Standstill};
use outflow_core::name::Name;
use outflow_core::time::Wall;
use serde_json::{Value, json};

use super::{NOON, entry, incident, story, turn};
use crate::report::change::{Change, Effect};
use crate::report::markdown;
use crate::report::material::{Entry, MINUTE};
use crate::report::phase::Kind;
use crate::report::story::OTHERS_MAX;

/// What the runbook writes about its incident.
fn state(minute: i64, action: &str, state: &str, why: &str) -> Entry {
    let detail = json!({
        "destination": "isp:google", "state": state, "rate_permille": 500, "why": why,
        "said": format!("isp:google is {state}, at 50% of its rate (4xx: 12 of 40 in 15m)"),
    });
    entry(minute, "rule:runbook", action, "3", detail)
}

fn pause(action: &str, about: &str) -> Change {
    let detail = json!({
        "about": about, "reason": "storm", "until": "2026-01-31T13:30:00.000Z",
        "since": "2026-01-31T13:00:00.000Z", "by": "jo",
    });
    Change::of(&entry(1, "jo", action, "7", detail))
}

#[test]
fn states_of_an_incident_are_its_phases() {
    let (history, mut entries) = incident();
    entries.extend([
        state(62, "incident.open", "open", "4xx: 12 of 40 in 15m"),
        state(63, "incident.mitigate", "mitigating", "slowed to 50%"),
        state(80, "incident.recover", "recovering", "calm for 10 min"),
        state(82, "incident.mitigate", "mitigating", "refused again"),
        state(90, "incident.canary", "recovering", "canaries first"),
        state(121, "incident.close", "closed", "all steps are taken"),
    ]);
    let story = story(&history, &entries, None);
    let case = &story.cases[0];
    let turns = case.phases.iter().map(|it| (it.from - NOON) / MINUTE);
    assert_eq!(turns.collect::<Vec<i64>>(), [60, 63, 90]);
    let own = case.changes.iter().filter(|it| it.incident.is_some());
    let told: Vec<&str> = own.map(|it| it.what.as_str()).collect();
    assert_eq!(
        told,
        [
            "opened incident 3",
            "mitigated incident 3",
            "let recover incident 3",
            "mitigated incident 3",
            "sent canaries for incident 3",
            "closed incident 3",
        ]
    );
    let text = markdown::report(&story, &[String::new()]);
    assert!(
        text.contains("| slowed to 50% | isp:google is mitigating"),
        "{text}"
    );
    assert!(!text.contains("incident.mitigate"), "{text}");
}

/// It opens and does something about it in one line.
#[test]
fn an_incident_that_is_mitigated_at_once_is_no_refusal_without_answer() {
    let (history, mut entries) = incident();
    entries.retain(|it| !it.action.starts_with("limit."));
    entries.extend([
        state(62, "incident.open", "mitigating", "4xx: 12 of 40 in 15m"),
        state(90, "incident.recover", "recovering", "calm"),
    ]);
    let case = &story(&history, &entries, None).cases[0];
    let kinds: Vec<Kind> = case.phases.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Refused, Kind::Slowed, Kind::Recovering]);
}

/// An incident that only calls somebody says nothing of what was done.
#[test]
fn phases_follow_the_changes_where_the_runbook_does_nothing() {
    let (history, mut entries) = incident();
    entries.push(state(62, "incident.open", "open", "4xx: 12 of 40 in 15m"));
    let case = &story(&history, &entries, None).cases[0];
    let turns = case.phases.iter().map(|it| (it.from - NOON) / MINUTE);
    assert_eq!(turns.collect::<Vec<i64>>(), [60, 61, 100]);
}

#[test]
fn pauses_are_told_by_what_they_are_about() {
    let made = pause("pause.add", "isp:att/class:low");
    assert!(made.concerns("isp:att") && !made.concerns("isp:google"));
    assert_eq!(
        (made.effect, &*made.target),
        (Effect::Slower, "isp:att/class:low")
    );
    assert_eq!(made.why, "storm (until 2026-01-31T13:30:00.000Z)");
    for action in ["pause.remove", "pause.over"] {
        let gone = pause(action, "isp:att");
        assert!(gone.concerns("isp:att"));
        assert_eq!((gone.effect, &*gone.why), (Effect::Faster, "storm"));
    }
    assert!(pause("pause.add", "isp:*").concerns("isp:att"));
}

#[test]
fn accounts_that_are_taken_out_are_told_where() {
    let tell = |alert: &Alert| {
        let (action, target, detail) = standstills::line(alert).unwrap();
        Change::of(&entry(1, "rule:breaker", action, &target, detail))
    };
    let place = Some(Destination::isp("google"));
    let broken = tell(&Alert::Broken {
        account: Name::from("ses-1"),
        destination: place.clone(),
        until: Wall(NOON * 1_000_000),
        why: Standstill::Refusals,
    });
    assert!(broken.concerns("isp:google") && !broken.concerns("isp:att"));
    assert_eq!(broken.effect, Effect::Slower);
    assert_eq!(broken.target, "account:ses-1/isp:google");
    assert_eq!(broken.why, "refusals (until 2026-01-31T12:00:00.000Z)");
    let restored = tell(&Alert::Restored {
        account: Name::from("ses-1"),
        destination: place,
    });
    assert!(restored.concerns("isp:google"));
    assert_eq!(restored.effect, Effect::Faster);
    let everywhere = tell(&Alert::Restored {
        account: Name::from("ses-1"),
        destination: None,
    });
    assert_eq!(everywhere.target, "ses-1");
}

#[test]
fn a_mitigation_is_told_on_its_way_back() {
    let over = |rate: &str| {
        json!({ "rate": rate, "mitigation_reason": "421s",
                "cooldown_until": "2026-01-31T12:30:00Z" })
    };
    let ramp = json!({ "before": over("40/s"), "after": over("48/s"), "base": { "rate": "80/s" } });
    let step = Change::of(&entry(31, "server", "policy.ramp", "isp:att", ramp));
    assert_eq!((step.from, step.to), (Some(40.0), Some(48.0)));
    assert_eq!((&*step.what, &*step.why), ("ramped back", "421s"));
    assert_eq!(step.effect, Effect::Faster);
    let end = json!({ "before": over("72/s"), "after": { "rate": "80/s" } });
    let end = Change::of(&entry(50, "server", "policy.cooldown_over", "isp:att", end));
    assert_eq!((end.from, end.to), (Some(72.0), Some(80.0)));
    assert_eq!((&*end.what, &*end.why), ("ended the mitigation", "421s"));
    let again = json!({ "before": over("40/s"), "after": over("40/s") });
    let again = Change::of(&entry(9, "rule:runbook", "policy.set", "isp:att", again));
    assert_eq!(
        (again.effect, &*again.what),
        (Effect::Other, "went on mitigating")
    );
}

/// What was changed long before the first refusal is no part of it, and told
/// all the same; what was changed just before the period may be part of it.
#[test]
fn no_change_of_the_period_is_left_out() {
    let (mut history, _) = incident();
    for slice in &mut history.slices {
        let minute = (slice.at - NOON) / MINUTE;
        if slice.destination == "isp:google" && minute < 30 {
            *slice = super::slice(minute, "isp:google", 2_400, u64::from(minute > 20) * 1_200);
        }
    }
    let early = turn(-2, "limit.raised", 20.0, 40.0);
    let own = Change::of(&early);
    let told = story(&history, std::slice::from_ref(&early), None);
    let [first] = &told.cases[0].changes[..] else {
        panic!("{:?}", told.cases[0].changes);
    };
    assert_eq!(*first, own, "23 minutes before");
    assert!(told.cases[0].drawn.since <= own.at);

    let (history, mut entries) = incident();
    entries.push(turn(20, "limit.raised", 39.0, 40.0));
    let told = story(&history, &entries, None);
    assert!(!told.cases[0].changes.iter().any(|it| it.from == Some(39.0)));
    let others: Vec<Option<f64>> = told.others.iter().map(|it| it.from).collect();
    assert_eq!(
        others,
        [None, Some(39.0)],
        "40 minutes before, and account b"
    );
    // What came before the period and led to nothing is not told.
    let told = story(&history, &[early], None);
    assert!(told.others.is_empty() && told.cases[0].changes.is_empty());
}

#[test]
fn what_is_not_listed_is_said_not_to_be() {
    let (history, _) = incident();
    let many = |count: i64, action: &str| -> Vec<Entry> {
        let many = (0..count).rev();
        many.map(|it| entry(it % 60, "jo", action, "x", Value::Null))
            .collect()
    };
    let quiet = markdown::report(&story(&history, &many(50, "account.set"), None), &[]);
    assert!(!quiet.contains("see `outflow audit`"), "{quiet}");
    let mut told = story(&history, &many(53, "account.set"), None);
    assert_eq!((told.others.len(), told.others_untold), (OTHERS_MAX, 3));
    told.missing_before = Some(NOON + MINUTE);
    let text = markdown::report(&told, &[String::new()]);
    assert!(text.contains("And 3 more changes after these"), "{text}");
    assert!(
        text.contains("**Changes before 12:01:00Z are missing here**"),
        "{text}"
    );
    // Lists of recipients say nothing of the flow.
    for action in ["suppressions.learn", "suppressions.add", "review.progress"] {
        let told = story(&history, &many(3, action), None);
        assert!(told.others.is_empty(), "{action}");
    }
    assert_eq!(
        story(&history, &many(1, "review.make"), None).others.len(),
        1
    );
}
