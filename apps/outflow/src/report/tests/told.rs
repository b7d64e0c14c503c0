//! What is told, word by word.

use super::{incident, slice, story, turn};
use crate::report::markdown;
use crate::report::material::History;

/// `OUTFLOW_BLESS=1` writes it anew.
#[test]
fn an_incident_is_told_like_this() {
    let (history, entries) = incident();
    let story = story(&history, &entries, Some(0));
    let told = markdown::report(&story, &["report-1-isp-google.svg".to_owned()]);
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/report/tests/incident.golden"
    );
    if std::env::var_os("OUTFLOW_BLESS").is_some() {
        std::fs::write(path, &told).unwrap();
    }
    let wanted = std::fs::read_to_string(path).unwrap_or_default();
    assert!(told == wanted, "OUTFLOW_BLESS=1 writes it anew:\n{told}");
}

#[test]
fn a_quiet_period_says_so() {
    let quiet = History {
        step: 60,
        slices: (0..180)
            .map(|it| slice(it, "isp:google", 100, u64::from(it == 3)))
            .collect(),
        ..History::default()
    };
    let told = markdown::report(&story(&quiet, &[], None), &[]);
    let headline = "**Nothing went wrong between 12:00:00Z and 15:00:00Z: 1 of 18,000 attempts \
         were refused (less than 0.1 %).**";
    assert!(told.contains(headline), "{told}");
    assert!(
        told.contains("| isp:google | 18,000 | 17,999 | 1 | 0 | 0 |"),
        "{told}"
    );
    let nothing = markdown::report(&story(&History::default(), &[], None), &[]);
    assert!(nothing.contains("**Nothing was sent between"), "{nothing}");
}

#[test]
fn what_still_goes_on_is_not_called_over() {
    let (mut history, _) = incident();
    history.slices.retain(|it| it.at < super::NOON);
    history.slices.extend((0..180).map(|minute| {
        let refused = if minute < 170 { 0 } else { 500 };
        slice(minute, "isp:google", 1_000, refused)
    }));
    let told = story(&history, &[], Some(3));
    let case = &told.cases[0];
    assert!(case.is_ongoing);
    assert_eq!(case.recovered, None);
    let headline = told.headline();
    let wanted = "isp:google started to refuse at 14:50:12Z, up to 50 % of what was sent to it, \
         and still does; nobody and no rule slowed down";
    assert!(headline.starts_with(wanted), "{headline}");
    let text = markdown::report(&told, &[String::new()]);
    assert!(text.contains("| time to recovery | not yet |"), "{text}");
    assert!(text.contains("3 given up"), "{text}");
}

#[test]
fn a_rule_that_acts_is_told_even_if_nothing_was_refused() {
    let (mut history, _) = incident();
    history.slices.retain(|it| it.destination == "isp:google");
    for slice in &mut history.slices {
        slice.refused = 0;
        slice.refusal = None;
    }
    let told = story(&history, &[turn(30, "limit.raised", 40.0, 44.0)], Some(0));
    assert_eq!(told.cases.len(), 1);
    assert!(told.is_quiet());
    let text = markdown::report(&told, &[String::new()]);
    assert!(text.contains("| first refusal | none |"), "{text}");
    assert!(text.contains("raised the rate"), "{text}");
}
