//! Words of the tables, read back.

use outflow_core::class::Class;
use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::message::{Channel, State};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::Enhanced;
use outflow_core::retry::dead_letter::TEXT_BYTES_MAX;
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Wall;

use super::error::RecordError;

/// The states in which a message is done with.
pub const FINAL: [State; 6] = [
    State::Delivered,
    State::Bounced,
    State::Expired,
    State::Cancelled,
    State::Suppressed,
    State::Dead,
];

const CHANNELS: [Channel; 3] = [Channel::Email, Channel::Sms, Channel::Push];

const CAUSES: [DeathCause; 5] = [
    DeathCause::Attempts,
    DeathCause::Age,
    DeathCause::Uncertain,
    DeathCause::TooLarge,
    DeathCause::StorageDamaged,
];

const KINDS: [DestinationKind; 5] = [
    DestinationKind::Isp,
    DestinationKind::Carrier,
    DestinationKind::Push,
    DestinationKind::Host,
    DestinationKind::Unresolved,
];

fn one_of<T: Copy>(
    all: &[T],
    as_str: impl Fn(T) -> &'static str,
    what: &'static str,
    word: &str,
) -> Result<T, RecordError> {
    let found = all.iter().copied().find(|one| as_str(*one) == word);
    found.ok_or_else(|| unknown(what, word))
}

fn unknown(what: &'static str, word: &str) -> RecordError {
    let word = word.to_owned();
    RecordError::UnknownWord { what, word }
}

/// The final state with this name.
pub fn state(word: &str) -> Result<State, RecordError> {
    one_of(&FINAL, State::as_str, "state", word)
}

/// The channel with this name.
pub fn channel(word: &str) -> Result<Channel, RecordError> {
    one_of(&CHANNELS, Channel::as_str, "channel", word)
}

/// The cause with this name.
pub fn cause(word: &str) -> Result<DeathCause, RecordError> {
    one_of(&CAUSES, DeathCause::as_str, "cause", word)
}

/// The class of a reply with this name.
pub fn reply_class(word: &str) -> Result<ReplyClass, RecordError> {
    one_of(ReplyClass::ALL, ReplyClass::as_str, "error class", word)
}

/// The class of urgency with this name.
pub fn class(word: &str) -> Result<Class, RecordError> {
    word.parse().map_err(|_| unknown("class", word))
}

/// A destination, from `isp:google`.
pub fn destination(text: &str) -> Result<Destination, RecordError> {
    let (kind, name) = text
        .split_once(':')
        .ok_or_else(|| unknown("destination", text))?;
    let kind = one_of(&KINDS, DestinationKind::as_str, "destination", kind)?;
    Ok(Destination::new(kind, Name::from(name)))
}

/// `4.7.28`, as it is written in a table.
pub fn enhanced_text(code: Enhanced) -> String {
    let Enhanced(class, subject, detail) = code;
    format!("{class}.{subject}.{detail}")
}

/// An enhanced code, from `4.7.28`.
pub fn enhanced(text: &str) -> Result<Enhanced, RecordError> {
    let mut parts = text.split('.').map(str::parse::<u16>);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(Ok(class @ 0..=9)), Some(Ok(subject)), Some(Ok(detail)), None) => {
            Ok(Enhanced(class as u8, subject, detail))
        }
        _ => Err(unknown("enhanced code", text)),
    }
}

/// As much of a far end's text as is kept.
pub fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX))
        .unwrap_or(text)
}

const NANOS_PER_MILLI: i64 = 1_000_000;

/// A time as the tables have it.
pub fn millis(at: Wall) -> i64 {
    at.0.div_euclid(NANOS_PER_MILLI)
}

/// A time of a table.
pub fn wall(millis: i64) -> Wall {
    Wall(millis.saturating_mul(NANOS_PER_MILLI))
}
