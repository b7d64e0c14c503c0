//! Changes to a running node. What must survive a restart is written to the
//! registry before it comes here.

use outflow_core::account::AccountSpec;
use outflow_core::engine::command::{PauseId, Tune};
use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::tally::{Counter, Teller};
use outflow_core::time::Wall;

use crate::intake::Then;

/// What became of a request about one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Done, and durable soon.
    Done,
    /// It is on its way to the far end: too late.
    Sending,
    /// There is no such live message.
    Unknown,
}

/// What to do with everything that matches.
#[derive(Clone, Debug)]
pub enum Bulk {
    /// Withdraw it.
    Cancel,
    /// Try what is deferred now.
    Retry,
    /// Hand it to another pool.
    Move {
        /// Which.
        pool: Name,
    },
}

/// Changes what a node does. Calls are carried out in order.
pub trait Control: Send + Sync {
    /// These policies are in force from now on.
    fn set_policies(&self, policies: Policies);

    /// An account is new or has changed.
    fn set_account(&self, account: AccountSpec);

    /// An account is gone.
    fn remove_account(&self, account: Name);

    /// Send nothing that matches, until a time or for good.
    fn pause(&self, id: PauseId, matches: Match, until: Option<Wall>);

    /// Lift a pause.
    fn resume(&self, id: PauseId);

    /// Withdraw one message.
    fn cancel(&self, seq: Seq, then: Then<Touched>);

    /// Try a deferred message now.
    fn retry(&self, seq: Seq, then: Then<Touched>);

    /// Do something with everything that matches and waits; how many messages
    /// that is, at most. With `dry_run` nothing is done.
    fn bulk(&self, bulk: Bulk, matches: Match, dry_run: bool, then: Then<u64>);

    /// Something was heard of a message that was sent through an account: it
    /// bounced later, was complained of, opened or clicked. Who tells it decides
    /// for whom it counts.
    fn heard(&self, key: FlowKey, account: Option<Name>, counter: Counter, teller: Teller);

    /// The far end changed its mind about a message that it had accepted: its
    /// receipt says so.
    fn feedback(&self, key: FlowKey, seq: Seq, reply: Reply);

    /// Take a rate that is learnt in hand, or let go of it.
    fn tune(&self, key: LimitKey, tune: Tune);

    /// Dead letters that are no longer kept: replayed or discarded.
    fn forget(&self, seqs: Vec<Seq>);
}
