//! Everything that can happen to the engine.
//!
//! Events carry handles and small data; names were resolved before they came.

use std::sync::Arc;

use crate::account::AccountSpec;
use crate::destination::Destination;
use crate::engine::action::Receipt;
use crate::engine::command::Command;
use crate::flow::FlowKey;
use crate::handle::{AppendNo, FlowId, LimitId, PermitId, SessionRef};
use crate::ledger::owed;
use crate::message::{Head, Seq};
use crate::name::Name;
use crate::policy::key::LimitKey;
use crate::policy::set::Policies;
use crate::reply::Reply;
use crate::tally::{Counter, Teller};
use crate::time::Nanos;

/// One thing that happened.
#[derive(Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Event {
    /// So many new messages are durable and wait in the store, in this flow.
    Accepted { flow: FlowId, count: u32 },
    /// So many more messages of this flow are ready in the store: found at
    /// start, or their due time came.
    Due { flow: FlowId, count: u32 },
    /// These messages of the flow have expired; `held` if the engine has their
    /// heads, or had.
    Expired {
        flow: FlowId,
        seqs: Vec<Seq>,
        held: bool,
    },
    /// The store's answer to [`Action::Page`](super::action::Action::Page), in
    /// order; fewer than asked for means that there are no more.
    Paged { flow: FlowId, heads: Vec<Head> },
    /// The answer to [`Action::CloseFlow`](super::action::Action::CloseFlow):
    /// the store keeps no messages of the flow and says nothing more of it. Its
    /// number can be given to another if it `is_free`; if not, that is said
    /// later, of no request.
    FlowClosed {
        flow: FlowId,
        request: u32,
        is_free: bool,
    },
    /// All appends up to this one are durable.
    Committed { through: AppendNo },
    /// The appends from the last committed one up to this one are lost.
    CommitFailed { through: AppendNo },
    /// A domain's destination is known.
    Resolved {
        domain: Name,
        destination: Destination,
    },
    /// A session that was asked for can take messages.
    SessionReady { session: SessionRef },
    /// A session could not be opened, or has ended.
    SessionClosed { session: SessionRef },
    /// A session could not be opened, and this was said.
    SessionRefused {
        session: SessionRef,
        reply: Box<Reply>,
    },
    /// The answer to a delivery; exactly one per delivery counts.
    /// `session_lives` if the session can take another message.
    Replied {
        permit: PermitId,
        reply: Reply,
        session_lives: bool,
    },
    /// The ledger's answer to request `no` for tokens of a limit.
    Granted {
        limit: LimitId,
        no: u32,
        answer: LeaseAnswer,
    },
    /// Nothing of this limit, or through this account, is to be taken for so
    /// long: the far end said so to some node, or an operator did. No time at
    /// all lifts what was said before.
    Paused { key: Arc<LimitKey>, lasts: Nanos },
    /// The far end changed its mind about a message that it had accepted.
    Feedback {
        flow: FlowId,
        seq: Seq,
        reply: Reply,
    },
    /// Something was heard of a message that was sent through an account: it
    /// bounced later, was complained of, opened or clicked.
    Heard {
        key: Box<FlowKey>,
        account: Option<Name>,
        counter: Counter,
        teller: Teller,
    },
    /// The policies in force are these from now on.
    PolicyChanged { policies: Box<Policies> },
    /// An account is new or has changed.
    AccountChanged { account: Box<AccountSpec> },
    /// An account is gone.
    AccountRemoved { account: Name },
    /// What an operator or a program asks for.
    Command(Command),
    /// The time that [`Engine::next_wake`](super::Engine::next_wake) named.
    Woke,
}

/// What a ledger says to a request for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// So many tokens, to be used within `life` of the moment they were asked
    /// for; spaced ones at least `spacing` apart, beginning after `wait`. Of
    /// slots: so many in all, until they are asked for again.
    Leased {
        /// How many.
        tokens: u32,
        /// From asking to the end of their use.
        life: Nanos,
        /// How long after asking the first may be used.
        wait: Nanos,
        /// The least distance between two of them.
        spacing: Nanos,
        /// To be shown if some are given back.
        receipt: Receipt,
        /// What this node owes to lower classes that wait there, besides what
        /// they earn of its own grants.
        owed: owed::Tokens,
    },
    /// None now; ask again after this long.
    Refused {
        /// From now.
        retry_after: Nanos,
    },
    /// The ledger cannot be reached.
    Away,
}
