//! What nodes say of messages that wait.
//!
//! A few messages at a time are watched, each until it is sent or settled, so
//! that every reason a node gives can be followed to its end. Chance has no part
//! in which: the world looks through all of them in turn.

use outflow_core::engine::explain::Obstacle;
use outflow_core::time::{Nanos, Now, Wall};

use super::World;
use super::intake::node_of;
use super::player::{Player, SimNode};
use crate::trace::{Held, HeldBy, MessageNo, Observer, Trace};

/// How many messages are watched at once.
const WATCHED: usize = 8;
/// How many are looked at to find others.
const LOOKS: usize = 512;

/// The messages that are watched.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    messages: Vec<MessageNo>,
    next: usize,
}

impl<O: Observer> World<'_, O> {
    /// Asks the nodes why the watched messages wait.
    pub(super) fn ask_why(&mut self) {
        if self.scenario.healed_at().is_none_or(|at| self.now < at) {
            return;
        }
        let mut watched = std::mem::take(&mut self.watched);
        watched.messages.retain(|message| self.waits(*message));
        for _ in 0..LOOKS.min(self.fates.len()) {
            if watched.messages.len() >= WATCHED {
                break;
            }
            watched.next = (watched.next + 1) % self.fates.len().max(1);
            let message = watched.next as MessageNo;
            if self.waits(message) && !watched.messages.contains(&message) {
                watched.messages.push(message);
            }
        }
        for message in &watched.messages {
            self.ask_why_one(*message);
        }
        self.watched = watched;
    }

    /// Whether a message should be sent, as far as the world knows.
    fn waits(&self, message: MessageNo) -> bool {
        let Some(fate) = self.fates.get(message as usize) else {
            return false;
        };
        let node = node_of(message, self.players.len() as u64);
        let Some(player) = self.players.get(node) else {
            return false;
        };
        let sent = || player.attempts.values().any(|it| it.message == message);
        fate.accepted && !fate.settled && fate.ready <= self.now && !sent()
    }

    fn ask_why_one(&mut self, message: MessageNo) {
        let at = self.now;
        let number = node_of(message, self.players.len() as u64);
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        if !player.is_awake(at) {
            return;
        }
        let now = player.clock.read(at, 0);
        let Some(obstacles) = obstacles(player, &now, message) else {
            return;
        };
        let holds: Vec<Held> = obstacles
            .iter()
            .map(|(obstacle, until)| Held {
                by: self.held_by(obstacle),
                until: until.map(|until| true_time(at, &now, until)),
            })
            .collect();
        let flow = self.fates.get(message as usize).map(|fate| fate.flow);
        let key = flow.and_then(|flow| self.cast.key(flow));
        let accounts = key.map_or_else(Vec::new, |key| self.cast.accounts_in(&key.pool));
        self.tell(&Trace::Explained {
            message,
            holds: &holds,
            accounts: &accounts,
        });
    }

    fn held_by(&self, obstacle: &Obstacle) -> HeldBy {
        match obstacle {
            Obstacle::Limit { key, .. } => HeldBy::Limit(self.cast.limit(&key.to_string())),
            Obstacle::AccountBlocked { .. }
            | Obstacle::AccountBroken { .. }
            | Obstacle::UnderPressure { .. } => HeldBy::Account,
            Obstacle::NoAccountReady | Obstacle::NoSession { .. } => HeldBy::Session,
            Obstacle::NoAccount => HeldBy::NoAccount,
            Obstacle::Unresolved => HeldBy::Unresolved,
            Obstacle::Paused => HeldBy::Paused,
            Obstacle::Deferred { .. } => HeldBy::Deferred,
            Obstacle::StoreFailing => HeldBy::Store,
            Obstacle::Draining => HeldBy::Shutdown,
        }
    }
}

/// What stands before a message, each with its end; none if it does not wait.
fn obstacles(
    player: &Player,
    now: &Now,
    message: MessageNo,
) -> Option<Vec<(Obstacle, Option<Wall>)>> {
    let node: &SimNode = player.node.as_ref()?;
    let seq = node.ports().store.seq(message)?;
    let (_, explanation) = node.explain(now, seq)?;
    let obstacles = explanation.waiting_on.into_iter().map(|obstacle| {
        let until = match &obstacle {
            Obstacle::Limit { until, .. } | Obstacle::AccountBroken { until, .. } => *until,
            Obstacle::AccountBlocked { until, .. }
            | Obstacle::UnderPressure { until, .. }
            | Obstacle::Deferred { until } => Some(*until),
            _ => None,
        };
        (obstacle, until)
    });
    Some(obstacles.collect())
}

/// When a node's wall clock reads `wall`, or did.
fn true_time(at: Nanos, now: &Now, wall: Wall) -> Nanos {
    if wall == Wall::NEVER {
        return Nanos::MAX;
    }
    (at + wall.since(now.wall)).minus(now.wall.since(wall))
}
