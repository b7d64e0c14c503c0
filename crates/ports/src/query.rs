//! Questions to a running node.
//!
//! Answers are made from live state on the node's thread, each with bounded
//! work, and given to a callback there.

use std::sync::Arc;

use outflow_core::class::Class;
use outflow_core::engine::explain::Explanation;
use outflow_core::engine::standing::Standing;
pub use outflow_core::engine::view::LearntView;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::tally::{Counter, Window};
use outflow_core::time::{Nanos, Wall};

use crate::intake::Then;
use crate::parcel::ParcelRef;

/// A message that is not done with, or a dead letter that can be replayed.
#[derive(Clone, Debug)]
pub struct LiveMessage {
    /// Its number.
    pub seq: Seq,
    /// Its flow.
    pub key: Arc<FlowKey>,
    /// Queued, sending, deferred, spilled; dead for a dead letter.
    pub state: State,
    /// When it was accepted.
    pub accepted_at: Wall,
    /// Not to be sent before this, if it was put off.
    pub due_at: Option<Wall>,
    /// Of no use from this on; [`Wall::NEVER`] if always of use.
    pub expires_at: Wall,
    /// How often it was tried.
    pub attempts: u16,
    /// What it takes from each limit.
    pub cost: u32,
    /// Where its content lies.
    pub parcel: Option<ParcelRef>,
}

/// Which messages are meant; all if nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In one of these states; in any if empty.
    pub states: Vec<State>,
    /// What their flows must match.
    pub matches: Option<Match>,
}

impl Filter {
    /// Whether messages in this state are meant.
    pub fn has(&self, state: State) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default)]
pub struct Page<T> {
    /// What was found; perhaps few, since work is bounded.
    pub items: Vec<T>,
    /// Ask again from here; none at the end.
    pub next: Option<Seq>,
}

/// One lane as it is now.
#[derive(Clone, Debug)]
pub struct LaneView {
    /// Its name: `POOL/KIND:NAME`.
    pub name: String,
    /// Its accounts.
    pub pool: Name,
    /// Messages that wait in it, by class.
    pub waiting: [u64; Class::ALL.len()],
    /// Deliveries in flight.
    pub in_flight: u64,
    /// Sessions, open or opening.
    pub sessions: u32,
    /// Deliveries since the node started.
    pub sent: u64,
    /// What holds it, if anything does.
    pub waiting_on: Vec<outflow_core::engine::explain::Obstacle>,
    /// Whether all of it is paused.
    pub paused: bool,
    /// How long the oldest message that is ready has waited.
    pub oldest_age: Option<Nanos>,
    /// Accounts that are left alone here for having failed or been refused.
    pub broken: u32,
    /// Accounts of which one message is let through to see whether they are
    /// back.
    pub half_open: u32,
    /// How many sessions its accounts may hold here, where the far end was found
    /// to welcome fewer than they could.
    pub sessions_welcome: Option<u32>,
}

/// One limit as it is now.
#[derive(Clone, Debug)]
pub struct LimitView {
    /// Its key.
    pub key: Arc<LimitKey>,
    /// Its numbers, as a person writes them.
    pub spec: String,
    /// What it would admit at once now.
    pub tokens: u64,
    /// What it holds at most.
    pub capacity: u64,
    /// Its rate, in messages per second; none for a cap on what is in flight.
    pub rate: Option<f64>,
    /// Flows that wait at it, by class.
    pub waiters: [u64; Class::ALL.len()],
    /// When it admits again; none if it does now, or nobody knows.
    pub next_grant: Option<Wall>,
    /// What was learnt, if its rate is.
    pub learnt: Option<LearntView>,
}

/// What was counted lately of one thing: `isp:google`, `account:ses-1`,
/// `tenant:acme`.
#[derive(Clone, Debug)]
pub struct TallyView {
    /// Of what.
    pub key: Arc<LimitKey>,
    /// By window, then by counter, in the order of their `ALL`.
    pub counts: [[u64; Counter::ALL.len()]; Window::ALL.len()],
}

impl TallyView {
    /// How many there were in a window.
    pub fn count(&self, window: Window, counter: Counter) -> u64 {
        let counts = self.counts.get(window as usize);
        let count = counts.and_then(|counts| counts.get(counter as usize));
        count.copied().unwrap_or(0)
    }
}

/// Messages of one kind in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Ready to be sent, by class.
    pub queued: [u64; Class::ALL.len()],
    /// On their way, by class.
    pub sending: [u64; Class::ALL.len()],
    /// Waiting for their time, by class.
    pub deferred: [u64; Class::ALL.len()],
    /// How long the oldest ready message has waited, by class.
    pub oldest_age: [Option<Nanos>; Class::ALL.len()],
}

/// Answers questions about what is going on.
pub trait Query: Send + Sync {
    /// One message.
    fn message(&self, seq: Seq, then: Then<Option<LiveMessage>>);

    /// Why a message waits, and until when; none if it does not wait.
    fn explain(&self, seq: Seq, then: Then<Option<(LiveMessage, Explanation)>>);

    /// Live messages from `from` on, at most `max`.
    fn messages(&self, filter: Filter, from: Seq, max: usize, then: Then<Page<LiveMessage>>);

    /// All lanes that have messages, sessions or a pause.
    fn lanes(&self, then: Then<Vec<LaneView>>);

    /// All limits.
    fn limits(&self, then: Then<Vec<LimitView>>);

    /// All accounts that are held beside their limits.
    fn standings(&self, then: Then<Vec<Standing>>);

    /// What was counted lately, by key.
    fn tallies(&self, then: Then<Vec<TallyView>>);

    /// How much waits.
    fn depth(&self, then: Then<Depth>);

    /// How many flows of a tenant live, and how many more may.
    fn flows_of(&self, tenant: Name, then: Then<(u64, u64)>);
}
