//! Delivery status notifications.

use outflow_core::classify::Rules;
use outflow_core::destination::Destination;
use outflow_core::outcome::Reaction;
use outflow_core::reply::{Enhanced, Reply};
use outflow_feedback::read::read_first;
use outflow_feedback::{Kind, read};

use super::{id, paths, report};

const POSTFIX: &str = include_str!("../samples/dsn-postfix.eml");

#[test]
fn a_bounce_says_who_why_and_what_it_was() {
    let report = report(POSTFIX);
    let [bounce] = &report.feedback[..] else {
        panic!("{report:?}");
    };
    assert_eq!(bounce.kind, Kind::Bounce);
    assert_eq!(bounce.recipient.as_deref(), Some("user@gmail.example"));
    assert_eq!(bounce.original_recipient, None, "the same");
    assert_eq!(bounce.status, Some(Enhanced(5, 1, 1)));
    assert_eq!(bounce.reporting_mta.as_deref(), Some("mx.relay.example"));
    assert_eq!(
        bounce.remote_mta.as_deref(),
        Some("gmail-smtp-in.l.google.com")
    );
    let id_text = "019a8b2e-5c00-7abc-8def-000000000001@example.com";
    assert_eq!(bounce.message_id.as_deref(), Some(id_text));
    assert_eq!(bounce.return_path, Some(paths().address(id())));
    assert_eq!(paths().find(&report), Some(id()));
}

#[test]
fn a_bounce_reads_like_a_reply() {
    let report = report(POSTFIX);
    let reply = report.feedback[0].reply().unwrap();
    assert!(
        matches!(&reply, Reply::Said { code: 550, enhanced: Some(Enhanced(5, 1, 1)), text, .. }
            if text.starts_with("The email account that you tried to reach")),
        "{reply:?}"
    );
    let google = Destination::isp("google");
    let outcome = Rules::built_in().classify(Some(&google), &reply, 1);
    assert_eq!(outcome.action, Reaction::Suppress, "by {}", outcome.rule);
}

#[test]
fn each_recipient_is_told_of() {
    let report = report(include_str!("../samples/dsn-two-recipients.eml"));
    let [one, two] = &report.feedback[..] else {
        panic!("{report:?}");
    };
    assert_eq!(one.kind, Kind::Bounce);
    assert_eq!(one.recipient.as_deref(), Some("one@example.net"));
    assert_eq!(one.status, Some(Enhanced(5, 2, 2)));
    assert_eq!(one.diagnostic.as_deref(), Some("552 5.2.2 Mailbox full"));
    assert_eq!(two.kind, Kind::Delay);
    assert_eq!(two.recipient.as_deref(), Some("two@example.org"));
    let reply = two.reply().unwrap();
    assert!(matches!(
        reply,
        Reply::Said {
            code: 450,
            enhanced: Some(Enhanced(4, 4, 1)),
            ..
        }
    ));
    for feedback in [one, two] {
        assert_eq!(feedback.envelope_id.as_deref(), Some("env-42"));
        assert_eq!(feedback.message_id.as_deref(), Some("abc@example.com"));
        assert_eq!(feedback.return_path.as_deref(), Some("sender@example.com"));
    }
    assert_eq!(report.addresses, ["sender@example.com"]);
    assert_eq!(paths().find(&report), None, "no address of ours");
}

#[test]
fn an_encoded_report_behind_alternatives_is_found() {
    let report = report(include_str!("../samples/dsn-exchange.eml"));
    let bounce = &report.feedback[0];
    assert_eq!(bounce.kind, Kind::Bounce);
    assert_eq!(bounce.recipient.as_deref(), Some("gone@outlook.example"));
    assert_eq!(bounce.status, Some(Enhanced(5, 1, 10)));
    assert_eq!(bounce.message_id.as_deref(), Some("ex@example.com"));
    let office = Destination::isp("office365");
    let reply = bounce.reply().unwrap();
    let outcome = Rules::built_in().classify(Some(&office), &reply, 1);
    assert_eq!(outcome.rule.as_str(), "microsoft.unknown");
}

#[test]
fn good_news_is_no_bounce() {
    let report = report(include_str!("../samples/dsn-delivered.eml"));
    assert_eq!(report.feedback[0].kind, Kind::Delivered);
    assert_eq!(report.feedback[0].reply(), None);
}

#[test]
fn a_report_without_words_goes_by_its_digits() {
    let with = |from: &str, to: &str| report(&POSTFIX.replace(from, to)).feedback[0].kind;
    assert_eq!(with("Action: failed", "Action: FAILED (no)"), Kind::Bounce);
    assert_eq!(with("Action: failed", "Action: mislaid"), Kind::Bounce);
    assert_eq!(
        with("Action: failed\r\nStatus: 5", "Status: 4"),
        Kind::Delay
    );
    assert_eq!(
        with("Action: failed\r\nStatus: 5", "Status: 2"),
        Kind::Delivered
    );
    assert_eq!(
        with("Action: failed\r\nStatus: 5", "Status: 9"),
        Kind::Other
    );
}

#[test]
fn a_report_is_bounded() {
    let recipient = "Final-Recipient: rfc822; a@example.com\r\nAction: failed\r\n\r\n";
    let many = POSTFIX.replace(
        "Final-Recipient: rfc822; user",
        &(recipient.repeat(5_000) + "Final-Recipient: rfc822; user"),
    );
    assert_eq!(report(&many).feedback.len(), 100);
    let first = read_first(many.as_bytes()).expect("a report");
    assert_eq!(
        first.feedback.len(),
        1,
        "a signed address has one recipient"
    );
    let long = POSTFIX.replace("unnecessary", &"unnecessary ".repeat(100_000));
    let diagnostic = report(&long).feedback[0].diagnostic.clone().unwrap();
    assert!(diagnostic.len() <= 2_048);
    // However large the message that came back is, the report is read.
    let large = POSTFIX.replace("Thank you.", &"Thank you.\r\n".repeat(500_000));
    assert!(large.len() > 5_000_000);
    assert_eq!(paths().find(&report(&large)), Some(id()));
    let bytes: Vec<u8> = large.bytes().map(|byte| byte | 0x80).collect();
    assert_eq!(read(&bytes), None);
}

#[test]
fn nothing_that_is_kept_can_break_a_line() {
    let odd = POSTFIX.replace("user@gmail.example", "us\u{0}er\u{7}@gmail.example");
    for feedback in report(&odd).feedback {
        let texts = [
            &feedback.recipient,
            &feedback.message_id,
            &feedback.remote_mta,
        ];
        for text in texts.into_iter().flatten() {
            assert!(
                !text.contains(|letter: char| letter.is_control()),
                "{text:?}"
            );
        }
    }
}
