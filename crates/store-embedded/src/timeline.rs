//! What happened to a message so far: its entry, and the deferrals since, each
//! of which says where the one before it stands.

use std::io;

use outflow_ports::receipts::Happening;

use crate::journal::entry::{Entry, Written};
use crate::journal::place::Place;
use crate::journal::segment::Kind;
use crate::journal::words;
use crate::library::Library;

/// Deferrals that are read; of a message with more the oldest are left out.
const HAPPENINGS_MAX: usize = 500;

/// The entry of a message, as it stands on the disk.
pub struct Root {
    kind: u8,
    payload: Vec<u8>,
}

impl Root {
    /// What it says.
    pub fn written(&self) -> Option<Written<'_>> {
        match Entry::read(self.kind, &self.payload)? {
            Entry::Message(message) | Entry::Kept { message, .. } => Some(message),
            _ => None,
        }
    }
}

/// Reads the entry at `root` and what happened since, oldest first, of which
/// the last stands at `latest`.
pub fn read(library: &Library, root: Place, latest: Place) -> io::Result<(Root, Vec<Happening>)> {
    let (kind, payload) = library.read(Kind::Envelope, root)?;
    let entry = Root { kind, payload };
    let mut events = match Entry::read(entry.kind, &entry.payload) {
        Some(Entry::Message(message)) => vec![accepted(&message)],
        Some(Entry::Kept { events, .. }) => words::read_happenings(events).unwrap_or_default(),
        _ => return Err(io::Error::from(io::ErrorKind::InvalidData)),
    };
    let mut since = Vec::new();
    let mut at = latest;
    while at > root && since.len() < HAPPENINGS_MAX {
        // An older segment may be gone; then its happenings are in the entry.
        let Ok((kind, payload)) = library.read(Kind::Envelope, at) else {
            break;
        };
        let Some(Entry::Deferral {
            at: when,
            until,
            before,
            mut detail,
            ..
        }) = Entry::read(kind, &payload)
        else {
            break;
        };
        let detail = words::read_detail(&mut detail).unwrap_or_default();
        since.push(Happening {
            at: when,
            what: String::from("deferred"),
            account: detail.account,
            until: Some(until),
            error: detail.error,
        });
        at = before;
    }
    events.extend(since.into_iter().rev());
    let excess = events.len().saturating_sub(HAPPENINGS_MAX);
    events.drain(..excess);
    Ok((entry, events))
}

fn accepted(message: &Written<'_>) -> Happening {
    Happening {
        at: message.accepted_at,
        what: String::from("accepted"),
        account: None,
        until: message.due_at,
        error: None,
    }
}
