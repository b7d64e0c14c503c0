//! Whatever comes in is read or refused, within bounds.

use outflow_feedback::{Report, read};
use proptest::prelude::*;

const SAMPLES: [&str; 13] = [
    include_str!("../samples/arf-abuse.eml"),
    include_str!("../samples/arf-auth-failure.eml"),
    include_str!("../samples/arf-redacted.eml"),
    include_str!("../samples/auto-reply.eml"),
    include_str!("../samples/complaint-bare.eml"),
    include_str!("../samples/dsn-delivered.eml"),
    include_str!("../samples/dsn-exchange.eml"),
    include_str!("../samples/dsn-postfix.eml"),
    include_str!("../samples/dsn-two-recipients.eml"),
    include_str!("../samples/ordinary.eml"),
    include_str!("../samples/plain-delayed.eml"),
    include_str!("../samples/plain-exim.eml"),
    include_str!("../samples/plain-qmail.eml"),
];

fn check(report: &Report) {
    assert!((1..=100).contains(&report.feedback.len()));
    assert!(report.addresses.len() <= 16);
    for feedback in &report.feedback {
        let texts = [
            &feedback.recipient,
            &feedback.original_recipient,
            &feedback.reporting_mta,
            &feedback.remote_mta,
            &feedback.source_ip,
            &feedback.feedback_type,
            &feedback.envelope_id,
            &feedback.message_id,
            &feedback.return_path,
            &feedback.signed,
        ];
        for text in texts.into_iter().flatten() {
            assert!(
                text.len() <= 2_048 && !text.contains(char::is_control),
                "{text:?}"
            );
        }
        if let Some(said) = &feedback.diagnostic {
            let is_odd = |letter: char| letter.is_control() && letter != '\n';
            assert!(said.len() <= 2_048 && !said.contains(is_odd), "{said:?}");
        }
        let _ = feedback.reply();
    }
}

/// What the parsers look for.
const MARKS: &[&[u8]] = &[
    b"\r\n\r\n",
    b"--",
    b": ",
    b";",
    b"<",
    b">",
    b"\n ",
    b"@",
    b"=?utf-8?B?",
    b"5",
];

/// Where, how much, and what instead.
fn damage() -> impl Strategy<Value = Vec<(usize, usize, Vec<u8>)>> {
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..12),
        proptest::sample::select(MARKS).prop_map(<[u8]>::to_vec),
    ];
    proptest::collection::vec((any::<usize>(), 0_usize..64, bytes), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_damaged_report(which in 0..SAMPLES.len(), damage in damage()) {
        let mut mail = SAMPLES[which].as_bytes().to_vec();
        for (at, length, bytes) in damage {
            let at = at % (mail.len() + 1);
            let end = (at + length).min(mail.len());
            mail.splice(at..end, bytes);
        }
        if let Some(report) = read(&mail) {
            check(&report);
        }
    }

    #[test]
    fn any_bytes(mail in proptest::collection::vec(any::<u8>(), 0..600)) {
        if let Some(report) = read(&mail) {
            check(&report);
        }
    }
}

#[test]
fn samples_are_reports_but_for_one() {
    let read: Vec<bool> = SAMPLES
        .iter()
        .map(|it| read(it.as_bytes()).is_some())
        .collect();
    assert_eq!(read.iter().filter(|is| !**is).count(), 1);
    for sample in SAMPLES {
        for end in (0..sample.len()).step_by(7) {
            if let Some(report) = outflow_feedback::read(&sample.as_bytes()[..end]) {
                check(&report);
            }
        }
    }
}

/// A stack that overflows ends the process, which no test could report.
#[test]
fn a_mail_may_nest_as_deep_as_it_likes() {
    let messages = "Content-Type: message/rfc822\r\n\r\n".repeat(30_000);
    assert!(read(messages.as_bytes()).is_none());
    let sample = include_str!("../samples/dsn-postfix.eml");
    let (header, body) = sample
        .split_once("\r\n\r\n")
        .or(sample.split_once("\n\n"))
        .unwrap();
    // The report comes first; what it gives back is the bomb.
    let report = format!("{header}\r\n\r\n{body}\r\n{messages}");
    read(report.as_bytes()).iter().for_each(check);
    let levels = (0..20_000)
        .map(|no| format!("Content-Type: multipart/mixed; boundary=b{no}\r\n\r\n--b{no}\r\n"));
    assert!(read(levels.collect::<String>().as_bytes()).is_none());
}
