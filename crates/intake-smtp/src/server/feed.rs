//! A session and all of its outside in one call, for fuzz targets.

use std::sync::Arc;

use super::reply::Reply;
use super::{LINE_BYTES_MAX, Line, Output, Rules, Session};

/// Feeds bytes to a session in pieces of at most `piece` bytes and answers for
/// the outside; whatever comes, the session stays within its bounds. For fuzz
/// targets: the session is returned, so that more can be asked of it.
pub fn feed(bytes: &[u8], piece: usize) -> Session {
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
    for piece in bytes.chunks(piece.max(1)) {
        session.on_bytes(piece);
        while let Some(output) = session.next_output() {
            match output {
                Output::StartTls => session.on_tls(),
                Output::Authenticate(token) => session.on_admitted(token.as_str() == "token"),
                Output::Deliver(handed) => {
                    assert!(session.is_admitted, "a message came in without a token");
                    assert!(handed.bytes.len() <= 8_192 && handed.recipients.len() <= 10);
                    let refused = Reply::new(451, "4.3.0", "not stored");
                    session.on_stored(Err(refused));
                }
                Output::Close => return session,
            }
        }
        assert!(session.begun.len() <= LINE_BYTES_MAX && session.held() <= 64 << 10);
        session.replies().clear();
    }
    session
}
