//! The public name of a message.
//!
//! A UUIDv7 that carries the message's place in the journal, so that finding a
//! message by its id is arithmetic. The bits between time and place are made
//! from both, so that a mistyped id is told from one that was given.

use std::fmt;
use std::str::FromStr;

use crate::entropy::Entropy;
use crate::message::Seq;
use crate::time::Wall;

/// Bits of a sequence number that an id carries.
const SEQ_BITS: u32 = 48;
const SEQ_MASK: u128 = (1 << SEQ_BITS) - 1;
const VERSION: u128 = 7 << 76;
const VARIANT: u128 = 2 << 62;

/// The public name of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u128);

/// A text that is not the id of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a message: it looks like 019a8b2e-5c00-7abc-8def-000000000001")]
pub struct NotAnId;

impl MessageId {
    /// The id of the message with this number, accepted at this time.
    pub fn new(accepted_at: Wall, seq: Seq) -> Self {
        Self::of_millis((accepted_at.0.max(0) / 1_000_000) as u64, seq)
    }

    fn of_millis(millis: u64, seq: Seq) -> Self {
        let millis = u128::from(millis & 0xffff_ffff_ffff);
        let place = u128::from(seq.0) & SEQ_MASK;
        let mut mix = Entropy((millis as u64).rotate_left(17) ^ seq.0);
        let mix = u128::from(mix.draw());
        let (high, low) = ((mix >> 14) & 0xfff, mix & 0x3fff);
        Self(millis << 80 | VERSION | high << 64 | VARIANT | low << SEQ_BITS | place)
    }

    /// The message's place in the journal.
    pub const fn seq(self) -> Seq {
        Seq((self.0 & SEQ_MASK) as u64)
    }

    /// When it was accepted, to the millisecond.
    pub const fn accepted_ms(self) -> u64 {
        (self.0 >> 80) as u64
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            id >> 96,
            (id >> 80) & 0xffff,
            (id >> 64) & 0xffff,
            (id >> 48) & 0xffff,
            id & SEQ_MASK,
        )
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MessageId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let mut value: u128 = 0;
        for (at, byte) in text.bytes().enumerate() {
            let is_dash = matches!(at, 8 | 13 | 18 | 23);
            match byte {
                b'-' if is_dash => continue,
                _ if is_dash => return Err(NotAnId),
                _ => {}
            }
            let digit = char::from(byte).to_digit(16).ok_or(NotAnId)?;
            value = value << 4 | u128::from(digit);
        }
        let id = Self(value);
        let is_ours = text.len() == 36 && Self::of_millis(id.accepted_ms(), id.seq()) == id;
        is_ours.then_some(id).ok_or(NotAnId)
    }
}
