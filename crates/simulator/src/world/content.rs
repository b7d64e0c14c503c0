//! What the world's messages say: the envelope is the message's number, the body
//! follows from that number too, so that whoever reads one knows what it should
//! be. Messages of one caller that follow one another share a body, as those of
//! a campaign do.

use std::sync::Arc;

use outflow_core::entropy::Entropy;
use outflow_ports::parcel::Parcel;

use crate::trace::MessageNo;

/// So many messages in a row share a body.
const SHARED_BY: u64 = 4;

/// The envelope of a message.
pub fn envelope(message: MessageNo) -> Arc<[u8]> {
    Arc::from(message.to_le_bytes())
}

/// The bodies of messages, made as they are needed; each is shared by those that
/// follow one another.
#[derive(Debug, Default)]
pub struct Bodies {
    last: Option<(u64, Arc<[u8]>)>,
}

impl Bodies {
    /// The body of a message.
    pub fn of(&mut self, message: MessageNo) -> Arc<[u8]> {
        let no = message / SHARED_BY;
        match &self.last {
            Some((known, body)) if *known == no => Arc::clone(body),
            _ => {
                let body: Arc<[u8]> = body(no).collect();
                self.last = Some((no, Arc::clone(&body)));
                body
            }
        }
    }
}

/// Most bodies are short, some fill a small segment.
fn body(no: u64) -> impl Iterator<Item = u8> {
    let mut entropy = Entropy(no);
    let length = match entropy.between(0, 99) {
        0 => entropy.between(2_000, 9_000),
        1..=9 => entropy.between(200, 1_200),
        _ => entropy.between(8, 60),
    };
    let first = entropy.draw();
    (0..length).map(move |at| (first >> (at % 8 * 8)) as u8 ^ (at / 8) as u8)
}

/// The number in an envelope.
pub fn number_of(envelope: &[u8]) -> Option<MessageNo> {
    Some(MessageNo::from_le_bytes(envelope.try_into().ok()?))
}

/// The number of the message that this is, if its body belongs to it.
pub fn number(parcel: &Parcel) -> Option<MessageNo> {
    let number = number_of(&parcel.envelope)?;
    parcel
        .body
        .iter()
        .copied()
        .eq(body(number / SHARED_BY))
        .then_some(number)
}
