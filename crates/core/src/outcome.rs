//! What a reply means for the message, and for whom else.
//!
//! The verdict says what becomes of the message; the class says why; the scope
//! says whom the reply speaks of; the reaction says what is done about whoever
//! that is, and for how long. A refusal that speaks of us (a block, a rate, a
//! wrong password) must never cost a recipient its place on the list, whatever
//! digits it begins with.

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
        /// The tenant whose content it is.
        Tenant = "tenant",
        /// The account or sending IP, at this destination.
        Account = "account",
        /// The account or sending IP, wherever it sends: its provider said so.
        WholeAccount = "whole_account",
        /// The domain that the message is sent from, at this destination.
        SendingDomain = "sending_domain",
        /// All that we send to this destination.
        Destination = "destination",
        /// This connection only.
        Session = "session",
    }
}

words! {
    /// What is done about whoever a reply speaks of.
    Reaction {
        /// Nothing: all is well.
        Nothing = "none",
        /// The message is tried again, and nothing else changes.
        Retry = "retry",
        /// Those it speaks of send more slowly for a while.
        SlowDown = "slow_down",
        /// The account holds fewer connections to this destination for a while.
        FewerConnections = "fewer_connections",
        /// Its connections carry fewer messages each.
        ShorterConnections = "shorter_connections",
        /// Those it speaks of stop for a while.
        Pause = "pause",
        /// The message is given back to its sender.
        Bounce = "bounce",
        /// The same, and no message is sent to this recipient any more.
        Suppress = "suppress",
    }
}

/// How long those who were too fast are slower.
const SLOWED_FOR: Nanos = Nanos::from_secs(30 * 60);
/// How long an account that held too many connections holds fewer.
const FEWER_FOR: Nanos = Nanos::from_secs(60 * 60);
/// How long those who are blocked stay away.
const BLOCKED_FOR: Nanos = Nanos::from_secs(2 * 60 * 60);
/// How long a broken set-up is left alone before it is tried again.
const BROKEN_FOR: Nanos = Nanos::from_secs(60 * 60);

impl Reaction {
    /// What such a refusal usually calls for.
    pub fn usual(verdict: Verdict, class: ReplyClass, scope: ReplyScope) -> Self {
        match (verdict, class, scope) {
            (Verdict::Delivered, _, _) => Self::Nothing,
            (Verdict::Bounced, _, _) => Self::Bounce,
            (Verdict::Blocked | Verdict::Misconfigured, _, _) => Self::Pause,
            (Verdict::Retry, ReplyClass::Rate, ReplyScope::Session) => Self::FewerConnections,
            (Verdict::Retry, ReplyClass::Rate, ReplyScope::Recipient | ReplyScope::Message) => {
                Self::Retry
            }
            (Verdict::Retry, ReplyClass::Rate, _) => Self::SlowDown,
            (Verdict::Retry | Verdict::Uncertain, _, _) => Self::Retry,
        }
    }

    /// How long it usually lasts; nothing if it is over at once.
    pub const fn usual_length(self, verdict: Verdict) -> Option<Nanos> {
        match (self, verdict) {
            (Self::SlowDown, _) => Some(SLOWED_FOR),
            (Self::FewerConnections, _) => Some(FEWER_FOR),
            (Self::Pause, Verdict::Misconfigured) => Some(BROKEN_FOR),
            (Self::Pause, _) => Some(BLOCKED_FOR),
            (
                Self::Nothing
                | Self::Retry
                | Self::ShorterConnections
                | Self::Bounce
                | Self::Suppress,
                _,
            ) => None,
        }
    }

    /// Whether it ends the message.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Nothing | Self::Bounce | Self::Suppress)
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
    /// What is done about them.
    pub action: Reaction,
    /// How long that lasts, if it does.
    pub lasts: Option<Nanos>,
    /// Whether a person is told.
    pub alert: bool,
    /// Which rule spoke.
    pub rule: Name,
    /// The message itself waits exactly this long, if the far end or the rule
    /// says so.
    pub retry_after: Option<Nanos>,
    /// How long the far end asked us to wait, in this very reply.
    pub asked: Option<Nanos>,
    /// Whether the rule is one of the user's own: what it says is done to the
    /// letter.
    pub is_own: bool,
}

impl Outcome {
    /// An outcome as `rule` gives it, with the usual reaction.
    pub fn new(verdict: Verdict, class: ReplyClass, scope: ReplyScope, rule: Name) -> Self {
        let action = Reaction::usual(verdict, class, scope);
        Self {
            verdict,
            class,
            scope,
            action,
            lasts: action.usual_length(verdict),
            alert: matches!(verdict, Verdict::Blocked | Verdict::Misconfigured),
            rule,
            retry_after: None,
            asked: None,
            is_own: false,
        }
    }

    /// How long those it speaks of stop, whatever was learnt: a broken set-up is
    /// no matter of the rate, and who writes a rule means it. All other pauses
    /// are left to the controller, which stops and asks with single messages.
    pub fn stops_for(&self) -> Option<Nanos> {
        let is_meant = self.is_own || self.class == ReplyClass::Authentication;
        let is_meant = is_meant && self.scope != ReplyScope::WholeAccount;
        self.lasts
            .filter(|_| is_meant && self.action == Reaction::Pause)
    }

    /// How long the account sends nothing at all, wherever to: as long as the
    /// far end asked, or, where the whole account is to pause, as its rule says.
    pub fn blocks_account_for(&self) -> Option<Nanos> {
        match self.scope {
            ReplyScope::Account => self.asked,
            ReplyScope::WholeAccount => self
                .asked
                .or(self.lasts.filter(|_| self.action == Reaction::Pause)),
            ReplyScope::Recipient
            | ReplyScope::Message
            | ReplyScope::Tenant
            | ReplyScope::SendingDomain
            | ReplyScope::Destination
            | ReplyScope::Session => None,
        }
    }

    /// Whether this recipient must not be tried again by any message.
    pub fn suppresses(&self) -> bool {
        self.action == Reaction::Suppress
    }

    /// Whether the refusal is about us, so that any other message in this
    /// one's place would have been refused as well.
    pub fn is_about_us(&self) -> bool {
        let is_ours = matches!(
            self.class,
            ReplyClass::Rate | ReplyClass::Reputation | ReplyClass::Authentication
        );
        let is_his = matches!(self.scope, ReplyScope::Recipient | ReplyScope::Message);
        matches!(self.verdict, Verdict::Blocked | Verdict::Misconfigured) || (is_ours && !is_his)
    }

    /// How long it is of no use to try the message again, whoever carries it.
    /// A pause of an account is not meant: another one may fare better.
    pub fn held_for(&self) -> Nanos {
        let holds_all = matches!(
            self.scope,
            ReplyScope::SendingDomain | ReplyScope::Tenant | ReplyScope::Destination
        );
        match self.lasts {
            Some(lasts) if holds_all && self.action == Reaction::Pause => lasts,
            _ => Nanos::ZERO,
        }
    }
}
