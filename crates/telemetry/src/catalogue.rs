//! Everything that happens and is worth a metric or a line in a log.
//!
//! An event borrows small data from whoever emits it: emitting one costs no
//! allocation. What happens more often than once per message (a flow that comes
//! to wait at a limit) is no event: the engine counts it where it happens, and
//! a snapshot brings the counts.

use std::net::IpAddr;

use outflow_core::class::Class;
use outflow_core::engine::action::Alert;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Channel, State};
use outflow_core::message_id::MessageId;
use outflow_core::outcome::ReplyClass;
use outflow_core::policy::matcher::Match;
use outflow_core::reply::Enhanced;
use outflow_core::retry::dead_letter::{DeadLetter, LastError};
use outflow_core::suppression::surge::Surge;
use outflow_core::time::{Nanos, Wall};

use crate::sink::Slot;

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Event<'a> {
    /// The node runs; what it found.
    Started(Started),
    /// Intake has ended; what is in flight finishes.
    Stopping,
    /// All is settled and durable.
    Stopped,
    /// So many new messages are durable and acknowledged.
    Accepted {
        channel: Channel,
        class: Class,
        count: u32,
    },
    /// So many messages were not taken in.
    IntakeRefused { reason: IntakeRefusal, count: u32 },
    /// A message was tried.
    Attempted(Attempted<'a>),
    /// A message waits until a time: after an attempt, or because a limit of
    /// its recipient or its retry budget told it to step aside.
    Deferred {
        message: Option<MessageId>,
        key: &'a FlowKey,
        until: Wall,
        attempted: bool,
    },
    /// A message is done with.
    Settled(Settled<'a>),
    /// A message was given up.
    Died {
        message: Option<MessageId>,
        key: &'a FlowKey,
        account: Option<&'a str>,
        letter: &'a DeadLetter,
    },
    /// The far end came back to a message that was settled.
    Feedback {
        message: Option<MessageId>,
        key: &'a FlowKey,
        error: &'a LastError,
    },
    /// Something a person should know.
    Alert(&'a Alert),
    /// Records became durable together.
    Committed(Commit),
    /// Other policies are in force.
    PolicyChanged,
    /// An account is new or has changed.
    AccountChanged { account: &'a str },
    /// An account is gone.
    AccountRemoved { account: &'a str },
    /// Nothing that matches is sent, until a time or for good.
    Paused {
        pause: u64,
        matches: &'a Match,
        until: Option<Wall>,
    },
    /// A pause was lifted.
    Resumed { pause: u64 },
    /// Everything that matches was told to do something.
    Swept { action: Sweep, matches: &'a Match },
    /// A request was answered.
    Requested(Requested<'a>),
    /// DNS has not answered for as long as messages wait for it, or it answers
    /// again.
    Dns { is_away: bool },
    /// The ledger of the fleet does not answer, or it answers again; `detail`
    /// says what went wrong.
    Ledger { is_away: bool, detail: &'a str },
    /// What was asked of the ledger so far.
    LedgerCounts(LedgerCounts),
    /// Something happened where messages are submitted over SMTP.
    Submission(Submission<'a>),
    /// Somebody told what happened to messages later.
    Reported(Reported),
    /// The bounces of a destination are not believed from now on.
    Surge(&'a Surge),
    /// Something else that a person may want to read, from a part of the server
    /// that is named.
    Noted {
        level: Level,
        part: &'a str,
        text: &'a str,
    },
}

/// How much a line in the log matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Somebody has to act.
    Error,
    /// Somebody should look.
    Warn,
    /// What a person who reads along wants to know.
    #[default]
    Info,
    /// What a person who searches for something wants to know.
    Debug,
}

impl Level {
    /// All of them, the gravest first.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Info, Self::Debug];

    /// The word used in settings and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// What a node found when it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Whether the store was empty.
    pub fresh: bool,
    /// Flows with live messages.
    pub flows: u64,
    /// Messages that are ready to be sent.
    pub ready: u64,
    /// Limits whose use was reserved.
    pub limits: u64,
    /// How long the process was away, at least.
    pub downtime: Nanos,
}

/// Why messages were not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntakeRefusal {
    /// Too many were on their way to the disk.
    Busy,
    /// The node was shutting down.
    Closing,
    /// The disk did not take them.
    NotStored,
    /// They would have opened more flows than may live at once.
    TooManyFlows,
}

impl IntakeRefusal {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Busy,
        Self::Closing,
        Self::NotStored,
        Self::TooManyFlows,
    ];

    /// The word used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Closing => "closing",
            Self::NotStored => "not_stored",
            Self::TooManyFlows => "too_many_flows",
        }
    }
}

/// What an operator had done to many messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Withdrawn.
    Cancel,
    /// Tried at once.
    Retry,
    /// Handed to another pool.
    Move,
}

impl Sweep {
    /// The word used in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Move => "move",
        }
    }
}

/// One attempt, told when it has ended.
#[derive(Clone, Copy, Debug)]
pub struct Attempted<'a> {
    /// When it ended.
    pub at: Wall,
    /// Which message.
    pub message: MessageId,
    /// Its flow: tenant, class, campaign, destination.
    pub key: &'a FlowKey,
    /// Where its destination is counted.
    pub slot: Slot,
    /// Through which account.
    pub account: Option<&'a str>,
    /// The first is 1.
    pub attempt: u16,
    /// What became of it.
    pub outcome: AttemptOutcome,
    /// Why.
    pub reason: ReplyClass,
    /// The SMTP or HTTP status, where there was one.
    pub code: Option<u16>,
    /// The enhanced code, where there was one.
    pub enhanced: Option<Enhanced>,
    /// From handing it to the transport to the answer.
    pub duration: Nanos,
    /// From acceptance to handing it to the transport.
    pub waited: Nanos,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptOutcome {
    /// The far end took the message.
    Delivered,
    /// It refused the message for good.
    Bounced,
    /// It refused the message for now, which is tried again unless that would
    /// come too late.
    Deferred,
    /// Nobody knows whether it was taken; the message is tried again or given
    /// up, as the settings say.
    Uncertain,
    /// It refused the message for now, which was given up.
    Dead,
}

impl AttemptOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Delivered,
        Self::Bounced,
        Self::Deferred,
        Self::Uncertain,
        Self::Dead,
    ];

    /// The word used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Bounced => "bounced",
            Self::Deferred => "deferred",
            Self::Uncertain => "uncertain",
            Self::Dead => "dead",
        }
    }
}

/// A message that is done with.
#[derive(Clone, Copy, Debug)]
pub struct Settled<'a> {
    /// Which message, where the store knows it still.
    pub message: Option<MessageId>,
    /// Its flow.
    pub key: &'a FlowKey,
    /// How it ended.
    pub state: State,
    /// Which account tried it last.
    pub account: Option<&'a str>,
    /// What went wrong, if anything did.
    pub error: Option<&'a LastError>,
    /// From acceptance to now.
    pub age: Option<Nanos>,
}

/// Records that became durable together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// From the first write to the end of the last sync.
    pub duration: Nanos,
    /// How many records.
    pub records: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Requested<'a> {
    /// `GET`, `POST`.
    pub method: &'a str,
    /// The template of its route, not its path: `/api/v1/messages/{id}`.
    pub route: &'a str,
    /// The status of the answer.
    pub status: u16,
    /// From the end of its head to the end of the answer's head.
    pub duration: Nanos,
}

/// What happened to a client of the submission port.
#[derive(Clone, Copy, Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Submission<'a> {
    /// It came.
    Connected { peer: IpAddr },
    /// It left.
    Left { peer: IpAddr },
    /// Its token was known.
    LoggedIn { peer: IpAddr },
    /// Its token was not.
    LoginRefused { peer: IpAddr },
    /// A message for so many recipients is durable.
    Taken { peer: IpAddr, recipients: u64 },
    /// It was told no, or later: code and status.
    Refused { peer: IpAddr, reply: &'a str },
}

impl Submission<'_> {
    /// The word used in logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Connected { .. } => "connected",
            Self::Left { .. } => "left",
            Self::LoggedIn { .. } => "logged_in",
            Self::LoginRefused { .. } => "login_refused",
            Self::Taken { .. } => "taken",
            Self::Refused { .. } => "refused",
        }
    }

    /// Where the client is.
    pub const fn peer(&self) -> IpAddr {
        match self {
            Self::Connected { peer }
            | Self::Left { peer }
            | Self::LoggedIn { peer }
            | Self::LoginRefused { peer }
            | Self::Taken { peer, .. }
            | Self::Refused { peer, .. } => *peer,
        }
    }
}

/// What became of what somebody told of messages later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// Mails that say nothing that is understood.
    pub unread: u64,
    /// Things that are about no message that is known here.
    pub unmatched: u64,
    /// Things that are about a message of ours.
    pub matched: u64,
    /// Recipients that were put on the suppression list by it.
    pub suppressed: u64,
}

/// What was asked of the ledger so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerCounts {
    /// Questions sent together and answered.
    pub round_trips: u64,
    /// Tokens leased.
    pub leased: u64,
    /// Tokens that went back unused.
    pub given_back: u64,
}
