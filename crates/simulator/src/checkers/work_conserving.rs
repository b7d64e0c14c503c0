//! No message waits for a session while a connection that could serve it, or
//! could be closed for it, is idle.
//!
//! The world says which messages are next and lack nothing but a session, and
//! which accounts have tokens for them; connections are followed from outside,
//! as they are opened, used and closed. An idle connection could serve such a
//! message if it is to a relay or to the message's destination. It could be
//! closed for it if its account has as many as it may have, may connect, and
//! nothing at all is queued for the destination it leads to. Either may last for
//! a second and twice the longest time that the account took to connect: a lane
//! that sends all the time keeps its connections over the gap between two
//! messages, and one whose own connections come free sooner waits for them.

use std::collections::{BTreeMap, BTreeSet};

use outflow_core::destination::Destination;
use outflow_core::time::Nanos;

use super::Findings;
use crate::trace::{
    Checker, ConnectionChange, FlowNo, MessageNo, NodeNo, Observer, Trace, Violation,
};

/// How long a connection may be idle beside a message, besides twice the longest
/// connect.
const GRACE: Nanos = Nanos::from_secs(1);

/// Between probes that are farther apart than this a message may have had what
/// it lacks, or have been held by something else: it counts as lacking it anew.
const PROBES_APART: Nanos = GRACE;

/// How a connection helps that leads elsewhere.
const MAKE_WAY: &str = "make way for";

/// A destination, numbered from 0.
type DestinationNo = usize;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    is_relay: bool,
    max: u32,
    slowest: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    account: u32,
    to: DestinationNo,
    /// Since when it has been idle, or will be; nothing while it is busy.
    idle: Option<Nanos>,
    closes: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unknown,
    Queued,
    Sent(NodeNo),
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    flow: FlowNo,
    place: Place,
}

/// What is queued for a destination, and since when nothing is.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    messages: u64,
    empty_since: Nanos,
}

/// Since when a message has lacked a session at every probe.
#[derive(Clone, Debug)]
struct Lack {
    since: Nanos,
    /// When it was last probed.
    at: Nanos,
    probe: u64,
    /// For how long, of this, each account might connect for it.
    might_connect: BTreeMap<u32, Nanos>,
}

/// See the module.
pub struct WorkConserving {
    accounts: BTreeMap<u32, Account>,
    connections: BTreeMap<(NodeNo, u64), Connection>,
    numbers: BTreeMap<Destination, DestinationNo>,
    queues: Vec<Queue>,
    flows: Vec<DestinationNo>,
    messages: Vec<Message>,
    in_flight: BTreeSet<MessageNo>,
    probes: BTreeMap<NodeNo, u64>,
    lacks: BTreeMap<(NodeNo, MessageNo), Lack>,
    findings: Findings,
}

impl Default for WorkConserving {
    fn default() -> Self {
        Self {
            accounts: BTreeMap::new(),
            connections: BTreeMap::new(),
            numbers: BTreeMap::new(),
            queues: Vec::new(),
            flows: Vec::new(),
            messages: Vec::new(),
            in_flight: BTreeSet::new(),
            probes: BTreeMap::new(),
            lacks: BTreeMap::new(),
            findings: Findings::of("work_conserving"),
        }
    }
}

impl WorkConserving {
    fn number(&mut self, destination: &Destination) -> DestinationNo {
        if let Some(&number) = self.numbers.get(destination) {
            return number;
        }
        let number = self.queues.len();
        self.numbers.insert(destination.clone(), number);
        self.queues.push(Queue::default());
        number
    }

    fn destination_of(&self, flow: FlowNo) -> Option<DestinationNo> {
        self.flows.get(flow as usize).copied()
    }

    fn put(&mut self, at: Nanos, message: MessageNo, place: Place) {
        let Some(known) = self.messages.get_mut(message as usize) else {
            return;
        };
        let before = std::mem::replace(&mut known.place, place);
        let flow = known.flow;
        match place {
            Place::Sent(_) => self.in_flight.insert(message),
            _ => self.in_flight.remove(&message),
        };
        let to = self.destination_of(flow);
        if let Some(queue) = to.and_then(|to| self.queues.get_mut(to)) {
            queue.messages += u64::from(place == Place::Queued);
            queue.messages -= u64::from(before == Place::Queued);
            if queue.messages == 0 && before == Place::Queued {
                queue.empty_since = at;
            }
        }
    }

    fn accept(&mut self, at: Nanos, message: MessageNo, flow: FlowNo) {
        let index = message as usize;
        if self.messages.len() <= index {
            let unknown = Message {
                flow,
                place: Place::Unknown,
            };
            self.messages.resize(index + 1, unknown);
        }
        if let Some(known) = self.messages.get_mut(index) {
            known.flow = flow;
        }
        self.put(at, message, Place::Queued);
    }

    fn change(&mut self, at: Nanos, key: (NodeNo, u64), change: ConnectionChange<'_>) {
        match change {
            ConnectionChange::Opened {
                account,
                destination,
                ready,
            } => {
                let connection = Connection {
                    account,
                    to: self.number(destination),
                    idle: Some(ready),
                    closes: Nanos::MAX,
                };
                self.connections.insert(key, connection);
                if let Some(account) = self.accounts.get_mut(&account) {
                    account.slowest = account.slowest.max(ready.minus(at));
                }
            }
            ConnectionChange::Busy => {
                if let Some(connection) = self.connections.get_mut(&key) {
                    connection.idle = None;
                }
            }
            ConnectionChange::Idle => {
                if let Some(connection) = self.connections.get_mut(&key) {
                    connection.idle = Some(at);
                }
            }
            ConnectionChange::Closed { at: closes } if closes > at => {
                if let Some(connection) = self.connections.get_mut(&key) {
                    connection.closes = closes;
                }
            }
            ConnectionChange::Closed { .. } => drop(self.connections.remove(&key)),
        }
    }

    fn lacks(&mut self, at: Nanos, node: NodeNo, message: MessageNo, carriers: &[(u32, bool)]) {
        let probe = self.probes.get(&node).copied().unwrap_or(0);
        let lack = Lack {
            since: at,
            at,
            probe,
            might_connect: BTreeMap::new(),
        };
        let known = self.lacks.entry((node, message)).or_insert(lack.clone());
        if known.probe + 1 < probe || at.minus(known.at) > PROBES_APART {
            *known = lack.clone();
        }
        let passed = at.minus(known.at);
        (known.at, known.probe) = (at, probe);
        for (account, _) in carriers.iter().filter(|(_, may_connect)| *may_connect) {
            let so_far = known.might_connect.entry(*account).or_default();
            *so_far = *so_far + passed;
        }
        let (since, might_connect) = (known.since, known.might_connect.clone());
        let flow = self.messages.get(message as usize).map(|it| it.flow);
        let Some(to) = flow.and_then(|flow| self.destination_of(flow)) else {
            return;
        };
        for (account, may_connect) in carriers {
            let Some((could, idle)) = self.idle_beside(at, node, *account, to, *may_connect) else {
                continue;
            };
            let slowest = self
                .accounts
                .get(account)
                .map_or(Nanos::ZERO, |it| it.slowest);
            let mut waited = at.minus(since.max(idle));
            if could == MAKE_WAY {
                // Between two tries of a far end that cannot be reached nothing
                // is to be connected.
                let might = might_connect.get(account).copied().unwrap_or_default();
                waited = waited.min(might);
            }
            if waited > GRACE + slowest.times(2) {
                self.lacks.insert((node, message), lack);
                self.findings.add(at, || {
                    format!(
                        "message {message} waited {waited} for a session while a connection of \
                         account {account} that could {could} it was idle"
                    )
                });
                return;
            }
        }
    }

    /// The connection that has been idle longest and could help a message to
    /// `to`: how, and since when.
    fn idle_beside(
        &self,
        at: Nanos,
        node: NodeNo,
        account: u32,
        to: DestinationNo,
        may_connect: bool,
    ) -> Option<(&'static str, Nanos)> {
        let facts = self.accounts.get(&account)?;
        let all = self.connections.range((node, 0)..=(node, u64::MAX));
        let own = all.map(|(_, it)| it).filter(|it| it.account == account);
        let own = own.filter(|it| it.closes > at);
        let is_at_cap = own.clone().count() as u64 >= u64::from(facts.max);
        let helps = own.filter_map(|it| {
            let idle = it.idle.filter(|idle| *idle <= at)?;
            if facts.is_relay || it.to == to {
                return Some(("serve", idle));
            }
            let queue = self.queues.get(it.to)?;
            let is_spare = is_at_cap && may_connect && queue.messages == 0;
            is_spare.then_some((MAKE_WAY, idle.max(queue.empty_since)))
        });
        helps.min_by_key(|(_, idle)| *idle)
    }
}

impl Observer for WorkConserving {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Connects {
                account,
                is_relay,
                max,
            } => {
                let account = self.accounts.entry(account).or_default();
                (account.is_relay, account.max) = (is_relay, max);
            }
            Trace::FlowTo { flow, destination } => {
                let number = self.number(destination);
                let index = flow as usize;
                if self.flows.len() <= index {
                    self.flows.resize(index + 1, number);
                }
                if let Some(slot) = self.flows.get_mut(index) {
                    *slot = number;
                }
            }
            Trace::Connection {
                node,
                connection,
                change,
            } => self.change(at, (node, connection), change),
            Trace::Accepted { message, flow, .. } => self.accept(at, message, flow),
            Trace::Dispatched { node, message, .. } => {
                self.lacks.remove(&(node, message));
                self.put(at, message, Place::Sent(node));
            }
            Trace::Deferred { message, .. } => self.put(at, message, Place::Queued),
            Trace::Settled { message, .. } => self.put(at, message, Place::Over),
            Trace::Crashed { node } => {
                self.connections.retain(|(owner, _), _| *owner != node);
                self.lacks.retain(|(owner, _), _| *owner != node);
                // What it had on its way is queued again when it is back.
                let lost: Vec<MessageNo> = self.in_flight.iter().copied().collect();
                for message in lost {
                    let place = self.messages.get(message as usize).map(|it| it.place);
                    if place == Some(Place::Sent(node)) {
                        self.put(at, message, Place::Queued);
                    }
                }
            }
            Trace::Gauge { node, .. } => {
                let probe = self.probes.entry(node).or_insert(0);
                let seen = *probe;
                *probe += 1;
                self.lacks
                    .retain(|(owner, _), lack| *owner != node || lack.probe >= seen);
            }
            Trace::LacksSession {
                node,
                message,
                carriers,
            } => self.lacks(at, node, message, carriers),
            _ => {}
        }
    }
}

impl Checker for WorkConserving {
    fn name(&self) -> &'static str {
        "work_conserving"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{accepted, found, ms, sent, settled};
    use super::*;
    use crate::trace::Holdings;
    use outflow_core::message::State;

    const GAUGE: Trace<'static> = Trace::Gauge {
        node: 0,
        holds: Holdings {
            heads: 0,
            flows: 0,
            tenants: 0,
            lanes: 0,
            limits: 0,
            in_flight: 0,
            sessions: 0,
            queued: 0,
        },
    };

    /// One account with one connection to the destination of flow 0, where
    /// message 0 is queued; message 1, of flow 1, goes elsewhere.
    fn checker(is_relay: bool) -> WorkConserving {
        let mut checker = WorkConserving::default();
        let connects = Trace::Connects {
            account: 0,
            is_relay,
            max: 1,
        };
        checker.observe(ms(0), &connects);
        let (a, b) = (Destination::isp("a"), Destination::isp("b"));
        for (flow, destination) in [(0, &a), (1, &b)] {
            checker.observe(ms(0), &Trace::FlowTo { flow, destination });
        }
        checker.observe(ms(0), &accepted(0, 0));
        checker.observe(ms(0), &accepted(1, 1));
        let opened = ConnectionChange::Opened {
            account: 0,
            destination: &a,
            ready: ms(100),
        };
        connection(&mut checker, 0, opened);
        checker
    }

    fn connection(checker: &mut WorkConserving, at: u64, change: ConnectionChange<'_>) {
        let trace = Trace::Connection {
            node: 0,
            connection: 7,
            change,
        };
        checker.observe(ms(at), &trace);
    }

    /// Message 1 lacks a session at every probe of this time.
    fn lacks(checker: &mut WorkConserving, from: u64, to: u64, may_connect: bool) {
        for at in (from..to).step_by(100) {
            checker.observe(ms(at), &GAUGE);
            let lacks = Trace::LacksSession {
                node: 0,
                message: 1,
                carriers: &[(0, may_connect)],
            };
            checker.observe(ms(at), &lacks);
        }
    }

    #[test]
    fn a_connection_of_a_relay_that_is_idle_is_found() {
        let mut checker = checker(true);
        lacks(&mut checker, 100, 3_000, false);
        let found = found(&mut checker, ms(9_000));
        let wanted = "message 1 waited 1.3s for a session while a connection of account 0 that \
                      could serve it was idle";
        assert!(found[0].starts_with(wanted), "{found:?}");
    }

    #[test]
    fn a_connection_that_is_busy_is_none() {
        let mut checker = checker(true);
        for at in (0..3_000).step_by(500) {
            connection(&mut checker, at + 100, ConnectionChange::Busy);
            lacks(&mut checker, at + 100, at + 500, true);
            connection(&mut checker, at + 500, ConnectionChange::Idle);
        }
        assert_eq!(found(&mut checker, ms(9_000)), Vec::<String>::new());
    }

    #[test]
    fn a_connection_makes_way_once_nothing_is_queued_where_it_leads() {
        let mut checker = checker(false);
        lacks(&mut checker, 100, 3_000, true);
        assert_eq!(found(&mut checker, ms(3_000)), Vec::<String>::new());
        checker.observe(ms(3_000), &sent(0, 1, &[]));
        checker.observe(ms(3_000), &settled(0, State::Delivered));
        lacks(&mut checker, 3_000, 3_900, true);
        assert_eq!(found(&mut checker, ms(3_900)), Vec::<String>::new());
        // No account could use it: it may not connect.
        lacks(&mut checker, 3_900, 6_000, false);
        assert_eq!(found(&mut checker, ms(6_000)), Vec::<String>::new());
        lacks(&mut checker, 6_000, 6_100, true);
        let found = found(&mut checker, ms(9_000));
        assert!(found[0].contains("could make way for it"), "{found:?}");
    }

    #[test]
    fn time_in_which_nobody_may_connect_does_not_count() {
        let mut checker = checker(false);
        checker.observe(ms(200), &sent(0, 1, &[]));
        checker.observe(ms(200), &settled(0, State::Delivered));
        for at in (300..6_000).step_by(1_000) {
            lacks(&mut checker, at, at + 900, false);
            lacks(&mut checker, at + 900, at + 1_000, true);
        }
        assert_eq!(found(&mut checker, ms(6_300)), Vec::<String>::new());
        // In sum it does.
        for at in (6_300..20_300).step_by(1_000) {
            lacks(&mut checker, at, at + 500, false);
            lacks(&mut checker, at + 500, at + 1_000, true);
        }
        assert!(!found(&mut checker, ms(30_000)).is_empty());
    }

    #[test]
    fn nothing_is_concluded_from_probes_that_are_far_apart() {
        let mut checker = checker(true);
        for at in (100..60_000).step_by(10_000) {
            lacks(&mut checker, at, at + 100, true);
        }
        assert_eq!(found(&mut checker, ms(60_000)), Vec::<String>::new());
    }

    #[test]
    fn a_message_that_lacks_a_session_only_now_and_then_is_silent() {
        let mut checker = checker(true);
        for at in (100..9_000).step_by(300) {
            lacks(&mut checker, at, at + 100, true);
            checker.observe(ms(at + 100), &GAUGE);
            checker.observe(ms(at + 200), &GAUGE);
        }
        assert_eq!(found(&mut checker, ms(9_000)), Vec::<String>::new());
    }
}
