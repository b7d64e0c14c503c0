//! What a reply means for the message, and for whom else.
//!
//! The verdict says what becomes of the message; the class says why, so that
//! adaptation can react; the scope says whom the reply speaks of. A refusal that
//! speaks of us (a block, a rate, a wrong password) must never cost a recipient
//! its place on the list, whatever digits it begins with.

use std::fmt;

use serde::Deserialize;

use crate::name::Name;
use crate::time::Nanos;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$entry_doc:meta])* $entry:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        pub enum $name {
            $($(#[$entry_doc])* #[serde(rename = $word)] $entry,)*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$entry,)*];

            /// The word used in rules, the API and metrics.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$entry => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What becomes of the message.
    Verdict {
        /// The far end took it.
        Delivered = "delivered",
        /// Refused for good, and no later try would fare better.
        Bounced = "bounced",
        /// Refused for now: the schedule says when to try again.
        Retry = "retry",
        /// We are blocked, perhaps with the digits of a final refusal: wait,
        /// and raise an alarm. The message and its recipient are not at fault.
        Blocked = "blocked",
        /// Our credentials, our set-up or our protocol are at fault: wait until
        /// a person has mended them, and raise an alarm.
        Misconfigured = "misconfigured",
        /// Nobody knows whether it was taken.
        Uncertain = "uncertain",
    }
}

words! {
    /// Why the far end answered as it did.
    ReplyClass {
        /// It took the message.
        Accepted = "accepted",
        /// We send too fast, or hold too many connections.
        Rate = "rate",
        /// It thinks ill of our address, domain or network.
        Reputation = "reputation",
        /// It dislikes this message: spam, virus, size, form.
        Content = "content",
        /// The mailbox is missing, closed or full.
        Recipient = "recipient",
        /// It turns every stranger away once.
        Greylist = "greylist",
        /// Log-in, SPF, DKIM, DMARC, reverse DNS, or a sender that may not send.
        Authentication = "authentication",
        /// It could not be reached, or the connection broke.
        Network = "network",
        /// It is overloaded or out of order.
        Capacity = "capacity",
        /// Anything else.
        Other = "other",
    }
}

words! {
    /// Whom a reply speaks of.
    ReplyScope {
        /// This recipient, whatever we send.
        Recipient = "recipient",
        /// This message, whoever receives it.
        Message = "message",
        /// The tenant whose sending domain or content it is.
        Tenant = "tenant",
        /// The account or sending IP.
        Account = "account",
        /// All that we send to this destination.
        Destination = "destination",
        /// This connection only.
        Session = "session",
    }
}

/// What one reply means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What becomes of the message.
    pub verdict: Verdict,
    /// Why.
    pub class: ReplyClass,
    /// Whom it speaks of.
    pub scope: ReplyScope,
    /// Which rule spoke.
    pub rule: Name,
    /// Wait exactly this long, if the far end or the rule says so.
    pub retry_after: Option<Nanos>,
    /// Whether this recipient must not be tried again by any message.
    pub suppress: bool,
}

impl Outcome {
    /// A bare outcome, as `rule` gives it.
    pub fn new(verdict: Verdict, class: ReplyClass, scope: ReplyScope, rule: Name) -> Self {
        Self {
            verdict,
            class,
            scope,
            rule,
            retry_after: None,
            suppress: false,
        }
    }

    /// Whether the refusal is about us, so that any other message in this
    /// one's place would have been refused as well.
    pub fn is_about_us(&self) -> bool {
        matches!(self.verdict, Verdict::Blocked | Verdict::Misconfigured)
            || (self.class == ReplyClass::Rate && self.scope != ReplyScope::Recipient)
    }
}
