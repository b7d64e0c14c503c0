//! What operators do, and what must not happen from then on.
//!
//! Every action is told to all nodes that run. A node that comes back is told
//! which pauses are in force before it hears of its accounts, as in production.
//! The world then holds nodes to what was ordered: nothing is sent that is
//! paused or was withdrawn, nothing through an account that is gone, that
//! belongs to another pool or to another tenant, and nothing is withdrawn that
//! nobody asked to be.

use std::collections::BTreeMap;

use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::event::Event;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::pressure::UnderPressure;
use outflow_core::time::Nanos;
use outflow_ports::control::{Bulk, Touched};
use outflow_ports::store::Store;

use super::intake::node_of;
use super::player::SimNode;
use super::script::Happening;
use super::{World, setup};
use crate::scenario::PressureText;
use crate::scenario::account::AccountData;
use crate::scenario::action::{CancelAction, PauseAction, RestartAction, read_match};
use crate::trace::{MessageNo, Observer, Trace, Violation};

/// An order that a node heard so shortly before it died may be lost.
const DURABLE_AFTER: Nanos = Nanos::from_secs(15);
/// Clocks may differ by this much over the length of a pause.
const CLOCK_SLACK: Nanos = Nanos::from_millis(20);
/// How many violations of orders are described.
const DESCRIBED: usize = 20;

/// Which order was not obeyed. Each is described for itself, so that one that is
/// broken often hides no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disobeyed {
    Cancel,
    Removal,
    Pause,
    Tenant,
    Move,
    /// Something was withdrawn that nobody asked for.
    Unasked,
}

/// What was ordered about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordered {
    /// Nothing.
    #[default]
    Nothing,
    /// It was withdrawn while it waited.
    Withdrawn(Nanos),
    /// It was moved while it waited.
    Moved(Nanos),
    /// It may have been withdrawn or moved, or not: it was on its way, or its
    /// node died before the order was durable.
    Unknown,
}

/// A pause in force.
#[derive(Clone, Debug)]
struct PauseOrder {
    matches: Match,
    given: Nanos,
    ends: Nanos,
    lifted: bool,
}

/// All that was ordered.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    pauses: BTreeMap<u32, PauseOrder>,
    cancels: Vec<Match>,
    broken: BTreeMap<Disobeyed, usize>,
}

impl<O: Observer> World<'_, O> {
    /// An operator does what the scenario says.
    pub(super) fn operate(&mut self, index: u32) {
        let Some(action) = self.scenario.actions.get(index as usize) else {
            return;
        };
        if let Some(pause) = &action.pause {
            self.pause(index, pause);
        }
        if let Some(cancel) = &action.cancel {
            self.cancel(cancel);
        }
        if let Some(retry) = &action.retry
            && let Ok(matches) = read_match(&retry.matches)
        {
            self.bulk(&Bulk::Retry, &matches);
        }
        if let Some(relocate) = &action.relocate
            && let Ok(matches) = read_match(&relocate.matches)
        {
            self.relocate(&matches, &Name::from(relocate.pool.as_str()));
        }
        if let Some(data) = &action.account {
            self.set_accounts(data);
        }
        if let Some(name) = &action.remove_account {
            let account = Name::from(name.as_str());
            let cast = &mut self.cast;
            cast.remove_account(self.now, &account, &mut self.observer);
            self.post_all(|| Event::AccountRemoved {
                account: account.clone(),
            });
        }
        if let Some(restart) = &action.restart {
            self.restart_all(restart);
        }
        self.tell_holds();
    }

    fn tell_holds(&mut self) {
        let holds = (self.orders.pauses.len() + self.cast.removed()) as u32;
        self.tell(&Trace::Operated { holds });
    }

    /// Does something with every node that runs, and wakes it.
    fn each_node(&mut self, mut tell: impl FnMut(&mut SimNode)) {
        for player in &mut self.players {
            if let Some(node) = &mut player.node {
                tell(node);
                player.turn_at = player.turn_at.min(self.now.max(player.frozen_until));
            }
        }
    }

    fn post_all(&mut self, event: impl Fn() -> Event) {
        let deaf = |it: super::Sabotage| !it.hears(&event());
        if !self.sabotage.is_some_and(deaf) {
            self.each_node(|node| node.post(event()));
        }
    }

    fn bulk(&mut self, bulk: &Bulk, matches: &Match) {
        if self.sabotage != Some(super::Sabotage::IgnoresOrders) {
            self.each_node(|node| {
                node.bulk(bulk.clone(), matches.clone(), false);
            });
        }
    }

    fn pause(&mut self, index: u32, pause: &PauseAction) {
        let Ok(matches) = read_match(&pause.matches) else {
            return;
        };
        let ends = self.now + pause.lasts.0;
        let order = PauseOrder {
            matches,
            given: self.now,
            ends,
            lifted: pause.lifted,
        };
        self.orders.pauses.insert(index, order);
        self.script.at(ends, Happening::PauseEnds { action: index });
        for number in 0..self.players.len() {
            self.tell_pauses(number, Some(index));
        }
    }

    /// A pause is over.
    pub(super) fn pause_ends(&mut self, index: u32) {
        let pause = self.orders.pauses.remove(&index);
        if pause.is_some_and(|pause| pause.lifted) {
            let id = PauseId(u64::from(index));
            self.post_all(|| Event::Command(Command::Resume { id }));
        }
        self.tell_holds();
    }

    /// Tells a node of the pauses in force, or of one of them.
    pub(super) fn tell_pauses(&mut self, number: usize, only: Option<u32>) {
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        let wall = player.clock.read(self.now, 0).wall;
        let Some(node) = &mut player.node else {
            return;
        };
        if self.sabotage == Some(super::Sabotage::IgnoresOrders) {
            return;
        }
        let pauses = self.orders.pauses.iter();
        for (index, pause) in pauses.filter(|(index, _)| only.is_none_or(|only| only == **index)) {
            let until = wall + pause.ends.minus(self.now);
            node.post(Event::Command(Command::Pause {
                id: PauseId(u64::from(*index)),
                matches: pause.matches.clone(),
                until: (!pause.lifted).then_some(until),
            }));
        }
        player.turn_at = player.turn_at.min(self.now.max(player.frozen_until));
    }

    fn cancel(&mut self, cancel: &CancelAction) {
        if let Ok(matches) = read_match(&cancel.matches) {
            self.orders.cancels.push(matches.clone());
            self.bulk(&Bulk::Cancel, &matches);
            for (message, certain) in self.meant(&matches) {
                let ordered = match certain {
                    true => Ordered::Withdrawn(self.heard(message, self.now)),
                    false => Ordered::Unknown,
                };
                self.order(message, ordered);
            }
        }
        for _ in 0..cancel.singles {
            self.cancel_one();
        }
    }

    /// Withdraws one message of one node, whichever chance picks.
    fn cancel_one(&mut self) {
        let number = self.random.below(self.players.len() as u64) as usize;
        let draw = self.random.draw();
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        // A process that stands still answers nobody.
        if !player.is_awake(self.now) {
            return;
        }
        let now = player.clock.read(self.now, draw);
        let Some(node) = &mut player.node else {
            return;
        };
        let seq = Seq(draw % (node.ports().store.last_seq().0 + 1));
        let touched = node.cancel(&now, seq);
        player.turn_at = player.turn_at.min(self.now.max(player.frozen_until));
        if touched == Touched::Done
            && let Some(message) = self.message_of(number, seq)
        {
            self.order(message, Ordered::Withdrawn(self.now));
        }
    }

    fn relocate(&mut self, matches: &Match, pool: &Name) {
        let to = pool.clone();
        self.bulk(&Bulk::Move { pool: to }, matches);
        self.cast
            .move_all(self.now, matches, pool, &mut self.observer);
        for (message, certain) in self.meant(matches) {
            let Some(fate) = self.fates.get(message as usize) else {
                continue;
            };
            let from = fate.flow;
            let cast = &mut self.cast;
            let flow = cast.in_pool(self.now, from, pool, &mut self.observer);
            if !certain {
                self.order(message, Ordered::Unknown);
            } else if flow != from {
                self.order(message, Ordered::Moved(self.heard(message, self.now)));
                self.change_flow(message, flow);
            }
        }
    }

    /// From when on the node of a message keeps an order that was given at a
    /// time: it hears of it in its turn, when it does not stand still, and may
    /// send something before in the same instant.
    fn heard(&self, message: MessageNo, given: Nanos) -> Nanos {
        let player = self
            .players
            .get(node_of(message, self.players.len() as u64));
        let goes_on = player.map_or(Nanos::ZERO, |player| player.frozen_until);
        given.max(goes_on) + Nanos(1)
    }

    fn change_flow(&mut self, message: MessageNo, flow: u32) {
        if let Some(fate) = self.fates.get_mut(message as usize) {
            fate.flow = flow;
            self.tell(&Trace::Moved { message, flow });
        }
    }

    fn order(&mut self, message: MessageNo, ordered: Ordered) {
        let Some(fate) = self.fates.get_mut(message as usize) else {
            return;
        };
        // What was withdrawn stays so, whatever is ordered of it later.
        if !matches!(fate.ordered, Ordered::Withdrawn(_)) {
            fate.ordered = ordered;
        }
    }

    /// The messages that a match means, and whether each of them certainly
    /// waits at a node that hears of it.
    fn meant(&self, matches: &Match) -> Vec<(MessageNo, bool)> {
        let nodes = self.players.len() as u64;
        let mut found = Vec::new();
        for (index, fate) in self.fates.iter().enumerate() {
            let message = index as MessageNo;
            let (certain, possible) = self.cast.is_meant(matches, fate.flow);
            if fate.settled || !possible {
                continue;
            }
            let player = self.players.get(node_of(message, nodes));
            let Some(player) = player.filter(|player| player.node.is_some()) else {
                continue;
            };
            let is_sent = player.attempts.values().any(|it| it.message == message);
            let is_free = !matches!(fate.ordered, Ordered::Unknown);
            found.push((message, certain && fate.accepted && !is_sent && is_free));
        }
        found
    }

    fn set_accounts(&mut self, data: &AccountData) {
        for name in data.names() {
            let Ok(spec) = setup::account(data, &name) else {
                continue;
            };
            let cast = &mut self.cast;
            cast.set_account(self.now, spec.clone(), &mut self.observer);
            self.post_all(|| Event::AccountChanged {
                account: Box::new(spec.clone()),
            });
        }
    }

    fn restart_all(&mut self, restart: &RestartAction) {
        if let Some(pressure) = restart.under_pressure {
            self.settings.pool.under_pressure = match pressure {
                PressureText::Keep => UnderPressure::Keep,
                PressureText::Fill => UnderPressure::Fill,
            };
        }
        if let Some(sessions) = restart.keep_warm {
            self.settings.pool.keep_warm = sessions;
        }
        if restart.headroom.is_some()
            && let Ok(policies) = setup::policies(self.scenario, self.now)
        {
            self.cast.policies = policies;
        }
        let (down, graceful) = (restart.down.0, restart.graceful);
        for node in 0..self.players.len() as u32 {
            let at = self.now + restart.apart.0.times(u64::from(node));
            let stops = match graceful {
                true => Happening::Stop { node, down },
                false => Happening::Crash { node, down },
            };
            self.script.at(at, stops);
        }
    }

    /// A node finishes what is in flight, and is away for so long then.
    pub(super) fn stop(&mut self, number: usize, down: Nanos) {
        if let Some(player) = self.players.get_mut(number)
            && let Some(node) = &mut player.node
        {
            node.shut_down();
            player.stops_for = Some(down);
            player.turn_at = player.turn_at.min(self.now.max(player.frozen_until));
        }
    }

    /// What a node heard last may be lost with it.
    pub(super) fn orders_lost(&mut self, number: usize) {
        let (now, nodes) = (self.now, self.players.len() as u64);
        for (index, fate) in self.fates.iter_mut().enumerate() {
            let (Ordered::Withdrawn(at) | Ordered::Moved(at)) = fate.ordered else {
                continue;
            };
            if node_of(index as MessageNo, nodes) == number && now < at + DURABLE_AFTER {
                fate.ordered = Ordered::Unknown;
            }
        }
    }

    /// A message is sent through an account: may it be?
    pub(super) fn judge_sent(&mut self, message: MessageNo, account: u32) {
        let Some(fate) = self.fates.get(message as usize).copied() else {
            return;
        };
        if matches!(fate.ordered, Ordered::Withdrawn(at) if at <= self.now) {
            self.disobeyed(Disobeyed::Cancel, || {
                format!("message {message} was sent after it was withdrawn")
            });
        }
        let Some(spec) = self.cast.present_account(account).cloned() else {
            let gone_at = self.cast.removed_at(account).unwrap_or_default();
            if self.now >= self.heard(message, gone_at) {
                self.disobeyed(Disobeyed::Removal, || {
                    format!("message {message} was sent through an account that is gone")
                });
            }
            return;
        };
        let Some(key) = self.cast.key(fate.flow) else {
            return;
        };
        let (pool, serves) = (key.pool.clone(), spec.serves(&key.tenant));
        let facts = spec.facts();
        // A clock that steps while a node stands still moves the end of a pause
        // that it hears of when it goes on.
        let faults = &self.scenario.faults;
        let slack = match faults.pauses.is_empty() {
            true => CLOCK_SLACK,
            false => CLOCK_SLACK + faults.wall_error_max(self.now),
        };
        let paused = self.orders.pauses.values().find(|pause| {
            let matches = &pause.matches;
            let slack = if pause.lifted { Nanos::ZERO } else { slack };
            self.now + slack < pause.ends
                && self.now >= self.heard(message, pause.given)
                && (matches.matches_flow(key)
                    || matches.matches_account(&facts)
                    || matches.matches_pair(&facts, key))
        });
        let paused = paused.map(|pause| pause.matches.clone());
        if let Some(matches) = paused {
            self.disobeyed(Disobeyed::Pause, || {
                format!("message {message} was sent though {matches} is paused")
            });
        }
        let id = &spec.id;
        if !serves {
            self.disobeyed(Disobeyed::Tenant, || {
                format!("message {message} was sent through {id} of another tenant")
            });
        }
        if pool == spec.pool {
            return;
        }
        let excused = match fate.ordered {
            Ordered::Unknown => true,
            Ordered::Moved(at) => self.now < at,
            Ordered::Nothing | Ordered::Withdrawn(_) => false,
        };
        match self.cast.known_in_pool(fate.flow, &spec.pool) {
            Some(flow) if excused => self.change_flow(message, flow),
            _ => {
                let wrong = &spec.pool;
                self.disobeyed(Disobeyed::Move, || {
                    format!("message {message} of pool {pool} was sent by {wrong}")
                });
            }
        }
    }

    /// A message is settled as withdrawn: did anybody ask for that?
    pub(super) fn judge_withdrawn(&mut self, message: MessageNo) {
        let Some(fate) = self.fates.get(message as usize).copied() else {
            return;
        };
        let mut cancels = self.orders.cancels.iter();
        let asked = fate.ordered != Ordered::Nothing
            || cancels.any(|matches| self.cast.is_meant(matches, fate.flow).1);
        if !asked {
            self.disobeyed(Disobeyed::Unasked, || {
                format!("message {message} was withdrawn, and nobody asked for it")
            });
        }
    }

    fn disobeyed(&mut self, kind: Disobeyed, what: impl FnOnce() -> String) {
        let broken = self.orders.broken.entry(kind).or_default();
        *broken += 1;
        if *broken <= DESCRIBED {
            self.broken.push(Violation {
                at: self.now,
                checker: "orders",
                what: what(),
            });
        }
    }
}
