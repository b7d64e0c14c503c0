//! Everything that the engine can ask for.

use std::sync::Arc;

use crate::class::Class;
use crate::destination::Destination;
use crate::engine::learners::{Adapted, Lore};
use crate::flow::FlowKey;
use crate::handle::{AccountId, AppendNo, FlowId, LaneId, LimitId, PermitId, SessionRef};
use crate::limit::saved::Saved;
use crate::limit::spec::{Headroom, LimitSpec};
use crate::message::{Head, Seq, State};
use crate::name::Name;
use crate::outcome::ReplyClass;
use crate::policy::key::LimitKey;
use crate::pool::ClassMask;
use crate::pool::welcome::Welcome;
use crate::reply::Reply;
use crate::retry::dead_letter::{DeadLetter, LastError};
use crate::time::{Nanos, Wall};

/// One thing to be done outside.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Action {
    /// Hand over up to `max` more messages of a flow that are ready.
    Page { flow: FlowId, max: u32 },
    /// Make a record durable; answered by `Committed` or `CommitFailed`.
    Append { no: AppendNo, record: Record },
    /// Ask the ledger for tokens of a limit.
    Lease(LeaseRequest),
    /// Give tokens back to the ledger that will not be used.
    GiveBack(GiveBack),
    /// Have the ledger grant nothing of a limit for so long, to any node.
    PauseLimit { key: Arc<LimitKey>, lasts: Nanos },
    /// Open a session of an account to a lane's destination.
    OpenSession {
        session: SessionRef,
        account: AccountId,
        lane: LaneId,
    },
    /// Close a session.
    CloseSession { session: SessionRef },
    /// Deliver a message over a session; answered by exactly one `Replied`.
    Deliver(Delivery),
    /// A flow was given a number, by which the store keeps its messages; or
    /// its destination was found out; or it is not to be closed after all.
    OpenFlow { flow: FlowId, key: Arc<FlowKey> },
    /// Nothing is to be done for a flow any more: answered by `FlowClosed` once
    /// the store keeps no messages of it, unless `OpenFlow` comes before.
    CloseFlow { flow: FlowId, request: u32 },
    /// Find out the destination of a domain.
    Resolve { domain: Name },
    /// The far end says that a message's recipient does not exist: send him
    /// nothing more.
    Suppress {
        flow: FlowId,
        seq: Seq,
        error: Box<LastError>,
    },
    /// Tell people.
    Alert { alert: Alert },
}

/// A request for tokens. It carries the limit's numbers, so that a ledger that
/// lost them can go on.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// Names the limit in the answer.
    pub limit: LimitId,
    /// Names the request in the answer.
    pub no: u32,
    /// What the whole fleet calls the limit.
    pub key: Arc<LimitKey>,
    /// Its algorithm and numbers.
    pub spec: LimitSpec,
    /// What it keeps for higher classes.
    pub headroom: Headroom,
    /// Who asks.
    pub class: Class,
    /// All classes that wait for tokens of it at this node.
    pub waiting: ClassMask,
    /// How many are wanted. Of slots: how many in all, those in use included;
    /// none gives all of them back.
    pub tokens: u32,
    /// What a single message takes at least: fewer are of no use.
    pub at_least: u32,
    /// What a single message may take at most, as far as this node knows: what
    /// is leased may be used for it.
    pub at_most: u32,
    /// Slots of a concurrency limit that are in use, or may be until the answer
    /// is there. Fewer may be granted, since others wait: then these are counted
    /// until the next request says that they are free.
    pub held: u32,
    /// Of which version the numbers are: a ledger that knows a later one does
    /// not lease under these.
    pub version: u64,
}

/// What a ledger writes on a lease to know it again: when it debited the tokens,
/// on its own clock, and in which of its lives. Nobody else reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Which life: a ledger that lost its state begins another.
    pub epoch: u64,
    /// When.
    pub at: u64,
    /// When, on its wall clock.
    pub wall: Wall,
}

/// Tokens on their way back. Once at most: a lost one only wastes tokens.
#[derive(Clone, Debug)]
pub struct GiveBack {
    /// What the whole fleet calls the limit.
    pub key: Arc<LimitKey>,
    /// Its algorithm and numbers when they were leased.
    pub spec: LimitSpec,
    /// How many.
    pub tokens: u32,
    /// What the ledger wrote on the lease.
    pub receipt: Receipt,
}

/// A message on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Names the delivery in its reply.
    pub permit: PermitId,
    /// Over which session.
    pub session: SessionRef,
    /// Through which account.
    pub account: AccountId,
    /// Of which flow.
    pub flow: FlowId,
    /// Which message.
    pub head: Head,
}

/// What the journal keeps.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Record {
    /// The message waits until a time; an attempt was made, or not.
    Deferral {
        flow: FlowId,
        seq: Seq,
        until: Wall,
        attempt: Option<Box<Attempt>>,
    },
    /// The message is done with; an account tried it last, or none did.
    Settlement {
        flow: FlowId,
        seq: Seq,
        state: State,
        account: Option<Name>,
        error: Option<Box<LastError>>,
    },
    /// The message was given up.
    Dead {
        flow: FlowId,
        seq: Seq,
        account: Option<Name>,
        letter: Box<DeadLetter>,
    },
    /// The far end came back to a message that was settled.
    Feedback {
        flow: FlowId,
        seq: Seq,
        error: Box<LastError>,
    },
    /// All messages of the flow up to this one that wait in the store are
    /// cancelled.
    Cancelled { flow: FlowId, through: Seq },
    /// All messages of the flow up to this one that wait in the store belong to
    /// another flow, and so do these, whose heads the engine held.
    Moved {
        flow: FlowId,
        to: FlowId,
        through: Seq,
        held: Vec<Seq>,
    },
    /// Messages of the flow that wait for their time are due now: one, or all
    /// up to a number.
    Hastened { flow: FlowId, which: Hasten },
    /// So many more tokens of a limit may be used than `saved` knows of.
    Reservation {
        key: Arc<LimitKey>,
        saved: Saved,
        block: u32,
    },
    /// All that is known of a rate that is learnt; the last such record of a
    /// key counts.
    Adapted { key: Arc<LimitKey>, lore: Box<Lore> },
    /// What was reserved of a limit need not be kept any more: a fresh one
    /// knows as much.
    Forgotten { key: Arc<LimitKey> },
    /// An account, or one at a destination, is held; the last such record of a
    /// key counts.
    Held { key: Arc<LimitKey>, hold: Hold },
}

/// How an account, or one at a destination, is held. The facet of the key says
/// by what: by the far end's word, by a breaker, or by the rate of the minute
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Until when.
    pub until: Wall,
    /// What it may send in a minute.
    pub per_minute: u32,
}

impl Hold {
    /// Nothing until then.
    pub const fn nothing_until(until: Wall) -> Self {
        Self {
            until,
            per_minute: 0,
        }
    }
}

/// Which messages are to be tried at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hasten {
    /// This one.
    One(Seq),
    /// All that were accepted up to this one.
    Through(Seq),
}

/// What a failed attempt leaves behind.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// When the message was first tried.
    pub first_attempt_at: Wall,
    /// How often it was tried by now.
    pub attempts: u16,
    /// After how many of these nobody knew whether it was taken.
    pub uncertain: u8,
    /// How long it waits this time.
    pub delay: Nanos,
    /// What went wrong.
    pub error: LastError,
    /// Through which account it was tried.
    pub account: Name,
}

/// Why an account is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// It failed again and again: its breaker is open.
    Failures,
    /// Too many of the replies of a minute refused us.
    Refusals,
}

impl Standstill {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Refusals => "refusals",
        }
    }
}

/// A refusal that a person should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Of what it speaks, as its limit would be called.
    pub about: LimitKey,
    /// Who was refused.
    pub account: Name,
    /// Why.
    pub class: ReplyClass,
    /// By which rule that is known.
    pub rule: Name,
    /// Until when nothing is sent there, if it is held.
    pub until: Option<Wall>,
    /// What the far end said.
    pub reply: Reply,
}

/// Something a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Alert {
    /// The store does not take appends; nothing is sent until it does.
    StoreFailing,
    /// The store takes appends again.
    StoreRecovered,
    /// The ledger is away: this limit is handled as its policy says.
    LedgerAway { key: Arc<LimitKey> },
    /// The far end refuses us in a way that a person must mend: it does not know
    /// or trust us, has blocked us, or a rule says so.
    Refused(Box<Refusal>),
    /// An account, or one at a destination, is left alone until a time: it
    /// failed again and again, or was refused too often.
    Broken {
        account: Name,
        destination: Option<Destination>,
        until: Wall,
        why: Standstill,
    },
    /// It is back: the one message that was tried went through.
    Restored {
        account: Name,
        destination: Option<Destination>,
    },
    /// A rate changed by what was learnt.
    Adapted(Box<Adapted>),
    /// The far end welcomes fewer sessions of an account, or fewer messages on
    /// each, than it may have.
    Unwelcome {
        account: Name,
        destination: Destination,
        welcome: Welcome,
        /// What it said.
        reply: Box<Reply>,
    },
    /// A delivery got no answer by its deadline.
    WorkerLost { permit: PermitId },
}
