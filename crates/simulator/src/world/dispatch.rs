//! What a node hands to its transport, and how the far end answers.

use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::handle::{FlowId, SessionRef};
use outflow_core::message::{Recipient, Seq};
use outflow_core::name::Name;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Nanos, Now};
use outflow_ports::parcel::ParcelRef;

use super::player::{Attempt, Wire};
use super::script::Happening;
use super::transport::Handed;
use super::{World, content};
use crate::network;
use crate::trace::{Answered, ConnectionChange, NodeNo, Observer, Trace, Violation};

impl<O: Observer> World<'_, O> {
    /// Carries out what a node handed over in its last turn.
    pub(super) fn handed(&mut self, number: usize, now: &Now) {
        let handed = self
            .players
            .get_mut(number)
            .and_then(|player| player.node.as_mut())
            .map(|node| node.ports_mut().transport.take_handed())
            .unwrap_or_default();
        for work in handed {
            match work {
                Handed::Open {
                    session,
                    account,
                    destination,
                } => {
                    self.open(number, session, &account, &destination);
                }
                Handed::Close { session } => self.close(number, session),
                Handed::Deliver {
                    delivery,
                    parcel,
                    account,
                    destination,
                } => {
                    self.judge_parcel(number, delivery.head.seq, parcel.as_ref());
                    self.deliver(number, now, delivery, &account, &destination);
                }
            }
        }
    }

    /// The network that takes what an account sends to a destination: its relay,
    /// or whoever stands for the destination.
    fn network_for(&self, account: &Name, to: &Destination) -> Option<usize> {
        let relay = self.relays.get(account).copied();
        relay.or_else(|| self.scenario.network_of(to))
    }

    fn open(&mut self, number: usize, session: SessionRef, name: &Name, to: &Destination) {
        let account = self.cast.account(name);
        let Some(network) = self.network_for(name, to) else {
            self.tell(&Trace::ConnectFailed { account });
            self.arrive(
                number,
                Nanos::from_millis(1),
                Event::SessionClosed { session },
            );
            return;
        };
        let Some(far_end) = self.networks.get_mut(network) else {
            return;
        };
        let answer = far_end.connect(self.now, account);
        match answer.result {
            Ok(no) => {
                if let Some(player) = self.players.get_mut(number) {
                    player.wires.insert(
                        session,
                        Wire {
                            network,
                            session: no,
                        },
                    );
                }
                let opened = ConnectionChange::Opened {
                    account,
                    destination: to,
                    ready: self.now + answer.after,
                };
                self.tell_connection(number, session, opened);
                self.arrive(number, answer.after, Event::SessionReady { session });
                if self.random.chance(self.scenario.faults.transport.broken.0) {
                    let breaks = answer.after + self.random.exponential(Nanos::from_secs(5));
                    let at = self.now + breaks;
                    self.tell_connection(number, session, ConnectionChange::Closed { at });
                    self.arrive(number, breaks, Event::SessionClosed { session });
                }
            }
            Err(reply) => {
                self.tell(&Trace::ConnectFailed { account });
                let reply = Box::new(reply);
                let event = Event::SessionRefused { session, reply };
                self.arrive(number, answer.after, event);
            }
        }
    }

    /// Tells what became of a connection.
    pub(super) fn tell_connection(
        &mut self,
        number: usize,
        session: SessionRef,
        change: ConnectionChange<'_>,
    ) {
        let (pool, place) = (u64::from(session.pool.0), u64::from(session.session.0));
        self.tell(&Trace::Connection {
            node: number as NodeNo,
            connection: pool << 32 | place,
            change,
        });
    }

    fn close(&mut self, number: usize, session: SessionRef) {
        let at = self.now;
        self.tell_connection(number, session, ConnectionChange::Closed { at });
        let wire = self
            .players
            .get_mut(number)
            .and_then(|player| player.wires.remove(&session));
        if let Some(wire) = wire
            && let Some(network) = self.networks.get_mut(wire.network)
        {
            network.disconnect(wire.session);
        }
    }

    /// What is delivered must be what was submitted.
    fn judge_parcel(&mut self, number: usize, seq: Seq, parcel: Option<&ParcelRef>) {
        let wanted = self.message_of(number, seq);
        let what = match parcel.map(ParcelRef::read) {
            Some(Ok(parcel)) if content::number(&parcel) == wanted && wanted.is_some() => return,
            Some(Ok(_)) => format!("message {wanted:?} is delivered with another content"),
            Some(Err(error)) => format!("message {wanted:?}: {error}"),
            None => format!("message {wanted:?} has no content"),
        };
        self.broken.push(Violation {
            at: self.now,
            checker: "content",
            what,
        });
    }

    fn deliver(
        &mut self,
        number: usize,
        now: &Now,
        delivery: Delivery,
        name: &Name,
        to: &Destination,
    ) {
        let Some(message) = self.message_of(number, delivery.head.seq) else {
            return;
        };
        self.accepted(number, message);
        let account = self.cast.account(name);
        self.judge_sent(message, account);
        let Some(fate) = self.fates.get_mut(message as usize) else {
            return;
        };
        fate.attempts += 1;
        let (flow, attempt, recipient) = (fate.flow, fate.attempts, fate.recipient);
        let key = Recipient(recipient);
        let limits = self
            .cast
            .needs(self.now, flow, account, key, &mut self.observer);
        let (node, cost) = (number as NodeNo, delivery.head.cost);
        let trace = Trace::Dispatched {
            node,
            message,
            attempt,
            account,
            cost,
            limits: &limits,
        };
        self.tell(&trace);
        let connects = self.players.get(number);
        let connects = connects.is_some_and(|it| it.wires.contains_key(&delivery.session));
        if connects {
            self.tell_connection(number, delivery.session, ConnectionChange::Busy);
        }
        let network = self.network_for(name, to);
        let answer = self.ask(number, &delivery, account, recipient, network);
        if answer.taken {
            self.tell(&Trace::Taken { message, attempt });
        }
        if let Some(after) = answer.late_bounce {
            let at = self.now + answer.after + after;
            let (flow, seq) = (delivery.flow, delivery.head.seq);
            self.script.at(
                at,
                Happening::Bounce {
                    node,
                    flow,
                    seq,
                    message,
                },
            );
        }
        let meaning = meaning(&answer.reply);
        let faults = self.scenario.faults.transport;
        let lost = self.random.chance(faults.lost.0);
        let doubled = self.random.chance(faults.doubled.0);
        let echo = self.random.exponential(Nanos::from_millis(500));
        let Some(player) = self.players.get_mut(number) else {
            return;
        };
        let permit = delivery.permit;
        player.attempts.insert(
            permit,
            Attempt {
                message,
                attempt,
                answer: meaning,
                asks: asked(&answer.reply).map(|wait| (account, wait)),
                connection: connects.then_some((delivery.session, answer.closes_session)),
            },
        );
        if lost {
            player.turn_at = player.turn_at.min(self.now + super::DELIVERY_DEADLINE);
            return;
        }
        let at = self.now + answer.after;
        let session_lives = !answer.closes_session;
        let event = || Event::Replied {
            permit,
            reply: answer.reply.clone(),
            session_lives,
        };
        player.answer(at, permit, event());
        if doubled {
            player.arrive(at + echo, event());
        }
        debug_assert!(now.mono <= player.clock.mono(at));
    }

    /// Asks the far end, over the session's wire or, for a request slot, over
    /// one that is opened for this message alone.
    fn ask(
        &mut self,
        number: usize,
        delivery: &Delivery,
        account: u32,
        recipient: u64,
        network: Option<usize>,
    ) -> network::Answer {
        let wire = self
            .players
            .get(number)
            .and_then(|p| p.wires.get(&delivery.session))
            .copied();
        let cost = delivery.head.cost;
        if let Some(wire) = wire
            && let Some(far_end) = self.networks.get_mut(wire.network)
        {
            let facts = network::Delivery {
                session: wire.session,
                recipient,
                cost,
            };
            let answer = far_end.deliver(self.now, facts);
            if answer.closes_session
                && let Some(player) = self.players.get_mut(number)
            {
                player.wires.remove(&delivery.session);
            }
            return answer;
        }
        let far_end = network.and_then(|it| self.networks.get_mut(it));
        let Some(far_end) = far_end else {
            return failed(Nanos::from_millis(1), "no route to host");
        };
        let connected = far_end.connect(self.now, account);
        match connected.result {
            Ok(session) => {
                let facts = network::Delivery {
                    session,
                    recipient,
                    cost,
                };
                let mut answer = far_end.deliver(self.now, facts);
                far_end.disconnect(session);
                answer.after = answer.after + connected.after;
                answer.closes_session = false;
                answer
            }
            Err(reply) => network::Answer {
                reply,
                ..failed(connected.after, "")
            },
        }
    }

    fn arrive(&mut self, number: usize, after: Nanos, event: Event) {
        let at = self.now + after;
        if let Some(player) = self.players.get_mut(number) {
            player.arrive(at, event);
        }
    }

    /// A bounce comes back for a message that was accepted.
    pub(super) fn bounce(&mut self, number: usize, flow: FlowId, seq: Seq) {
        let reply = Reply::said(Stage::Data, 550, "5.1.1 user unknown");
        if let Some(player) = self.players.get_mut(number)
            && let Some(node) = &mut player.node
        {
            node.post(Event::Feedback { flow, seq, reply });
            player.turn_at = self.now.max(player.frozen_until);
        }
    }
}

fn failed(after: Nanos, text: &str) -> network::Answer {
    network::Answer {
        after,
        reply: Reply::Network {
            stage: Stage::Connect,
            text: text.to_owned().into(),
        },
        taken: false,
        closes_session: false,
        late_bounce: None,
    }
}

/// How long an answer asks to wait.
fn asked(reply: &Reply) -> Option<Nanos> {
    match reply {
        Reply::Said { retry_after, .. } => *retry_after,
        Reply::Network { .. } | Reply::Uncertain | Reply::Damaged { .. } => None,
    }
}

/// What an answer amounts to, as its digits read.
fn meaning(reply: &Reply) -> Answered {
    match reply {
        Reply::Said { code, .. } => match code {
            200..=299 => Answered::Accepted,
            421 | 429 | 450 | 451 | 454 => Answered::Throttled,
            400..=499 => Answered::Deferred,
            _ => Answered::Refused,
        },
        Reply::Network { .. } | Reply::Damaged { .. } => Answered::Failed,
        Reply::Uncertain => Answered::Uncertain,
    }
}
