//! Bounces in words, and what is none.

use outflow_core::reply::{Enhanced, Reply};
use outflow_feedback::{Kind, read};

use super::{id, paths, report};

#[test]
fn a_failure_notice() {
    let report = report(include_str!("../samples/plain-qmail.eml"));
    let [bounce] = &report.feedback[..] else {
        panic!("{report:?}");
    };
    assert_eq!(bounce.kind, Kind::Bounce);
    assert_eq!(bounce.recipient.as_deref(), Some("nobody@example.net"));
    assert_eq!(bounce.status, Some(Enhanced(5, 1, 1)));
    assert_eq!(bounce.message_id.as_deref(), Some("q@example.com"));
    assert_eq!(paths().find(&report), Some(id()));
}

#[test]
fn a_bounce_that_names_its_recipients_in_its_header() {
    let report = report(include_str!("../samples/plain-exim.eml"));
    let bounce = &report.feedback[0];
    assert_eq!(bounce.kind, Kind::Bounce);
    assert_eq!(bounce.recipient.as_deref(), Some("full@example.net"));
    assert_eq!(bounce.message_id.as_deref(), Some("x@example.com"));
    assert!(matches!(
        bounce.reply(),
        Some(Reply::Said {
            code: 552,
            enhanced: Some(Enhanced(5, 2, 2)),
            ..
        })
    ));
}

#[test]
fn a_warning_is_no_bounce() {
    let report = report(include_str!("../samples/plain-delayed.eml"));
    assert_eq!(report.feedback[0].kind, Kind::Delay);
    assert_eq!(
        report.feedback[0].recipient.as_deref(),
        Some("slow@example.net")
    );
}

#[test]
fn somebody_who_is_away_has_not_bounced() {
    let report = report(include_str!("../samples/auto-reply.eml"));
    assert_eq!(report.feedback[0].kind, Kind::AutoReply);
    assert_eq!(report.feedback[0].reply(), None);
    assert_eq!(paths().find(&report), Some(id()));
}

#[test]
fn what_people_write_is_no_report() {
    assert_eq!(read(include_bytes!("../samples/ordinary.eml")), None);
    assert_eq!(read(b""), None);
    assert_eq!(read(b"\r\n\r\n"), None);
    assert_eq!(
        read(b"Subject: failure notice\r\n\r\n<a@b.example>: 550 5.1.1 No\r\n"),
        None
    );
}
