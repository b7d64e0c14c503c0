//! Complaints.

use outflow_feedback::Kind;

use super::{id, paths, report};

const ABUSE: &str = include_str!("../samples/arf-abuse.eml");

#[test]
fn a_complaint_says_who_and_about_what() {
    let report = report(ABUSE);
    let [complaint] = &report.feedback[..] else {
        panic!("{report:?}");
    };
    assert_eq!(complaint.kind, Kind::Complaint);
    assert_eq!(complaint.feedback_type.as_deref(), Some("abuse"));
    assert_eq!(complaint.recipient.as_deref(), Some("user@yahoo.example"));
    assert_eq!(complaint.source_ip.as_deref(), Some("192.0.2.1"));
    assert_eq!(
        complaint.reporting_mta.as_deref(),
        Some("mail.yahoo.example")
    );
    let id_text = "8787KJKJ3K4J3K4J3K4J3.mail@example.com";
    assert_eq!(complaint.message_id.as_deref(), Some(id_text));
    assert_eq!(complaint.reply(), None);
    assert_eq!(
        paths().find(&report),
        Some(id()),
        "by the original's sender"
    );
}

#[test]
fn words_for_complaints_differ() {
    for (word, kind) in [
        ("fraud", Kind::Complaint),
        ("Virus", Kind::Complaint),
        ("not-spam", Kind::NotSpam),
        ("opt-out-list", Kind::OptOut),
        ("auth-failure", Kind::AuthenticationFailure),
        ("news", Kind::Other),
    ] {
        let text = ABUSE.replace("Feedback-Type: abuse", &format!("Feedback-Type: {word}"));
        assert_eq!(report(&text).feedback[0].kind, kind, "{word}");
    }
}

#[test]
fn a_recipient_that_was_blacked_out_is_nobody() {
    let report = report(include_str!("../samples/arf-redacted.eml"));
    let opt_out = &report.feedback[0];
    assert_eq!(opt_out.kind, Kind::OptOut);
    assert_eq!(opt_out.recipient, None);
    assert_eq!(opt_out.message_id.as_deref(), Some("r@example.com"));
    assert_eq!(
        paths().find(&report),
        Some(id()),
        "the address still says it"
    );
}

#[test]
fn a_failed_check_is_no_complaint() {
    let report = report(include_str!("../samples/arf-auth-failure.eml"));
    assert_eq!(report.feedback[0].kind, Kind::AuthenticationFailure);
    assert_eq!(report.feedback[0].source_ip.as_deref(), Some("192.0.2.1"));
    assert_eq!(report.feedback[0].message_id, None);
}

#[test]
fn a_message_that_is_just_given_back_is_a_complaint() {
    let report = report(include_str!("../samples/complaint-bare.eml"));
    let complaint = &report.feedback[0];
    assert_eq!(complaint.kind, Kind::Complaint);
    assert_eq!(complaint.recipient.as_deref(), Some("user@hotmail.example"));
    assert_eq!(paths().find(&report), Some(id()));
}

#[test]
fn a_complaint_about_several_tells_of_each() {
    let line = "Original-Rcpt-To: <user@yahoo.example>\r\n";
    let more = format!("{line}Original-Rcpt-To: <other@yahoo.example>\r\n");
    let report = report(&ABUSE.replace(line, &more));
    let recipients: Vec<_> = report
        .feedback
        .iter()
        .map(|it| it.recipient.as_deref())
        .collect();
    assert_eq!(
        recipients,
        [Some("user@yahoo.example"), Some("other@yahoo.example")]
    );
}
