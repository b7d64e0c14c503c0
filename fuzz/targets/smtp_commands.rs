//! What a client of the submission port says: within bounds, the same in whatever
//! pieces it comes, and nothing without a token. What was taken can be read back
//! and sent.

use outflow_core::time::Wall;
use outflow_intake_smtp::server::Handed;
use outflow_intake_smtp::server::feed::{Fed, feed};
use outflow_intake_smtp::{Pass, accept};
use outflow_mail::{Can, compose};
use outflow_ports::letter::{Content, Envelope};
use outflow_ports::naming::Naming;

const NOW: Wall = Wall(1_790_000_000_000_000_000);
/// A message that may still be of use is heard out when it came at once, and cut
/// off when it comes in pieces; so only what is short is the same in both.
const SAME_BYTES_MAX: usize = 4_096;

pub fn run(bytes: &[u8]) {
    let whole = feed(bytes, bytes.len());
    for piece in [1, 7] {
        let pieces = feed(bytes, piece);
        // What follows STARTTLS in one packet ends the connection, on purpose.
        if bytes.len() <= SAME_BYTES_MAX && !names_tls(bytes) {
            same(&whole, &pieces);
        }
    }
    for handed in &whole.handed {
        take(handed);
    }
}

fn names_tls(bytes: &[u8]) -> bool {
    let mut words = bytes.windows(8);
    words.any(|word| word.eq_ignore_ascii_case(b"STARTTLS"))
}

fn same(whole: &Fed, pieces: &Fed) {
    let text = |fed: &Fed| String::from_utf8_lossy(&fed.replies).into_owned();
    assert_eq!(text(whole), text(pieces));
    assert!(whole.handed == pieces.handed);
    assert_eq!(whole.is_closed, pieces.is_closed);
}

fn take(handed: &Handed) {
    let pass = Pass::default();
    let naming = Naming::of(1);
    let submissions = match accept(handed, &pass, "mail.example.com", NOW, &naming) {
        Ok(submissions) => submissions,
        Err(reply) => return assert!((500..600).contains(&reply.code()), "{reply:?}"),
    };
    assert!((1..=handed.recipients.len()).contains(&submissions.len()));
    for submission in &submissions {
        assert_eq!(submission.body, submissions[0].body);
        let envelope = Envelope::from_bytes(&submission.envelope).expect("an envelope");
        let content = Content::from_bytes(&submission.body).expect("a body");
        for eight_bit in [true, false] {
            match compose(&envelope, &content, Can { eight_bit }) {
                Ok(mail) => clean(&mail.bytes),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// No line is too long or ends otherwise, and the header names nothing of ours.
fn clean(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.split_inclusive('\n') {
        let inside = line.strip_suffix("\r\n").expect("a line end");
        assert!(!inside.contains(['\r', '\n']));
    }
    assert!(
        bytes
            .split(|byte| *byte == b'\n')
            .all(|line| line.len() <= 999)
    );
    let header = text.split("\r\n\r\n").next().unwrap_or_default();
    let mut lines = header.lines().map(str::to_ascii_lowercase);
    assert!(!lines.any(|line| line.starts_with("x-outflow-") || line.starts_with("bcc:")));
}
