//! What an account says when it does not take a message.

use std::borrow::Cow;

use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;

/// The most bytes of a text that are said.
const TEXT_BYTES_MAX: usize = 512;

/// What is said instead of taking a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As a mail server says it.
    Smtp {
        /// How far the delivery came.
        stage: Stage,
        /// The code.
        code: u16,
        /// The text; an enhanced code at its start is read.
        text: Cow<'static, str>,
    },
    /// As a provider's API says it.
    Http {
        /// The status.
        status: u16,
        /// The text.
        text: Cow<'static, str>,
        /// What its `Retry-After` says.
        retry_after: Option<Nanos>,
    },
    /// The connection breaks before the message was handed over.
    Network {
        /// What broke.
        text: Cow<'static, str>,
    },
    /// Nothing is said after the message was handed over; after this long
    /// nobody waits for it any more.
    Silence {
        /// How long it is waited for.
        after: Nanos,
    },
}

impl Answer {
    /// `421 4.7.28`: a mail server that has enough.
    pub const fn too_many_mails() -> Self {
        Self::Smtp {
            stage: Stage::Data,
            code: 421,
            text: Cow::Borrowed("4.7.28 sandbox: too many messages from you, try again later"),
        }
    }

    /// `429`: an API that has enough.
    pub const fn too_many_requests(retry_after: Option<Nanos>) -> Self {
        Self::Http {
            status: 429,
            text: Cow::Borrowed("sandbox: too many requests"),
            retry_after,
        }
    }

    /// `550 5.1.1`: nobody of that name.
    pub const fn no_such_user() -> Self {
        Self::Smtp {
            stage: Stage::Recipient,
            code: 550,
            text: Cow::Borrowed("5.1.1 sandbox: no such user"),
        }
    }

    /// `451 4.3.0`: something is out of order for now.
    pub const fn out_of_order() -> Self {
        Self::Smtp {
            stage: Stage::Data,
            code: 451,
            text: Cow::Borrowed("4.3.0 sandbox: temporarily out of order"),
        }
    }

    /// As a reply.
    pub(crate) fn reply(&self) -> Reply {
        match self {
            Self::Smtp { stage, code, text } => Reply::said(*stage, *code, cut(text)),
            Self::Http {
                status,
                text,
                retry_after,
            } => Reply::Said {
                stage: Stage::Data,
                code: *status,
                enhanced: None,
                text: Cow::Owned(cut(text).to_owned()),
                retry_after: *retry_after,
                allows: None,
            },
            Self::Network { text } => Reply::Network {
                stage: Stage::Connect,
                text: Cow::Owned(cut(text).to_owned()),
            },
            Self::Silence { .. } => Reply::Uncertain,
        }
    }

    /// How long after the usual time it comes.
    pub(crate) const fn delay(&self) -> Nanos {
        match self {
            Self::Silence { after } => *after,
            Self::Smtp { .. } | Self::Http { .. } | Self::Network { .. } => Nanos::ZERO,
        }
    }

    /// Whether a connection is over after it.
    pub(crate) const fn ends_connection(&self) -> bool {
        match self {
            Self::Smtp { code, .. } => *code == 421,
            Self::Http { .. } => false,
            Self::Network { .. } | Self::Silence { .. } => true,
        }
    }
}

/// As much of a text as is said.
fn cut(text: &str) -> &str {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    text.get(..end).unwrap_or_default()
}
