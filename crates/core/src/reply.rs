//! What the far end said, raw. An outcome is what it means; see `classify`.

use std::borrow::Cow;
use std::fmt;

use crate::allowance::Allowance;
use crate::time::Nanos;

/// How far a delivery had come when the reply arrived. The same code means
/// different things at different stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// While connecting or resolving.
    Connect,
    /// The greeting, EHLO, STARTTLS.
    Greeting,
    /// Logging in.
    Auth,
    /// The sender was named (`MAIL`).
    Sender,
    /// The recipient was named (`RCPT`).
    Recipient,
    /// The whole message was handed over (the final dot, the HTTP body).
    Data,
}

impl Stage {
    /// The word used in rules and receipts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Greeting => "greeting",
            Self::Auth => "auth",
            Self::Sender => "sender",
            Self::Recipient => "recipient",
            Self::Data => "data",
        }
    }
}

/// An enhanced status code (RFC 3463): class, subject, detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Enhanced(pub u8, pub u16, pub u16);

/// The answer to one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The far end answered.
    Said {
        /// How far the delivery had come.
        stage: Stage,
        /// The SMTP or HTTP status.
        code: u16,
        /// The enhanced code, where there was one.
        enhanced: Option<Enhanced>,
        /// The rest of the text.
        text: Cow<'static, str>,
        /// How long the far end asked us to wait (`Retry-After`).
        retry_after: Option<Nanos>,
        /// What it said that it takes from the account, where it said so.
        allows: Option<Box<Allowance>>,
    },
    /// The connection failed before the message could have been taken.
    Network {
        /// How far the delivery had come.
        stage: Stage,
        /// What failed, in a few words.
        text: Cow<'static, str>,
    },
    /// The answer after the message was handed over was lost: it may or may
    /// not have been taken.
    Uncertain,
    /// What was stored of the message does not hold: nothing was sent, and
    /// nothing ever can be.
    Damaged {
        /// What is wrong with it, in a few words.
        text: Cow<'static, str>,
    },
}

impl Reply {
    /// A plain acceptance.
    pub fn accepted() -> Self {
        Self::said(Stage::Data, 250, "2.0.0 Ok")
    }

    /// An answer at `stage`; an enhanced code at the start of `text` is read.
    pub fn said(stage: Stage, code: u16, text: &str) -> Self {
        let (enhanced, rest) = Enhanced::split(text);
        Self::Said {
            stage,
            code,
            enhanced,
            text: Cow::Owned(rest.to_owned()),
            retry_after: None,
            allows: None,
        }
    }

    /// Whether the far end took the message.
    pub fn is_accepted(&self) -> bool {
        matches!(
            self,
            Self::Said {
                stage: Stage::Data,
                code: 200..=299,
                ..
            }
        )
    }
}

/// In the far end's words.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said {
                code,
                enhanced,
                text,
                ..
            } => {
                write!(f, "{code} ")?;
                if let Some(Enhanced(class, subject, detail)) = enhanced {
                    write!(f, "{class}.{subject}.{detail} ")?;
                }
                f.write_str(text)
            }
            Self::Network { text, .. } => f.write_str(text),
            Self::Uncertain => f.write_str("nobody knows why"),
            Self::Damaged { text } => f.write_str(text),
        }
    }
}

impl Enhanced {
    /// Splits `"4.7.28 Too much"` into the code and the rest.
    pub fn split(text: &str) -> (Option<Self>, &str) {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut parts = word.split('.').map(str::parse::<u16>);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(class @ (2 | 4 | 5))), Some(Ok(subject)), Some(Ok(detail)), None) => {
                (Some(Self(class as u8, subject, detail)), rest)
            }
            _ => (None, text),
        }
    }
}
