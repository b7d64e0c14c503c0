//! A session and all of its outside in one call, for fuzz targets.

use std::sync::Arc;

use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use outflow_core::time::Wall;

use super::reply::Reply;
use super::{Handed, LINE_BYTES_MAX, Line, Output, Rules, Session};

/// What became of what was fed.
#[derive(Debug)]
pub struct Fed {
    /// All that was said.
    pub replies: Vec<u8>,
    /// The messages that came whole.
    pub handed: Vec<Handed>,
    /// Whether the session ended it.
    pub is_closed: bool,
}

/// Feeds bytes to a session in pieces of at most `piece` bytes and answers for
/// the outside; whatever comes, the session stays within its bounds. Every
/// second message is stored.
pub fn feed(bytes: &[u8], piece: usize) -> Fed {
    let line = Line {
        can_tls: true,
        is_trusted: true,
    };
    let rules = Rules {
        message_bytes_max: 4_096,
        recipients_max: 10,
        ..Rules::default()
    };
    let mut session = Session::new(Arc::new(rules), line);
    let mut fed = Fed {
        replies: Vec::new(),
        handed: Vec::new(),
        is_closed: false,
    };
    for piece in bytes.chunks(piece.max(1)) {
        session.on_bytes(piece);
        answer(&mut session, &mut fed);
        fed.replies.append(session.replies());
        if fed.is_closed {
            break;
        }
        assert!(session.begun.len() <= LINE_BYTES_MAX && session.held() <= 64 << 10);
    }
    fed
}

fn answer(session: &mut Session, fed: &mut Fed) {
    while let Some(output) = session.next_output() {
        match output {
            Output::StartTls => session.on_tls(),
            Output::Authenticate(token) => session.on_admitted(token.as_str() == "token"),
            Output::Deliver(handed) => {
                let may = session.is_admitted && !handed.is_report;
                assert!(may, "a message came in without a token");
                assert!(handed.bytes.len() <= 8_192 && handed.recipients.len() <= 10);
                fed.handed.push(*handed);
                let seq = Seq(fed.handed.len() as u64);
                session.on_stored(match seq.0 % 2 {
                    0 => Ok(MessageId::new(Wall(0), seq)),
                    _ => Err(Reply::new(451, "4.3.0", "not stored")),
                });
            }
            Output::Close => fed.is_closed = true,
        }
    }
}
