//! One turn after another: completions in, engine steps, actions out.

mod screened;

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::classify::Rules;
use outflow_core::engine::action::{Action, Alert};
use outflow_core::engine::command::Command;
use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::policy::set::Policies;
use outflow_core::time::{Mono, Now};
use outflow_ports::intake::{Given, Refused, Submission, Taken};
use outflow_ports::ledger::{Ledger, LedgerWork};
use outflow_ports::resolver::Resolver;
use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};
use outflow_ports::suppression::Screen;
use outflow_ports::transport::{Transport, TransportWork};
use outflow_telemetry::sink::Sink;

use crate::intake::{self, Admitted, PENDING_MAX, RefusedPlaces};
use crate::observe::Observer;
use crate::screening::Screening;
use crate::shutdown::Phase;

/// Engine steps in one turn; the rest waits for the next.
const STEPS_MAX: usize = 4_096;

/// Everything a node is connected to.
#[derive(Debug)]
pub struct Ports<S, L, T, R> {
    /// The durable queue.
    pub store: S,
    /// The keeper of shared limits.
    pub ledger: L,
    /// The carrier of messages.
    pub transport: T,
    /// The finder of destinations.
    pub resolver: R,
}

/// What became of a batch of submissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which batch.
    pub batch: BatchId,
    /// What its messages became once they are durable; none if that failed.
    pub given: Option<Vec<Taken>>,
}

/// A node: the engine and its ports.
#[derive(Debug)]
pub struct Node<S, L, T, R> {
    engine: Engine,
    ports: Ports<S, L, T, R>,
    inbox: VecDeque<Event>,
    actions: Vec<Action>,
    stored: Vec<StoreDone>,
    arrived: Vec<Event>,
    answers: VecDeque<Answer>,
    alerts: VecDeque<Alert>,
    batches: u64,
    pending: usize,
    pending_sizes: VecDeque<(BatchId, usize)>,
    refused_places: RefusedPlaces,
    phase: Phase,
    observer: Observer,
    screening: Screening,
}

impl<S: Store, L: Ledger, T: Transport, R: Resolver> Node<S, L, T, R> {
    /// Starts a node: takes stock of the store and goes on from there.
    pub fn start(
        now: &Now,
        settings: Settings,
        policies: Policies,
        ports: Ports<S, L, T, R>,
    ) -> Self {
        Self::begin(now, settings, policies, ports, Observer::default())
    }

    /// The same, and tells `sink` of everything from then on.
    pub fn start_observed(
        now: &Now,
        settings: Settings,
        policies: Policies,
        ports: Ports<S, L, T, R>,
        sink: Arc<dyn Sink>,
    ) -> Self {
        Self::begin(now, settings, policies, ports, Observer::new(sink))
    }

    fn begin(
        now: &Now,
        settings: Settings,
        policies: Policies,
        mut ports: Ports<S, L, T, R>,
        observer: Observer,
    ) -> Self {
        let recovered = ports.store.recover(now);
        observer.started(&recovered);
        for (key, known) in &recovered.limits {
            let (since, downtime) = (known.reserved_since, recovered.downtime);
            if let Some(recalled) = known.saved.recalled(key, since, downtime) {
                ports.ledger.submit(now, LedgerWork::Recall(recalled));
            }
        }
        let start = if recovered.fresh {
            Start::Fresh
        } else {
            Start::Again {
                limits: recovered.limits,
                counts_lost_at: recovered.counts_lost_at,
                holds: recovered.holds,
                adapted: recovered.adapted,
                downtime: recovered.downtime,
            }
        };
        let mut engine = Engine::new(settings, policies, start, now);
        let mut inbox = VecDeque::new();
        let mut actions = Vec::new();
        for (flow, key, ready) in recovered.flows {
            engine.adopt_flow(now, flow, key, &mut actions);
            if ready > 0 {
                inbox.push_back(Event::Due { flow, count: ready });
            }
        }
        engine.reserve_flows(recovered.reserved);
        let mut node = Self {
            engine,
            ports,
            inbox,
            actions: Vec::new(),
            stored: Vec::new(),
            arrived: Vec::new(),
            answers: VecDeque::new(),
            alerts: VecDeque::new(),
            batches: 0,
            pending: 0,
            pending_sizes: VecDeque::new(),
            refused_places: RefusedPlaces::default(),
            phase: Phase::Running,
            observer,
            screening: Screening::default(),
        };
        node.carry_out(now, &mut actions);
        node
    }

    /// Reads replies by these rules from now on.
    pub fn set_rules(&mut self, rules: Rules) {
        self.engine.set_rules(rules);
    }

    /// Asks this before anything is sent from now on.
    pub fn set_screen(&mut self, screen: Arc<dyn Screen>) {
        self.screening = Screening::by(screen);
    }

    /// Takes messages in. They are accepted once an [`Answer`] says so.
    pub fn submit(&mut self, now: &Now, batch: Vec<Submission>) -> Result<BatchId, Refused> {
        self.check_intake(batch.len())?;
        Ok(self.take_in(now, batch))
    }

    /// The same, but all of them or none.
    pub fn submit_whole(&mut self, now: &Now, batch: Vec<Submission>) -> Result<BatchId, Refused> {
        self.check_intake(batch.len())?;
        if let Err(why) = intake::admits_all(&self.engine, &batch) {
            self.batches += 1;
            let id = BatchId(self.batches);
            self.observer.crowded(batch.len());
            let given = Some(vec![Err(why); batch.len()]);
            self.answers.push_back(Answer { batch: id, given });
            return Ok(id);
        }
        Ok(self.take_in(now, batch))
    }

    fn check_intake(&self, count: usize) -> Result<(), Refused> {
        let refused = if self.phase != Phase::Running {
            Some(Refused::Closing)
        } else {
            (self.pending + count > PENDING_MAX).then_some(Refused::Busy)
        };
        match refused {
            Some(refused) => {
                self.observer.refused(refused, count);
                Err(refused)
            }
            None => Ok(()),
        }
    }

    fn take_in(&mut self, now: &Now, mut batch: Vec<Submission>) -> BatchId {
        self.batches += 1;
        let id = BatchId(self.batches);
        let mut actions = std::mem::take(&mut self.actions);
        let Admitted { flows, refused } =
            intake::admit(&mut self.engine, now, &mut batch, &mut actions);
        if !refused.is_empty() {
            self.observer.crowded(refused.len());
            self.refused_places.keep(id, refused);
        }
        if batch.is_empty() {
            self.actions = actions;
            let given = Some(self.refused_places.together(id, Vec::new()));
            self.answers.push_back(Answer { batch: id, given });
            return id;
        }
        self.pending += batch.len();
        self.pending_sizes.push_back((id, batch.len()));
        self.observer.submitted(id, &batch);
        self.screening.submitted(id, &batch);
        let messages = batch
            .into_iter()
            .zip(flows)
            .map(|(submission, flow)| NewMessage {
                flow,
                idempotency_key: submission.idempotency_key,
                not_before: submission.not_before,
                expires_at: submission.expires_at,
                recipient: submission.recipient,
                cost: submission.cost,
                envelope: submission.envelope,
                body: submission.body,
            })
            .collect();
        self.carry_out(now, &mut actions);
        self.actions = actions;
        self.ports.store.submit(
            now,
            StoreWork::Accept {
                batch: id,
                messages,
            },
        );
        id
    }

    /// Puts an event before the engine at the next turn.
    pub fn post(&mut self, event: Event) {
        self.inbox.push_back(event);
    }

    /// The same, before all others.
    pub fn post_first(&mut self, event: Event) {
        self.inbox.push_front(event);
    }

    /// How many more messages may be on their way to the disk.
    pub(crate) fn room(&self) -> usize {
        PENDING_MAX.saturating_sub(self.pending)
    }

    /// One turn. When the next one is due.
    pub fn turn(&mut self, now: &Now) -> Mono {
        if self.screening.next_review() <= now.mono {
            self.review(now);
        }
        self.collect(now);
        let mut actions = std::mem::take(&mut self.actions);
        for _ in 0..STEPS_MAX {
            let event = match self.inbox.pop_front() {
                Some(event) => event,
                None if self.engine.next_wake() <= now.mono => Event::Woke,
                None => break,
            };
            self.observer.before(now, &event);
            self.engine.step(now, event, &mut actions);
            if self.carry_out(now, &mut actions) {
                self.collect(now);
            }
        }
        self.actions = actions;
        if self.phase == Phase::Draining && self.pending == 0 && self.engine.is_quiet() {
            self.phase = Phase::Done;
            self.observer.stopped();
        }
        self.next_turn()
    }

    /// When a turn is due if nothing arrives from outside.
    pub fn next_turn(&self) -> Mono {
        if !self.inbox.is_empty() {
            return Mono(0);
        }
        self.engine
            .next_wake()
            .min(self.screening.next_review())
            .min(self.ports.store.next_completion())
            .min(self.ports.ledger.next_completion())
            .min(self.ports.transport.next_completion())
            .min(self.ports.resolver.next_completion())
    }

    /// Stops intake and new sends; [`Node::phase`] says when all is settled.
    pub fn shut_down(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
            self.observer.stopping();
            self.inbox.push_back(Event::Command(Command::Drain));
        }
    }

    /// Where the node stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The next answer to a batch of submissions.
    pub fn next_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// The next thing a person should know.
    pub fn next_alert(&mut self) -> Option<Alert> {
        self.alerts.pop_front()
    }

    /// The engine, for questions.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn observe(&mut self, now: &Now, event: &Event) {
        self.observer.before(now, event);
    }

    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The ports, for questions.
    pub fn ports(&self) -> &Ports<S, L, T, R> {
        &self.ports
    }

    /// The ports, for those who drive them from outside: tests, simulations.
    pub fn ports_mut(&mut self) -> &mut Ports<S, L, T, R> {
        &mut self.ports
    }

    /// Takes the node apart: what is left when it crashes.
    pub fn into_ports(self) -> Ports<S, L, T, R> {
        self.ports
    }

    /// Brings what the ports have done into the inbox.
    fn collect(&mut self, now: &Now) {
        let mut stored = std::mem::take(&mut self.stored);
        self.ports.store.complete(now, &mut stored);
        for done in stored.drain(..) {
            match done {
                StoreDone::Event(event) => {
                    self.screen(&event);
                    self.inbox.push_back(event);
                }
                StoreDone::Accepted { batch, given } => self.answer(batch, Some(given)),
                StoreDone::AcceptFailed { batch } => self.answer(batch, None),
            }
        }
        self.stored = stored;
        self.ports.transport.complete(now, &mut self.arrived);
        self.ports.ledger.complete(now, &mut self.arrived);
        self.ports.resolver.complete(now, &mut self.arrived);
        self.inbox.extend(self.arrived.drain(..));
    }

    fn answer(&mut self, batch: BatchId, given: Option<Vec<Given>>) {
        if let Some(place) = self.pending_sizes.iter().position(|&(id, _)| id == batch)
            && let Some((_, size)) = self.pending_sizes.remove(place)
        {
            self.pending -= size;
        }
        self.observer.answered(batch, given.as_deref());
        self.screen_batch(batch, given.as_deref());
        let given = match given {
            Some(given) => Some(self.refused_places.together(batch, given)),
            None => {
                self.refused_places.forget(batch);
                None
            }
        };
        self.answers.push_back(Answer { batch, given });
    }

    /// Submits what the engine asked for. Whether an answer may be there at once.
    pub(crate) fn carry_out(&mut self, now: &Now, actions: &mut Vec<Action>) -> bool {
        let mut paged = false;
        for action in actions.drain(..) {
            match action {
                Action::Page { flow, max } => {
                    self.ports.store.submit(now, StoreWork::Page { flow, max });
                    paged = true;
                }
                Action::Append { no, record } => {
                    let (engine, store) = (&self.engine, &self.ports.store);
                    self.observer.record(now, engine, store, &record);
                    self.ports
                        .store
                        .submit(now, StoreWork::Append { no, record });
                }
                Action::OpenFlow { flow, key } => {
                    self.observer.opened(flow);
                    self.ports
                        .store
                        .submit(now, StoreWork::OpenFlow { flow, key });
                }
                Action::CloseFlow { flow, request } => {
                    self.observer.opened(flow);
                    self.ports
                        .store
                        .submit(now, StoreWork::CloseFlow { flow, request });
                }
                Action::Lease(request) => {
                    let work = LedgerWork::Lease(request);
                    self.ports.ledger.submit(now, work);
                }
                Action::GiveBack(back) => {
                    let work = LedgerWork::GiveBack(back);
                    self.ports.ledger.submit(now, work);
                }
                Action::PauseLimit { key, lasts } => {
                    let work = LedgerWork::Pause { key, lasts };
                    self.ports.ledger.submit(now, work);
                }
                Action::OpenSession {
                    session,
                    account,
                    lane,
                } => {
                    let destination = self.engine.lane_destination(lane);
                    if let Some(account) = self.engine.account(account) {
                        let work = TransportWork::Open {
                            session,
                            account,
                            destination,
                        };
                        self.ports.transport.submit(now, work);
                    }
                }
                Action::CloseSession { session } => {
                    self.ports
                        .transport
                        .submit(now, TransportWork::Close { session });
                }
                Action::Deliver(delivery) => {
                    self.observer.delivering(now, &delivery);
                    let flow = self.engine.flow_key(delivery.flow);
                    let account = self.engine.account(delivery.account);
                    if let (Some(flow), Some(account)) = (flow, account) {
                        let destination = &flow.destination;
                        let work = TransportWork::Deliver {
                            delivery,
                            parcel: self.ports.store.parcel(delivery.head.seq),
                            account,
                            destination,
                        };
                        self.ports.transport.submit(now, work);
                    }
                }
                Action::Suppress { flow, seq, error } => {
                    let (engine, store) = (&self.engine, &self.ports.store);
                    self.screening.bounced(engine, store, flow, seq, *error);
                }
                Action::Resolve { domain } => self.ports.resolver.submit(now, domain),
                Action::Alert { alert } => {
                    self.observer.alert(now, &alert);
                    self.alerts.push_back(alert);
                }
            }
        }
        paged
    }
}
