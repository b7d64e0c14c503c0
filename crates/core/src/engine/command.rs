//! What operators and programs ask of a running engine.

use std::sync::Arc;

use crate::handle::FlowId;
use crate::limit::spec::Rate;
use crate::message::Seq;
use crate::name::Name;
use crate::policy::key::LimitKey;
use crate::policy::matcher::Match;
use crate::time::Wall;

/// A pause, as its owner names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseId(pub u64);

/// What an operator does with a rate that is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tune {
    /// Hold it at this, until a time or for good.
    Pin {
        /// At what.
        rate: Rate,
        /// Until when.
        until: Option<Wall>,
    },
    /// Let it go its own way again.
    Unpin,
    /// Forget all that was learnt.
    Reset,
}

/// One request.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the line above each variant speaks of its fields"
)]
pub enum Command {
    /// Send nothing that matches, until a time or for good.
    Pause {
        id: PauseId,
        matches: Match,
        until: Option<Wall>,
    },
    /// Lift a pause.
    Resume { id: PauseId },
    /// Withdraw one message.
    Cancel { flow: FlowId, seq: Seq },
    /// Try a message that waits for its time now.
    Retry { flow: FlowId, seq: Seq },
    /// Try everything that matches, waits for its time, and was accepted by
    /// then, now.
    RetryAll { matches: Match, through: Seq },
    /// Withdraw everything that matches, waits, and was accepted by then.
    CancelAll { matches: Match, through: Seq },
    /// Hand everything that matches, waits, and was accepted by then to another
    /// pool.
    MoveAll {
        matches: Match,
        pool: Name,
        through: Seq,
    },
    /// Take a rate that is learnt in hand, or let go of it.
    Tune { key: Arc<LimitKey>, tune: Tune },
    /// Finish what is in flight and send nothing more.
    Drain,
}
