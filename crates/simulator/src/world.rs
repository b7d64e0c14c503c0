//! The world: nodes, networks, traffic and time.
//!
//! A heap of (time, sequence, happening) in virtual nanoseconds drives it.
//! Nodes run the same code as in production over simulated ports, each with
//! clocks of its own; a crash drops the node and leaves its disk. Everything
//! that happens is told to an observer in true time, seen from outside.
//!
//! Reading order: `clock`, `content` (what messages say), `transport`, `resolver`,
//! `store` and `stores`, `ledger` (the ports), `player` (a node), `cast` (who is who), `setup` (from data),
//! `intake` (how messages arrive), `lifecycle` (how nodes start and end), `dispatch`
//! (what a node hands over), `probe` and `explained` (what the world asks), `operator` (what
//! operators do), `script` (what goes wrong), `sabotage`
//! (what is broken on purpose), then this.

mod alerts;
mod cast;
pub mod clock;
mod content;
mod dispatch;
mod explained;
mod intake;
pub mod ledger;
mod lifecycle;
mod operator;
mod player;
mod probe;
pub mod resolver;
pub mod sabotage;
mod script;
mod setup;
pub mod store;
mod stores;
pub mod transport;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use outflow_core::destination::Destination;
use outflow_core::engine::Settings;
use outflow_core::engine::event::Event;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::pool::PoolSettings;
use outflow_core::pressure::UnderPressure;
use outflow_core::time::{Mono, Nanos};

use self::cast::Cast;
use self::explained::Watched;
use self::operator::{Ordered, Orders};
use self::player::Player;
use self::sabotage::Sabotage;
use self::script::{Happening, Script};
use self::store::Written;
use crate::memory::ledger::{MemoryLedger, Settings as LedgerSettings, WorldClock};
use crate::network::Network;
use crate::random::Random;
use crate::scenario::{PressureText, Scenario};
use crate::trace::{ConnectionChange, FlowNo, MessageNo, NodeNo, Observer, Trace, Violation};
use crate::traffic::{Arrival, Traffic};

/// Messages that reach a node in one batch at most.
const BATCH_MAX: usize = 1_000;
/// How long a caller waits before it submits again what was not acknowledged.
const RESUBMIT_AFTER: Nanos = Nanos::from_millis(100);
/// An answer that was lost is given up after this long.
const DELIVERY_DEADLINE: Nanos = Nanos::from_secs(60);
/// How often nodes are asked what they hold.
const GAUGE_EVERY: Nanos = Nanos::from_millis(100);
/// The same, once nothing arrives any more, and in scenarios that are longer than
/// a day.
const GAUGE_OFTEN_MAX: Nanos = Nanos::from_secs(86_400);
const GAUGE_SELDOM: Nanos = Nanos::from_secs(10);
/// Flows that are probed for idle buckets each time.
const PROBED: usize = 32;

/// An engine with more flows than this is not recounted.
const CHECKED_MAX: usize = 2_000;

/// What the world knows of a message.
#[derive(Clone, Copy, Debug)]
struct Fate {
    flow: FlowNo,
    cost: u32,
    recipient: u64,
    due: Nanos,
    /// From when on it may be sent, or sent again.
    ready: Nanos,
    expires: Nanos,
    attempts: u16,
    accepted: bool,
    settled: bool,
    ordered: Ordered,
}

/// A run of a scenario.
pub struct World<'a, O> {
    scenario: &'a Scenario,
    observer: O,
    now: Nanos,
    cast: Cast,
    networks: Vec<Network>,
    traffic: std::iter::Peekable<Traffic>,
    players: Vec<Player>,
    fates: Vec<Fate>,
    /// Arrivals that are not yet acknowledged, for callers that try again.
    unacknowledged: BTreeMap<MessageNo, Arrival>,
    retries: BinaryHeap<Reverse<(Nanos, MessageNo)>>,
    script: Script,
    settings: Settings,
    random: Random,
    live: u64,
    unsettled: u64,
    /// Since when a flow's gate has been open at every probe.
    open_since: BTreeMap<(NodeNo, FlowId), Nanos>,
    keyed: bool,
    clock: WorldClock,
    /// What each domain resolves to, and in how long.
    domains: BTreeMap<Name, (Destination, Nanos)>,
    /// The networks to which the accounts of relays connect.
    relays: BTreeMap<Name, usize>,
    shared: Option<MemoryLedger>,
    broken: Vec<Violation>,
    orders: Orders,
    watched: Watched,
    sabotage: Option<Sabotage>,
}

impl<'a, O: Observer> World<'a, O> {
    /// The world of a scenario.
    pub fn new(scenario: &'a Scenario, seed: u64, observer: O) -> Result<Self, String> {
        let accounts = setup::accounts(scenario)?;
        let policies = setup::policies(scenario, Nanos::ZERO)?;
        let leased = scenario.ledger == crate::scenario::Ledger::Leased;
        let wall = scenario.wall_at_zero();
        let networks = scenario
            .networks
            .iter()
            .enumerate()
            .map(|(index, spec)| {
                let random = Random::named(seed, "network", index as u64);
                Network::new(spec.clone(), wall, random)
            })
            .collect();
        let traffic = Traffic::new(&scenario.traffic, seed, scenario.duration.0);
        let pool = PoolSettings {
            under_pressure: match scenario.under_pressure {
                PressureText::Keep => UnderPressure::Keep,
                PressureText::Fill => UnderPressure::Fill,
            },
            ..PoolSettings::default()
        };
        let settings = Settings {
            learns: scenario.learn,
            leased,
            pool,
            delivery_deadline: DELIVERY_DEADLINE,
            ..Settings::default()
        };
        let clock = WorldClock::default();
        let ledger = leased.then(|| {
            let settings = LedgerSettings {
                wall,
                ..LedgerSettings::default()
            };
            MemoryLedger::new(settings, clock.clone())
        });
        let players = setup::players(scenario, seed, ledger.as_ref());
        let faults = &scenario.faults;
        let restarts = scenario.actions.iter().any(|it| it.restart.is_some());
        Ok(Self {
            scenario,
            observer,
            now: Nanos::ZERO,
            cast: Cast::new(policies, accounts, scenario.has_uneven_accounts(), leased),
            networks,
            traffic: traffic.peekable(),
            players,
            fates: Vec::new(),
            unacknowledged: BTreeMap::new(),
            retries: BinaryHeap::new(),
            script: Script::new(scenario, seed),
            settings,
            random: Random::named(seed, "world", 0),
            live: 0,
            unsettled: 0,
            open_since: BTreeMap::new(),
            broken: Vec::new(),
            clock,
            domains: BTreeMap::new(),
            relays: setup::relays(scenario),
            shared: ledger,
            orders: Orders::default(),
            watched: Watched::default(),
            sabotage: None,
            keyed: !faults.crashes.is_empty()
                || faults.store.fails.0 > 0.0
                || faults.store.disk.fail_commits()
                || restarts,
        })
    }

    /// The same world, in which every node is broken.
    #[must_use]
    pub fn sabotaged(mut self, sabotage: Sabotage) -> Self {
        self.sabotage = Some(sabotage);
        self.settings.leased &= sabotage != Sabotage::CountsAlone;
        if matches!(
            sabotage,
            Sabotage::KeepsIdleSessions | Sabotage::BindsRelaySessions
        ) {
            self.settings.pool.keep_idle = Nanos::MAX;
        }
        if matches!(sabotage, Sabotage::FillsUp | Sabotage::Redistributes) {
            self.settings.pool.under_pressure = UnderPressure::Fill;
        }
        let disks = self.players.iter_mut().filter_map(|it| it.disk.as_mut());
        disks.for_each(|(store, _)| store.sabotage(sabotage));
        self
    }

    /// Runs to the end. The observer, when the end was, and what was found
    /// wrong inside an engine.
    pub fn run(mut self) -> (O, Nanos, Vec<Violation>) {
        for node in 0..self.players.len() {
            self.boot(node);
        }
        let ends = self.scenario.ends();
        self.cast
            .introduce_accounts(Nanos::ZERO, &mut self.observer);
        while let Some(next) = self.next_time().filter(|&next| next <= ends) {
            self.now = next.max(self.now);
            self.clock.set(Mono(self.now.0));
            self.arrivals();
            while let Some(happening) = self.script.due(self.now) {
                self.happen(happening);
            }
            for node in 0..self.players.len() {
                if self
                    .players
                    .get(node)
                    .is_some_and(|player| player.turn_at <= self.now)
                {
                    self.turn(node);
                }
            }
            let quiet = self.traffic.peek().is_none()
                && self.unacknowledged.is_empty()
                && self.unsettled == 0;
            if quiet && self.now >= self.scenario.duration.0 {
                break;
            }
        }
        let end = if self.unsettled == 0 { self.now } else { ends };
        (self.observer, end, self.broken)
    }

    fn next_time(&mut self) -> Option<Nanos> {
        let arrival = self.traffic.peek().map(|arrival| arrival.at);
        let retry = self.retries.peek().map(|Reverse((at, _))| *at);
        let script = self.script.next();
        let turn = self.players.iter().map(|player| player.turn_at).min();
        [arrival, retry, script, turn]
            .into_iter()
            .flatten()
            .min()
            .filter(|&at| at != Nanos::MAX)
    }

    fn tell(&mut self, trace: &Trace<'_>) {
        self.observer.observe(self.now, trace);
    }

    /// One turn of a node, and what the world sees of it.
    fn turn(&mut self, number: usize) {
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        if !player.is_awake(self.now) {
            player.turn_at = if player.node.is_some() {
                player.frozen_until
            } else {
                Nanos::MAX
            };
            return;
        }
        let now = player.now(self.now);
        let Some(node) = &mut player.node else {
            return;
        };
        let next = node.turn(&now);
        player.turn_at = player.clock.true_time(next).max(self.now);
        if let Some(sabotage) = self.sabotage {
            player.turn_at = sabotage.next_turn(self.now, player.turn_at);
        }
        for attempt in player.answered(now.mono) {
            self.observer.observe(
                self.now,
                &Trace::Replied {
                    node: number as NodeNo,
                    message: attempt.message,
                    attempt: attempt.attempt,
                    answer: attempt.answer,
                },
            );
            if let Some((session, closes)) = attempt.connection {
                let at = self.now;
                let change = match closes {
                    true => ConnectionChange::Closed { at },
                    false => ConnectionChange::Idle,
                };
                self.tell_connection(number, session, change);
            }
            if let Some((account, wait)) = attempt.asks {
                let until = self.now + wait;
                self.observer
                    .observe(self.now, &Trace::AskedToWait { account, until });
            }
        }
        self.alerts(number);
        self.acknowledgements(number);
        self.written(number);
        self.handed(number, &now);
        self.stopped(number);
    }

    /// Batches that became durable, or did not.
    fn acknowledgements(&mut self, number: usize) {
        loop {
            let Some(player) = self.players.get_mut(number) else {
                return;
            };
            let Some(answer) = player.node.as_mut().and_then(|node| node.next_answer()) else {
                return;
            };
            let messages = player.batches.remove(&answer.batch).unwrap_or_default();
            let taken = answer.given.unwrap_or_default();
            for (place, message) in messages.into_iter().enumerate() {
                if taken.get(place).is_some_and(Result::is_ok) {
                    self.unacknowledged.remove(&message);
                    self.accepted(number, message);
                } else {
                    let later = self.now + RESUBMIT_AFTER;
                    self.retries.push(Reverse((later, message)));
                }
            }
        }
    }

    /// A message is known to be durable.
    fn accepted(&mut self, number: usize, message: MessageNo) {
        let Some(fate) = self.fates.get_mut(message as usize) else {
            return;
        };
        if std::mem::replace(&mut fate.accepted, true) {
            return;
        }
        self.live += 1;
        let fate = *fate;
        self.tell(&Trace::Accepted {
            node: number as NodeNo,
            message,
            flow: fate.flow,
            cost: fate.cost,
            due: fate.due,
            expires: fate.expires,
        });
    }

    /// What a node wrote about its messages.
    fn written(&mut self, number: usize) {
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        let store = match (&mut player.node, &mut player.disk) {
            (Some(node), _) => &mut node.ports_mut().store,
            (None, Some((store, _))) => store,
            (None, None) => return,
        };
        let written = store.take_written();
        let (problems, at) = (store.take_problems().into_iter(), self.now);
        self.broken.extend(problems.map(|what| Violation {
            at,
            checker: "store",
            what,
        }));
        for written in written {
            match written {
                Written::Deferred(seq, until) => {
                    let Some(player) = self.players.get(number) else {
                        return;
                    };
                    let until = player.clock.true_time_of_wall(self.now, until);
                    if let Some(message) = self.message_of(number, seq) {
                        self.accepted(number, message);
                        if let Some(fate) = self.fates.get_mut(message as usize) {
                            fate.ready = until;
                        }
                        self.tell(&Trace::Deferred { message, until });
                    }
                }
                Written::Settled(seq, state) => {
                    let Some(message) = self.message_of(number, seq) else {
                        continue;
                    };
                    self.accepted(number, message);
                    let fate = self.fates.get_mut(message as usize);
                    if let Some(fate) = fate
                        && !std::mem::replace(&mut fate.settled, true)
                    {
                        self.unsettled -= 1;
                        self.live -= 1;
                    }
                    if state == State::Cancelled {
                        self.judge_withdrawn(message);
                    }
                    self.tell(&Trace::Settled { message, state });
                }
            }
        }
    }

    /// The number of the message that a node calls `seq`.
    fn message_of(&self, number: usize, seq: Seq) -> Option<MessageNo> {
        let player = self.players.get(number)?;
        let store = match (&player.node, &player.disk) {
            (Some(node), _) => &node.ports().store,
            (None, Some((store, _))) => store,
            (None, None) => return None,
        };
        store.message(seq)
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Crash { node, down } => self.crash(node as usize, down),
            Happening::Restart { node } => {
                self.boot(node as usize);
                self.tell(&Trace::Restarted { node });
            }
            Happening::Freeze { node, lasts } => {
                if let Some(player) = self.players.get_mut(node as usize) {
                    player.frozen_until = player.frozen_until.max(self.now + lasts);
                }
            }
            Happening::Policies => {
                // A process that stands still hears of it after it has gone on:
                // what it sends at that instant it sends under the old ones.
                let frozen_until = self.players.iter().map(|it| it.frozen_until).max();
                if let Some(at) = frozen_until.filter(|at| *at >= self.now && *at > Nanos::ZERO) {
                    self.script.at(at + Nanos(1), Happening::Policies);
                    return;
                }
                if let Ok(policies) = setup::policies(self.scenario, self.now) {
                    self.cast.change(self.now, policies, &mut self.observer);
                    let policies = self.policies_told();
                    for player in &mut self.players {
                        if let Some(node) = &mut player.node {
                            let policies = Box::new(policies.clone());
                            node.post(Event::PolicyChanged { policies });
                            player.turn_at = self.now.max(player.frozen_until);
                        }
                    }
                }
            }
            Happening::Operator { action } => self.operate(action),
            Happening::PauseEnds { action } => self.pause_ends(action),
            Happening::Stop { node, down } => self.stop(node as usize, down),
            Happening::Bounce {
                node,
                flow,
                seq,
                message,
            } => {
                self.tell(&Trace::LateBounce { message });
                self.bounce(node as usize, flow, seq);
            }
            Happening::LedgerForgets => {
                if let Some(ledger) = &self.shared {
                    ledger.lose_state();
                }
            }
            Happening::Gauge => {
                for node in 0..self.players.len() {
                    self.gauge(node);
                }
                self.ask_why();
                let is_long = self.scenario.duration.0 > GAUGE_OFTEN_MAX;
                let busy = self.now < self.scenario.duration.0 && !is_long;
                let next = if busy { GAUGE_EVERY } else { GAUGE_SELDOM };
                self.script.at(self.now + next, Happening::Gauge);
            }
        }
    }
}
