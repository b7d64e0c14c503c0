//! A mail that may report a complaint: read or refused, within bounds.

use outflow_feedback::{Report, read};

/// The same bytes as a whole mail, and as the part that reports.
pub fn run(bytes: &[u8]) {
    for mail in [bytes.to_vec(), wrapped(bytes)] {
        if let Some(report) = read(&mail) {
            check(&report);
        }
    }
}

fn wrapped(part: &[u8]) -> Vec<u8> {
    let mut mail =
        b"From: fbl@example.net\r\nTo: a@example.com\r\nContent-Type: multipart/report; \
        report-type=feedback-report; boundary=b\r\n\r\n--b\r\nContent-Type: \
        message/feedback-report\r\n\r\n"
            .to_vec();
    mail.extend_from_slice(part);
    mail.extend_from_slice(b"\r\n--b--\r\n");
    mail
}

fn check(report: &Report) {
    assert!((1..=100).contains(&report.feedback.len()));
    assert!(report.addresses.len() <= 16);
    for feedback in &report.feedback {
        let texts = [
            &feedback.recipient,
            &feedback.source_ip,
            &feedback.feedback_type,
            &feedback.envelope_id,
            &feedback.message_id,
            &feedback.return_path,
            &feedback.signed,
        ];
        for text in texts.into_iter().flatten() {
            assert!(text.len() <= 2_048 && !text.contains(char::is_control));
        }
    }
}
