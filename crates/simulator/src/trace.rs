//! What happened in a run, in true simulated time.
//!
//! The world tells everything it sees to an observer: checkers judge it, the
//! summary counts it, the hash makes two runs comparable. Nothing here comes
//! from an engine's own account of itself, except gauges. Messages, flows,
//! tenants and limits are dense numbers from 0; the trace itself introduces
//! them before it uses them.

use std::fmt;

use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

pub use crate::hash::TraceHash;

/// A message, numbered in order of acceptance from 0.
pub type MessageNo = u64;
/// A flow, numbered from 0.
pub type FlowNo = u32;
/// A tenant, numbered from 0.
pub type TenantNo = u32;
/// A limit, numbered from 0.
pub type LimitNo = u32;
/// A node, numbered from 0.
pub type NodeNo = u32;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Trace<'a> {
    /// A tenant is seen for the first time.
    Tenant {
        /// Its number.
        tenant: TenantNo,
        /// Its name.
        name: &'a Name,
        /// The weight of its turns.
        weight: u32,
    },
    /// A limit is in force from now on.
    Limit {
        /// Its number.
        limit: LimitNo,
        /// What it is called: `isp:google`.
        key: &'a Name,
        /// Its algorithm and numbers.
        spec: &'a LimitSpec,
        /// Whether its counts live in a ledger rather than in the node.
        leased: bool,
    },
    /// A limit has other numbers from now on.
    LimitChanged {
        /// Which.
        limit: LimitNo,
        /// Its new numbers.
        spec: &'a LimitSpec,
        /// Why.
        cause: Cause,
    },
    /// A flow is seen for the first time. Later ones of the same number change
    /// nothing.
    Flow {
        /// Its number.
        flow: FlowNo,
        /// Its class.
        class: Class,
        /// Its tenant.
        tenant: TenantNo,
        /// Every limit that its messages may need.
        limits: &'a [LimitNo],
    },
    /// A flow is in this lane, if it matters in which, and its messages may need
    /// these limits from now on.
    FlowChanged {
        /// Its number.
        flow: FlowNo,
        /// Its lane, numbered from 0.
        lane: Option<u32>,
        /// Every limit that its messages may need.
        limits: &'a [LimitNo],
    },
    /// A message belongs to another flow: it was moved to another pool.
    Moved {
        /// Which.
        message: MessageNo,
        /// To which flow.
        flow: FlowNo,
    },
    /// An operator did something.
    Operated {
        /// Pauses in force and accounts taken out from now on.
        holds: u32,
    },
    /// Where the messages of a flow go.
    FlowTo {
        /// Which flow.
        flow: FlowNo,
        /// To whom.
        destination: &'a Destination,
    },
    /// An account that opens connections.
    Connects {
        /// Its number.
        account: u32,
        /// Whether a connection carries messages for every destination.
        is_relay: bool,
        /// How many it may have at each node.
        max: u32,
    },
    /// Something became of a connection.
    Connection {
        /// Of which node.
        node: NodeNo,
        /// Which; a number that the node uses again.
        connection: u64,
        /// What.
        change: ConnectionChange<'a>,
    },
    /// A message is durable, whether or not its caller was told so.
    Accepted {
        /// By which node: it stays there.
        node: NodeNo,
        /// Which.
        message: MessageNo,
        /// Its flow.
        flow: FlowNo,
        /// What it takes from each limit.
        cost: u32,
        /// From when on it may be sent.
        due: Nanos,
        /// From when on it is of no use; [`Nanos::MAX`] if always.
        expires: Nanos,
    },
    /// A message was handed to a transport.
    Dispatched {
        /// By which node.
        node: NodeNo,
        /// Which.
        message: MessageNo,
        /// Its how-manieth attempt, from 1.
        attempt: u16,
        /// By which account.
        account: u32,
        /// What it took from each limit.
        cost: u32,
        /// Which limits it took it from.
        limits: &'a [LimitNo],
    },
    /// The far end took a message, whether or not the node ever hears of it.
    Taken {
        /// Which.
        message: MessageNo,
        /// In which attempt.
        attempt: u16,
    },
    /// An attempt is over: the answer is there, or was given up.
    Replied {
        /// At which node.
        node: NodeNo,
        /// Which message.
        message: MessageNo,
        /// Which attempt.
        attempt: u16,
        /// What the answer amounts to.
        answer: Answered,
    },
    /// The far end asked for nothing through an account until a time, and a
    /// node has read it.
    AskedToWait {
        /// Which account.
        account: u32,
        /// Until when.
        until: Nanos,
    },
    /// A message waits again until its retry time, which may be now. Comes
    /// after every reply that does not settle it.
    Deferred {
        /// Which.
        message: MessageNo,
        /// Until when.
        until: Nanos,
    },
    /// A message's final state is durable.
    Settled {
        /// Which.
        message: MessageNo,
        /// How it ended.
        state: State,
    },
    /// A bounce came after the acceptance.
    LateBounce {
        /// Of which message.
        message: MessageNo,
    },
    /// A node died.
    Crashed {
        /// Which.
        node: NodeNo,
    },
    /// A node is back.
    Restarted {
        /// Which.
        node: NodeNo,
    },
    /// A message waits, and as far as the world can see nothing but limits
    /// holds it: it is due, resolved, not paused, and a session is ready.
    Waits {
        /// Which.
        message: MessageNo,
        /// Since when that is so.
        since: Nanos,
        /// What it takes.
        cost: u32,
        /// From which limits.
        limits: &'a [LimitNo],
    },
    /// A message waits, and a node says why. It is due and not in flight.
    Explained {
        /// Which.
        message: MessageNo,
        /// Everything that stands before it.
        holds: &'a [Held],
        /// The accounts of its pool.
        accounts: &'a [u32],
    },
    /// A session of an account could not be opened.
    ConnectFailed {
        /// Which account.
        account: u32,
    },
    /// A message is the next to be sent and lacks nothing but a session. Comes
    /// after the gauge of its node, and again after each for as long as it is so.
    LacksSession {
        /// At which node.
        node: NodeNo,
        /// Which.
        message: MessageNo,
        /// The accounts that have tokens for it, and whether each may connect.
        carriers: &'a [(u32, bool)],
    },
    /// What a node holds in memory.
    Gauge {
        /// Which node.
        node: NodeNo,
        /// How much of each.
        holds: Holdings,
    },
}

/// What stands before a message, as its node says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// By what it is held.
    pub by: HeldBy,
    /// Until when, if the node knows.
    pub until: Option<Nanos>,
}

/// By what a message is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// A limit is used up; one that nobody knows if it has no number.
    Limit(Option<LimitNo>),
    /// An account was asked to wait, failed, or keeps its rate.
    Account,
    /// No session is free.
    Session,
    /// There is no account.
    NoAccount,
    /// Its domain is not resolved.
    Unresolved,
    /// Somebody paused it.
    Paused,
    /// Its time has not come.
    Deferred,
    /// The store fails.
    Store,
    /// The node stops.
    Shutdown,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit(Some(limit)) => return write!(f, "limit {limit}"),
            Self::Limit(None) => "a limit that nobody knows",
            Self::Account => "an account that is held",
            Self::Session => "a session",
            Self::NoAccount => "an account",
            Self::Unresolved => "its domain",
            Self::Paused => "a pause",
            Self::Deferred => "its time",
            Self::Store => "the store",
            Self::Shutdown => "the end of the node",
        })
    }
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionChange<'a> {
    /// It is being opened, and will be.
    Opened {
        /// By which account.
        account: u32,
        /// For whom.
        destination: &'a Destination,
        /// When it can carry messages.
        ready: Nanos,
    },
    /// It carries a message.
    Busy,
    /// It could carry another.
    Idle,
    /// It is closed, or will be then.
    Closed {
        /// When.
        at: Nanos,
    },
}

/// Why a limit has other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Somebody changed the policy.
    Operator,
    /// The controller or the warm-up changed it.
    Learnt,
    /// A node came back and took up what it knew.
    Restored,
}

/// What an answer amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answered {
    /// Taken.
    Accepted,
    /// Refused for now, because of the sender's rate or conduct.
    Throttled,
    /// Refused for now, for any other reason.
    Deferred,
    /// Refused for good.
    Refused,
    /// The connection failed before the message was handed over.
    Failed,
    /// Nobody knows.
    Uncertain,
}

/// What a node holds in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Heads of messages.
    pub heads: u64,
    /// Flows.
    pub flows: u64,
    /// Tenants that have flows.
    pub tenants: u64,
    /// Lanes.
    pub lanes: u64,
    /// Limits.
    pub limits: u64,
    /// Messages in flight.
    pub in_flight: u64,
    /// Sessions, open or opening.
    pub sessions: u64,
    /// Events and actions that wait to be handled.
    pub queued: u64,
}

/// Something that must never happen, and did.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// When.
    pub at: Nanos,
    /// Which checker says so.
    pub checker: &'static str,
    /// What happened.
    pub what: String,
}

/// Whoever wants to know what happened.
pub trait Observer {
    /// Something happened at `at`. Times never go back.
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>);
}

/// An observer with an opinion.
pub trait Checker: Observer {
    /// Its name, which is that of its file.
    fn name(&self) -> &'static str;

    /// The run is over. `drained` says whether everything had the time to be
    /// settled. All that was found, in order of time.
    fn finish(&mut self, at: Nanos, drained: bool) -> Vec<Violation>;
}
