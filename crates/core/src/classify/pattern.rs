//! Patterns over codes and words.

use crate::reply::{Enhanced, Stage};

/// A span of numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(u16, u16);

impl Span {
    const ANY: Self = Self(0, u16::MAX);

    /// Reads `421` or `450-459`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let (low, high) = (low.parse().ok()?, high.parse().ok()?);
        (low <= high).then_some(Self(low, high))
    }

    fn parse_or_any(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::ANY),
            _ => Self::parse(text),
        }
    }

    pub(crate) fn holds(self, number: u16) -> bool {
        (self.0..=self.1).contains(&number)
    }
}

/// A pattern over enhanced codes: `x.7.28`, `5.1.1-4`, `4.3.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnhancedPattern {
    class: Option<u8>,
    subject: Span,
    detail: Span,
}

impl EnhancedPattern {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let class = match parts.next()? {
            "x" => None,
            "4" => Some(4),
            "5" => Some(5),
            _ => return None,
        };
        let pattern = Self {
            class,
            subject: Span::parse_or_any(parts.next()?)?,
            detail: Span::parse_or_any(parts.next()?)?,
        };
        parts.next().is_none().then_some(pattern)
    }

    pub(crate) fn holds(self, Enhanced(class, subject, detail): Enhanced) -> bool {
        self.class.is_none_or(|wanted| wanted == class)
            && self.subject.holds(subject)
            && self.detail.holds(detail)
    }
}

/// Which pairs of letters stand side by side in a text, roughly: a phrase with a
/// pair that is not among them cannot be in it. Most phrases fail here, without
/// the text being read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs([u64; 4]);

impl Pairs {
    pub(crate) fn of(text: &str) -> Self {
        let mut pairs = Self::default();
        pairs.add(text);
        pairs
    }

    fn add(&mut self, text: &str) {
        let bytes = text.as_bytes();
        for (&left, &right) in bytes.iter().zip(bytes.iter().skip(1)) {
            let mixed = u16::from(left).wrapping_mul(31) ^ u16::from(right);
            let place = usize::from(mixed >> 6 & 3);
            if let Some(word) = self.0.get_mut(place) {
                *word |= 1 << (mixed & 63);
            }
        }
    }

    /// Whether all of these are among those of `text`.
    fn are_in(&self, text: &Self) -> bool {
        let mut both = self.0.iter().zip(&text.0);
        both.all(|(wanted, there)| wanted & !there == 0)
    }
}

/// Words to look for; `*` stands for anything between two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phrase {
    parts: Box<[Box<str>]>,
    pairs: Pairs,
}

impl Phrase {
    /// Reads a phrase as rules see replies: lower case, single spaces, no
    /// addresses. Anything else could never match.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_plain = !text.contains(|c: char| c.is_ascii_uppercase() || c == '@');
        let is_spaced = text.trim() == text
            && !text.contains("  ")
            && !text.contains(|c: char| c.is_whitespace() && c != ' ');
        let parts: Box<[Box<str>]> = text.split('*').map(Box::from).collect();
        let is_full = parts.iter().all(|part| !part.trim().is_empty());
        let mut pairs = Pairs::default();
        parts.iter().for_each(|part| pairs.add(part));
        (is_plain && is_spaced && is_full).then_some(Self { parts, pairs })
    }

    /// Whether it stands in `words`, whose pairs these are.
    pub(crate) fn holds(&self, words: &str, pairs: &Pairs) -> bool {
        if !self.pairs.are_in(pairs) {
            return false;
        }
        let mut rest = words;
        self.parts
            .iter()
            .all(|part| match rest.split_once(&**part) {
                Some((_, after)) => {
                    rest = after;
                    true
                }
                None => false,
            })
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stages(u8);

const STAGES: [Stage; 6] = [
    Stage::Connect,
    Stage::Greeting,
    Stage::Auth,
    Stage::Sender,
    Stage::Recipient,
    Stage::Data,
];

/// The stage of this name.
pub(crate) fn stage_named(word: &str) -> Option<Stage> {
    STAGES.into_iter().find(|stage| stage.as_str() == word)
}

impl Stages {
    pub(crate) fn add(&mut self, stage: Stage) {
        self.0 |= 1 << stage as u8;
    }

    /// Whether `stage` is among them; no stage at all means any.
    pub(crate) fn holds(self, stage: Stage) -> bool {
        self.0 == 0 || self.0 & (1 << stage as u8) != 0
    }
}
