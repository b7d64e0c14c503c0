//! The text of a reply as rules see it.
//!
//! Lower case, single spaces, one line. Codes that continuation lines repeat
//! are dropped, since they cut phrases in two. Addresses are dropped, so that
//! nobody is taken for blocked because a mailbox is called `spamcop`.

use crate::classify::pattern::Pairs;
use crate::reply::{Enhanced, Reply};

/// Rules look at no more than this of a reply, however long it is.
const BYTES_MAX: usize = 8_192;

/// The words of a reply, and the first enhanced code in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) text: String,
    /// Which letters stand side by side in it.
    pub(crate) pairs: Pairs,
    pub(crate) enhanced: Option<Enhanced>,
}

/// What rules see of `reply`.
pub(crate) fn words(reply: &Reply) -> Words {
    let (code, mut enhanced, raw) = match reply {
        Reply::Said {
            code,
            enhanced,
            text,
            ..
        } => (Some(*code), *enhanced, &**text),
        Reply::Network { text, .. } | Reply::Damaged { text } => (None, None, &**text),
        Reply::Uncertain => (None, None, ""),
    };
    let raw = beginning(raw, BYTES_MAX);
    let mut text = String::with_capacity(raw.len());
    for line in raw.lines() {
        let (found, line) = Enhanced::split(without_code(line.trim_start(), code));
        enhanced = enhanced.or(found);
        for word in line.split_whitespace().filter(|word| !word.contains('@')) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.extend(word.chars().map(|c| c.to_ascii_lowercase()));
        }
    }
    Words {
        pairs: Pairs::of(&text),
        text,
        enhanced,
    }
}

/// The line without the `550-` or `550 ` with which it begins.
fn without_code(line: &str, code: Option<u16>) -> &str {
    let Some(code) = code else {
        return line;
    };
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (Some(number), Some(rest)) = (line.get(..digits), line.get(digits..)) else {
        return line;
    };
    if number.parse() != Ok(code) {
        return line;
    }
    match rest.strip_prefix(['-', ' ']) {
        Some(rest) => rest.trim_start(),
        None if rest.is_empty() => rest,
        None => line,
    }
}

/// As much of `text` as fits `bytes_max` without cutting a character.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = text.floor_char_boundary(bytes_max);
    text.get(..end)
        .expect("the end was moved to a character boundary")
}
