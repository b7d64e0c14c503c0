//! Tells what happens of what passes through the node anyway.
//!
//! A message's way is put together from four moments: it is submitted, handed
//! to the transport, answered, and the engine's record says what the answer
//! meant. Between them a few words are kept, in the order of what is to come,
//! so that nothing is searched. A node that nobody listens to keeps nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::class::Class;
use outflow_core::engine::Engine;
use outflow_core::engine::action::{Alert, Delivery, Record};
use outflow_core::engine::command::Command;
use outflow_core::engine::event::Event as EngineEvent;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId, PermitId};
use outflow_core::message::{Channel, Seq, State};
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::{Enhanced, Reply};
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::intake::{Given, Refused, Submission};
use outflow_ports::store::{BatchId, Recovered, Store};
use outflow_telemetry::catalogue::{
    AttemptOutcome, Attempted, Event, IntakeRefusal, Settled, Started, Sweep,
};
use outflow_telemetry::sink::{Sink, Slot};

/// A delivery without an answer.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    generation: u32,
    seq: Seq,
    accepted_at: Wall,
    sent_at: Mono,
    waited: Nanos,
    attempt: u16,
}

/// A delivery whose answer the engine is about to judge.
#[derive(Clone, Copy, Debug)]
struct Answered {
    delivery: InFlight,
    duration: Nanos,
    code: Option<u16>,
    enhanced: Option<Enhanced>,
    uncertain: bool,
}

/// Listens to a node for a sink.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    sink: Option<Arc<dyn Sink>>,
    /// Where each flow's destination is counted.
    slots: Vec<Option<Slot>>,
    /// By the index of permits.
    in_flight: Vec<Option<InFlight>>,
    /// In the order of their records.
    answered: VecDeque<Answered>,
    /// Batches on their way to the disk, and the kind of each of their messages.
    batches: VecDeque<(BatchId, usize)>,
    kinds: VecDeque<(Channel, Class)>,
    committed: AppendNo,
    /// Records to come that were told of before a commit failed.
    repeats: u64,
}

impl Observer {
    pub fn new(sink: Arc<dyn Sink>) -> Self {
        Self {
            sink: Some(sink),
            ..Self::default()
        }
    }

    fn emit(&self, event: Event<'_>) {
        if let Some(sink) = &self.sink {
            sink.emit(&event);
        }
    }

    pub fn started(&self, recovered: &Recovered) {
        let ready = recovered.flows.iter().map(|(.., ready)| u64::from(*ready));
        self.emit(Event::Started(Started {
            fresh: recovered.fresh,
            flows: recovered.flows.len() as u64,
            ready: ready.sum(),
            limits: recovered.limits.len() as u64,
            downtime: recovered.downtime,
        }));
    }

    pub fn stopping(&self) {
        self.emit(Event::Stopping);
    }

    pub fn stopped(&self) {
        self.emit(Event::Stopped);
    }

    pub fn refused(&self, reason: Refused, count: usize) {
        self.not_taken(
            match reason {
                Refused::Busy => IntakeRefusal::Busy,
                Refused::Closing => IntakeRefusal::Closing,
                Refused::NotStored => IntakeRefusal::NotStored,
            },
            count,
        );
    }

    /// Messages would have opened too many flows.
    pub fn crowded(&self, count: usize) {
        self.not_taken(IntakeRefusal::TooManyFlows, count);
    }

    fn not_taken(&self, reason: IntakeRefusal, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.emit(Event::IntakeRefused { reason, count });
    }

    pub fn submitted(&mut self, id: BatchId, batch: &[Submission]) {
        if self.sink.is_some() {
            self.batches.push_back((id, batch.len()));
            let keys = batch.iter().map(|submission| &submission.key);
            self.kinds.extend(keys.map(|key| (key.channel, key.class)));
        }
    }

    /// A batch became durable, or not.
    pub fn answered(&mut self, id: BatchId, given: Option<&[Given]>) {
        let Some(at) = self.batches.iter().position(|&(batch, _)| batch == id) else {
            return;
        };
        // Batches are answered in order, so this is the first, as a rule.
        let start: usize = self.batches.iter().take(at).map(|(_, size)| size).sum();
        let Some((_, size)) = self.batches.remove(at) else {
            return;
        };
        let mut counts = [[0_u32; Class::COUNT]; Channel::ALL.len()];
        for (at, (channel, class)) in self.kinds.drain(start..start + size).enumerate() {
            let is_new = given
                .and_then(|given| given.get(at))
                .is_some_and(|it| !it.known);
            let count = counts.get_mut(channel as usize);
            if is_new && let Some(count) = count.and_then(|it| it.get_mut(class.index())) {
                *count += 1;
            }
        }
        if given.is_none() {
            self.refused(Refused::NotStored, size);
            return;
        }
        for (channel, counts) in Channel::ALL.into_iter().zip(counts) {
            for (class, count) in Class::ALL.into_iter().zip(counts) {
                if count > 0 {
                    self.emit(Event::Accepted {
                        channel,
                        class,
                        count,
                    });
                }
            }
        }
    }

    /// The engine is about to hear of this.
    pub fn before(&mut self, now: &Now, event: &EngineEvent) {
        if self.sink.is_none() {
            return;
        }
        match event {
            EngineEvent::Replied { permit, reply, .. } => self.ended(now, *permit, reply),
            EngineEvent::Committed { through } => self.committed = self.committed.max(*through),
            EngineEvent::CommitFailed { through } => {
                // The engine appends them again, before anything new.
                self.repeats += through.0.saturating_sub(self.committed.0);
                self.committed = self.committed.max(*through);
            }
            EngineEvent::PolicyChanged { .. } => self.emit(Event::PolicyChanged),
            EngineEvent::AccountChanged { account } => self.emit(Event::AccountChanged {
                account: account.id.as_str(),
            }),
            EngineEvent::AccountRemoved { account } => self.emit(Event::AccountRemoved {
                account: account.as_str(),
            }),
            EngineEvent::Command(command) => self.command(command),
            _ => {}
        }
    }

    fn command(&self, command: &Command) {
        let (action, matches) = match command {
            Command::Pause { id, matches, until } => {
                let (pause, until) = (id.0, *until);
                return self.emit(Event::Paused {
                    pause,
                    matches,
                    until,
                });
            }
            Command::Resume { id } => return self.emit(Event::Resumed { pause: id.0 }),
            Command::CancelAll { matches, .. } => (Sweep::Cancel, matches),
            Command::RetryAll { matches, .. } => (Sweep::Retry, matches),
            Command::MoveAll { matches, .. } => (Sweep::Move, matches),
            // What becomes of one message is told by its record.
            Command::Cancel { .. }
            | Command::Suppress { .. }
            | Command::Retry { .. }
            | Command::Tune { .. }
            | Command::Drain => return,
        };
        self.emit(Event::Swept { action, matches });
    }

    /// A message is handed to the transport.
    pub fn delivering(&mut self, now: &Now, delivery: &Delivery) {
        if self.sink.is_none() {
            return;
        }
        let index = delivery.permit.index as usize;
        if self.in_flight.len() <= index {
            self.in_flight.resize(index + 1, None);
        }
        if let Some(place) = self.in_flight.get_mut(index) {
            let head = &delivery.head;
            *place = Some(InFlight {
                generation: delivery.permit.generation,
                seq: head.seq,
                accepted_at: head.accepted_at,
                sent_at: now.mono,
                waited: now.wall.since(head.accepted_at),
                attempt: head.attempts.saturating_add(1),
            });
        }
    }

    pub fn alert(&mut self, now: &Now, alert: &Alert) {
        if let Alert::WorkerLost { permit } = alert {
            self.ended(now, *permit, &Reply::Uncertain);
        }
        self.emit(Event::Alert(alert));
    }

    /// A delivery was answered. As for the engine, a second answer does not count.
    fn ended(&mut self, now: &Now, permit: PermitId, reply: &Reply) {
        let Some(place) = self.in_flight.get_mut(permit.index as usize) else {
            return;
        };
        let Some(delivery) = place.take_if(|it| it.generation == permit.generation) else {
            return;
        };
        let (code, enhanced) = match reply {
            Reply::Said { code, enhanced, .. } => (Some(*code), *enhanced),
            Reply::Network { .. } | Reply::Uncertain | Reply::Damaged { .. } => (None, None),
        };
        self.answered.push_back(Answered {
            delivery,
            duration: now.mono.since(delivery.sent_at),
            code,
            enhanced,
            uncertain: matches!(reply, Reply::Uncertain),
        });
    }

    /// The engine says what becomes of a message.
    pub fn record(&mut self, now: &Now, engine: &Engine, store: &impl Store, record: &Record) {
        if self.sink.is_none() {
            return;
        }
        if self.repeats > 0 {
            self.repeats -= 1;
            return;
        }
        let (flow, seq) = match record {
            Record::Deferral { flow, seq, .. }
            | Record::Settlement { flow, seq, .. }
            | Record::Dead { flow, seq, .. }
            | Record::Feedback { flow, seq, .. } => (*flow, *seq),
            Record::Cancelled { .. }
            | Record::Moved { .. }
            | Record::Hastened { .. }
            | Record::Forgotten { .. }
            | Record::Held { .. }
            | Record::Adapted { .. }
            | Record::Reservation { .. } => return,
        };
        let Some(key) = engine.flow_key(flow) else {
            return;
        };
        let answered = match record {
            Record::Feedback { .. } => None,
            _ => self.take_answered(seq),
        };
        let accepted_at = match &answered {
            Some(answered) => Some(answered.delivery.accepted_at),
            None => store.find(seq).map(|found| found.head.accepted_at),
        };
        let message = accepted_at.map(|at| MessageId::new(at, seq));
        if let Some(answered) = answered {
            let slot = self.slot(flow, key);
            self.emit(attempted(now, key, slot, &answered, record));
        }
        self.emit(match record {
            Record::Deferral { until, attempt, .. } => Event::Deferred {
                message,
                key,
                until: *until,
                attempted: attempt.is_some(),
            },
            Record::Settlement {
                state,
                account,
                error,
                ..
            } => Event::Settled(Settled {
                message,
                key,
                state: *state,
                account: account.as_ref().map(Name::as_str),
                error: error.as_deref(),
                age: accepted_at.map(|at| now.wall.since(at)),
            }),
            Record::Dead {
                account, letter, ..
            } => Event::Died {
                message,
                key,
                account: account.as_ref().map(Name::as_str),
                letter,
            },
            Record::Feedback { error, .. } => Event::Feedback {
                message,
                key,
                error,
            },
            _ => return,
        });
    }

    /// The answer that a record is about. Records come in the order of answers,
    /// so it is the first, if the record is about one at all.
    fn take_answered(&mut self, seq: Seq) -> Option<Answered> {
        let at = self.answered.iter().position(|it| it.delivery.seq == seq)?;
        self.answered.drain(..=at).next_back()
    }

    /// A flow has another name, or none soon.
    pub fn opened(&mut self, flow: FlowId) {
        if let Some(slot) = self.slots.get_mut(flow.index()) {
            *slot = None;
        }
        while self.slots.pop_if(|last| last.is_none()).is_some() {}
    }

    fn slot(&mut self, flow: FlowId, key: &FlowKey) -> Slot {
        if self.slots.len() <= flow.index() {
            self.slots.resize(flow.index() + 1, None);
        }
        let sink = self.sink.as_deref();
        let slot = self.slots.get_mut(flow.index());
        slot.map_or(Slot::OTHER, |slot| {
            *slot.get_or_insert_with(|| sink.map_or(Slot::OTHER, |sink| sink.slot(key)))
        })
    }
}

fn attempted<'a>(
    now: &Now,
    key: &'a FlowKey,
    slot: Slot,
    answered: &Answered,
    record: &'a Record,
) -> Event<'a> {
    let (outcome, account, error): (_, Option<&Name>, Option<&LastError>) = match record {
        Record::Settlement {
            state,
            account,
            error,
            ..
        } => {
            let outcome = match state {
                State::Delivered => AttemptOutcome::Delivered,
                State::Bounced | State::Suppressed => AttemptOutcome::Bounced,
                _ => AttemptOutcome::Deferred,
            };
            (outcome, account.as_ref(), error.as_deref())
        }
        Record::Dead {
            account, letter, ..
        } => (AttemptOutcome::Dead, account.as_ref(), Some(&letter.error)),
        Record::Deferral {
            attempt: Some(attempt),
            ..
        } => (
            AttemptOutcome::Deferred,
            Some(&attempt.account),
            Some(&attempt.error),
        ),
        _ => (AttemptOutcome::Deferred, None, None),
    };
    let delivery = &answered.delivery;
    Event::Attempted(Attempted {
        at: now.wall,
        message: MessageId::new(delivery.accepted_at, delivery.seq),
        key,
        slot,
        account: account.map(Name::as_str),
        attempt: delivery.attempt,
        outcome: if answered.uncertain {
            AttemptOutcome::Uncertain
        } else {
            outcome
        },
        reason: error.map_or(ReplyClass::Accepted, |error| error.class),
        code: answered.code,
        enhanced: answered.enhanced,
        duration: answered.duration,
        waited: delivery.waited,
    })
}
