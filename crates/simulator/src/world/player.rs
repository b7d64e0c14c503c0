//! A node in the world: up, down or standing still, with its own clocks.

use std::collections::BTreeMap;

use outflow_core::engine::Settings;
use outflow_core::engine::event::Event;
use outflow_core::handle::{PermitId, SessionRef};
use outflow_core::policy::set::Policies;
use outflow_core::time::{Mono, Nanos, Now};
use outflow_pipeline::{Node, Ports};
use outflow_ports::store::BatchId;

use super::clock::NodeClock;
use super::ledger::SimLedger;
use super::resolver::SimResolver;
use super::store::WatchedStore;
use super::transport::SimTransport;
use crate::network::SessionNo;
use crate::random::Random;
use crate::trace::{Answered, MessageNo};

/// The node that production runs, over simulated ports.
pub type SimNode = Node<WatchedStore, SimLedger, SimTransport, SimResolver>;

/// A session as the far end knows it.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Which network.
    pub network: usize,
    /// Which of its sessions.
    pub session: SessionNo,
}

/// An attempt whose answer is on its way.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Which message.
    pub message: MessageNo,
    /// Its how-manieth attempt.
    pub attempt: u16,
    /// What the answer amounts to.
    pub answer: Answered,
    /// Which account it asks to wait, and for how long.
    pub asks: Option<(u32, Nanos)>,
    /// The connection that carried it, and whether it closes.
    pub connection: Option<(SessionRef, bool)>,
}

/// One node of the world.
pub struct Player {
    /// Its clocks.
    pub clock: NodeClock,
    /// The process, while it runs.
    pub node: Option<SimNode>,
    /// What is on its disk while it does not, and how it reaches the ledger.
    pub disk: Option<(WatchedStore, SimLedger)>,
    /// Stands still until then.
    pub frozen_until: Nanos,
    /// Its next turn in true time.
    pub turn_at: Nanos,
    /// How long it is away once it has stopped, if it was asked to.
    pub stops_for: Option<Nanos>,
    /// Sessions that the far end knows.
    pub wires: BTreeMap<SessionRef, Wire>,
    /// Attempts without an answer, by permit.
    pub attempts: BTreeMap<PermitId, Attempt>,
    /// Answers in order of arrival.
    pub arriving: BTreeMap<(Mono, u64), PermitId>,
    /// Batches that are not yet answered.
    pub batches: BTreeMap<BatchId, Vec<MessageNo>>,
    random: Random,
    count: u64,
}

impl Player {
    /// A node that is not running yet.
    pub fn new(clock: NodeClock, store: WatchedStore, ledger: SimLedger, random: Random) -> Self {
        Self {
            clock,
            node: None,
            disk: Some((store, ledger)),
            frozen_until: Nanos::ZERO,
            turn_at: Nanos::MAX,
            stops_for: None,
            wires: BTreeMap::new(),
            attempts: BTreeMap::new(),
            arriving: BTreeMap::new(),
            batches: BTreeMap::new(),
            random,
            count: 0,
        }
    }

    /// What the node reads of the world now.
    pub fn now(&mut self, at: Nanos) -> Now {
        let entropy = self.random.draw();
        self.clock.read(at, entropy)
    }

    /// The process starts from what is on disk.
    pub fn boot(
        &mut self,
        at: Nanos,
        settings: Settings,
        policies: Policies,
        resolver: SimResolver,
    ) {
        let Some((store, ledger)) = self.disk.take() else {
            return;
        };
        let now = self.now(at);
        let ports = Ports {
            store,
            ledger,
            transport: SimTransport::default(),
            resolver,
        };
        self.node = Some(Node::start(&now, settings, policies, ports));
        self.turn_at = at;
    }

    /// The process is gone, in peace or not. The wires it leaves behind.
    pub fn crash(&mut self, in_peace: bool) -> Vec<Wire> {
        if let Some(node) = self.node.take() {
            let ports = node.into_ports();
            self.disk = Some((ports.store.gone(in_peace), ports.ledger.rebooted()));
        }
        self.turn_at = Nanos::MAX;
        self.attempts.clear();
        self.arriving.clear();
        std::mem::take(&mut self.wires).into_values().collect()
    }

    /// Whether it can take a turn now.
    pub fn is_awake(&self, at: Nanos) -> bool {
        self.node.is_some() && at >= self.frozen_until
    }

    /// An answer to a delivery arrives at true time `at`.
    pub fn answer(&mut self, at: Nanos, permit: PermitId, event: Event) {
        let mono = self.clock.mono(at);
        self.count += 1;
        self.arriving.insert((mono, self.count), permit);
        self.arrive(at, event);
    }

    /// An event of the transport arrives at true time `at`.
    pub fn arrive(&mut self, at: Nanos, event: Event) {
        let mono = self.clock.mono(at);
        if let Some(node) = &mut self.node {
            node.ports_mut().transport.arrive(mono, event);
        }
        self.turn_at = self.turn_at.min(at.max(self.frozen_until));
    }

    /// Attempts whose answers have arrived by `mono`, in order.
    pub fn answered(&mut self, mono: Mono) -> Vec<Attempt> {
        let mut done = Vec::new();
        while let Some(entry) = self.arriving.first_entry() {
            if entry.key().0 > mono {
                break;
            }
            let permit = entry.remove();
            // The second of two answers finds nothing.
            done.extend(self.attempts.remove(&permit));
        }
        done
    }
}
