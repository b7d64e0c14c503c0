//! From bytes to commands: arrays of bulk strings, as clients send, and lines of
//! words, as people type them.
//!
//! Nothing is copied: a command is a list of places in the buffer. Everything is
//! bounded, and before a token was shown more tightly, so that strangers cannot
//! make the server hold much.

use std::ops::Range;

/// The most words of a command.
pub const WORDS_MAX: usize = 128;
/// The most bytes of one word, and of a line.
pub const WORD_BYTES_MAX: usize = 16 << 10;
/// The same, before a token was shown.
const STRANGER_WORDS_MAX: usize = 10;
const STRANGER_BYTES_MAX: usize = 1 << 10;
/// Digits of a length, with its sign.
const LENGTH_DIGITS_MAX: usize = 12;

/// Bytes that are no command. The connection cannot go on after it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The number of words.
    #[error("Protocol error: invalid multibulk length")]
    Count,
    /// The number of words, of a stranger.
    #[error("Protocol error: unauthenticated multibulk length")]
    StrangerCount,
    /// A word without its length.
    #[error("Protocol error: expected '$', got '{0}'")]
    Dollar(char),
    /// The length of a word.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// The length of a word, of a stranger.
    #[error("Protocol error: unauthenticated bulk length")]
    StrangerLength,
    /// A word that does not end where it said.
    #[error("Protocol error: a word does not end where its length says")]
    End,
    /// A line without end.
    #[error("Protocol error: too big inline request")]
    Line,
    /// A quote that is not closed.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
}

/// What a buffer begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A command of so many bytes; its words are in the list. No words, no
    /// command.
    Command(usize),
    /// A part of one.
    Part,
}

/// Where the words of a command are in the buffer.
pub type Words = Vec<Range<usize>>;

/// A line without its end, and where the next begins.
fn line(buffer: &[u8], from: usize, bytes_max: usize) -> Option<(Range<usize>, usize)> {
    let rest = buffer.get(from..)?;
    let within = rest.get(..rest.len().min(bytes_max))?;
    let end = within.iter().position(|byte| *byte == b'\n')?;
    let text = match within.get(..end) {
        Some([.., b'\r']) => from..from + end - 1,
        _ => from..from + end,
    };
    Some((text, from + end + 1))
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A length behind its mark: the number, and where it ends. None if it is not
/// all there yet.
fn length(buffer: &[u8], from: usize) -> Option<Result<(i64, usize), ()>> {
    let found = line(buffer, from, LENGTH_DIGITS_MAX + 2);
    let Some((digits, next)) = found else {
        let waits = buffer.len() - from.min(buffer.len()) < LENGTH_DIGITS_MAX + 2;
        return if waits { None } else { Some(Err(())) };
    };
    let number = buffer.get(digits).and_then(number);
    Some(number.map(|number| (number, next)).ok_or(()))
}

/// Looks for the command at the beginning of a buffer. `known` is whether a
/// token was shown.
pub fn parse(buffer: &[u8], known: bool, words: &mut Words) -> Result<Found, ProtocolError> {
    words.clear();
    match buffer.first() {
        None => Ok(Found::Part),
        Some(b'*') => array(buffer, known, words),
        Some(_) => typed(buffer, known, words),
    }
}

fn array(buffer: &[u8], known: bool, words: &mut Words) -> Result<Found, ProtocolError> {
    let Some(count) = length(buffer, 1) else {
        return Ok(Found::Part);
    };
    let (count, mut at) = count.map_err(|()| ProtocolError::Count)?;
    // An array of nothing, or none, is no command; Redis passes over it.
    let count = usize::try_from(count).unwrap_or(0);
    if count > WORDS_MAX {
        return Err(ProtocolError::Count);
    }
    if !known && count > STRANGER_WORDS_MAX {
        return Err(ProtocolError::StrangerCount);
    }
    for _ in 0..count {
        match buffer.get(at) {
            None => return Ok(Found::Part),
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::Dollar(shown(*other))),
        }
        let Some(length) = length(buffer, at + 1) else {
            return Ok(Found::Part);
        };
        let (length, from) = length.map_err(|()| ProtocolError::Length)?;
        let length = usize::try_from(length).map_err(|_| ProtocolError::Length)?;
        if length > WORD_BYTES_MAX {
            return Err(ProtocolError::Length);
        }
        if !known && length > STRANGER_BYTES_MAX {
            return Err(ProtocolError::StrangerLength);
        }
        let end = from + length;
        match buffer.get(end..end + 2) {
            None => return Ok(Found::Part),
            Some(b"\r\n") => {}
            Some(_) => return Err(ProtocolError::End),
        }
        words.push(from..end);
        at = end + 2;
    }
    Ok(Found::Command(at))
}

/// A byte as it is shown in an error.
fn shown(byte: u8) -> char {
    match char::from(byte) {
        shown if shown.is_ascii_graphic() => shown,
        _ => '?',
    }
}

fn typed(buffer: &[u8], known: bool, words: &mut Words) -> Result<Found, ProtocolError> {
    let bytes_max = if known {
        WORD_BYTES_MAX
    } else {
        STRANGER_BYTES_MAX
    };
    let Some((text, next)) = line(buffer, 0, bytes_max) else {
        return match buffer.len() >= bytes_max {
            true => Err(ProtocolError::Line),
            false => Ok(Found::Part),
        };
    };
    let text = buffer.get(text).unwrap_or_default();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' => at += 1,
            quote @ (b'"' | b'\'') => {
                let rest = text.get(at + 1..).unwrap_or_default();
                let end = rest.iter().position(|byte| byte == quote);
                let end = at + 1 + end.ok_or(ProtocolError::Quotes)?;
                words.push(at + 1..end);
                at = end + 1;
            }
            _ => {
                let rest = text.get(at..).unwrap_or_default();
                let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t'));
                let end = end.map_or(text.len(), |end| at + end);
                words.push(at..end);
                at = end;
            }
        }
        if words.len() > WORDS_MAX {
            return Err(ProtocolError::Count);
        }
    }
    Ok(Found::Command(next))
}
