//! Sessions without sockets: honest clients split at every byte, then hostile
//! ones.

mod honest;
mod hostile;
mod reports;
mod smuggling;

use std::sync::Arc;

use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use outflow_core::time::Wall;

use super::{Handed, Line, Output, Rules, Session};

/// `AUTH PLAIN` with the token `token`.
const AUTH: &str = "AUTH PLAIN AHVzZXIAdG9rZW4=\r\n";

/// What became of what a client said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    replies: String,
    handed: Vec<Handed>,
    shown: usize,
    is_closed: bool,
}

impl Told {
    /// The codes of all replies, in order.
    fn codes(&self) -> Vec<u16> {
        let last = |line: &&str| line.as_bytes().get(3) == Some(&b' ');
        let lines = self.replies.lines().filter(last);
        lines.map(|line| line[..3].parse().unwrap()).collect()
    }

    fn last(&self) -> &str {
        self.replies.lines().last().unwrap()
    }
}

fn local() -> Line {
    Line {
        can_tls: false,
        is_trusted: true,
    }
}

fn small() -> Rules {
    Rules {
        hostname: "mail.example.com".to_owned(),
        message_bytes_max: 1_000,
        recipients_max: 3,
        ..Rules::default()
    }
}

/// What a client hears that says all this, in these pieces.
fn told<'a>(rules: Rules, line: Line, pieces: impl IntoIterator<Item = &'a [u8]>) -> Told {
    let mut session = Session::new(Arc::new(rules), line);
    let mut told = Told::default();
    for piece in pieces {
        session.on_bytes(piece);
        take(&mut session, &mut told);
    }
    told
}

fn take(session: &mut Session, told: &mut Told) {
    loop {
        let replies = std::mem::take(session.replies());
        told.replies.push_str(&String::from_utf8(replies).unwrap());
        match session.next_output() {
            None => return,
            Some(Output::StartTls) => session.on_tls(),
            Some(Output::Authenticate(token)) => {
                told.shown += 1;
                session.on_admitted(token.as_str() == "token");
            }
            Some(Output::Deliver(handed)) if handed.is_report => {
                told.handed.push(*handed);
                session.on_heard(Ok(()));
            }
            Some(Output::Deliver(handed)) => {
                told.handed.push(*handed);
                let seq = Seq(told.handed.len() as u64);
                session.on_stored(Ok(MessageId::new(Wall(0), seq)));
            }
            Some(Output::Close) => told.is_closed = true,
        }
    }
}

fn all_at_once(text: &str) -> Told {
    told(small(), local(), [text.as_bytes()])
}

/// A session that is logged in and named a sender and a recipient.
fn begun(rest: &str) -> String {
    format!("EHLO me\r\n{AUTH}MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n{rest}")
}
