//! Changes that callers ask for and that have an answer.

use outflow_core::class::Class;
use outflow_core::engine::command::Command;
use outflow_core::engine::event::Event;
use outflow_core::engine::lend::{Lent, Want};
use outflow_core::flow::FlowKey;
use outflow_core::message::{Seq, State};
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::reply::Reply;
use outflow_core::time::Now;
use outflow_ports::control::{Bulk, Touched};
use outflow_ports::ledger::Ledger;
use outflow_ports::resolver::Resolver;
use outflow_ports::store::{Store, StoreWork};
use outflow_ports::transport::Transport;

use crate::node::Node;

impl<S: Store, L: Ledger, T: Transport, R: Resolver> Node<S, L, T, R> {
    /// Withdraws one message, unless it is on its way. The engine hears of it
    /// before anything else can be sent: what is said to be withdrawn is.
    pub fn cancel(&mut self, now: &Now, seq: Seq) -> Touched {
        let Some(found) = self.ports().store.find(seq) else {
            return Touched::Unknown;
        };
        let flow = found.flow;
        match self.message(seq).map(|message| message.state) {
            Some(State::Sending) => Touched::Sending,
            Some(State::Queued | State::Deferred | State::Spilled) => {
                self.step(now, Event::Command(Command::Cancel { flow, seq }));
                Touched::Done
            }
            _ => Touched::Unknown,
        }
    }

    /// Takes an event in at once.
    fn step(&mut self, now: &Now, event: Event) {
        let mut actions = Vec::new();
        self.observe(now, &event);
        self.engine_mut().step(now, event, &mut actions);
        self.carry_out(now, &mut actions);
    }

    /// Tries a deferred message now. One that is queued is tried anyway.
    pub fn retry(&mut self, seq: Seq) -> Touched {
        let Some(found) = self.ports().store.find(seq) else {
            return Touched::Unknown;
        };
        let flow = found.flow;
        match self.message(seq).map(|message| message.state) {
            Some(State::Sending) => Touched::Sending,
            Some(State::Queued) => Touched::Done,
            Some(State::Deferred | State::Spilled) => {
                self.post_first(Event::Command(Command::Retry { flow, seq }));
                Touched::Done
            }
            _ => Touched::Unknown,
        }
    }

    /// Does something with everything that matches and waits, unless it is
    /// only to be counted. How many messages that is at most: some may be sent
    /// or expire before their turn comes.
    pub fn bulk(&mut self, bulk: Bulk, matches: Match, dry_run: bool) -> u64 {
        let engine = self.engine();
        let mut deferred = 0;
        self.ports().store.deferred(&mut |flow, count| {
            let key = engine.flow_key(flow);
            if key.is_some_and(|key| matches.matches_flow(key)) {
                deferred += count;
            }
        });
        let count = match bulk {
            Bulk::Retry => deferred,
            Bulk::Cancel | Bulk::Move { .. } => deferred + engine.waiting(&matches),
        };
        if !dry_run {
            let through = self.ports().store.last_seq();
            let command = match bulk {
                Bulk::Cancel => Command::CancelAll { matches, through },
                Bulk::Retry => Command::RetryAll { matches, through },
                Bulk::Move { pool } => Command::MoveAll {
                    matches,
                    pool,
                    through,
                },
            };
            self.post(Event::Command(command));
        }
        count
    }

    /// Lends tokens of the node's limits.
    pub fn lend(&mut self, now: &Now, wants: &[Want], class: Class) -> Lent {
        let mut actions = Vec::new();
        let lent = self.engine_mut().lend(now, wants, class, &mut actions);
        self.carry_out(now, &mut actions);
        lent
    }

    /// Slots that were lent come back.
    pub fn take_back(&mut self, now: &Now, slots: &[(LimitKey, u32)]) {
        self.engine_mut().take_back(now, slots);
    }

    /// The far end changed its mind about a message that is done with.
    pub fn feedback(&mut self, now: &Now, key: FlowKey, seq: Seq, reply: Reply) {
        let mut actions = Vec::new();
        let flow = self.engine_mut().open_flow(now, key, &mut actions);
        self.carry_out(now, &mut actions);
        self.post(Event::Feedback { flow, seq, reply });
    }

    /// Dead letters that are no longer kept.
    pub fn forget(&mut self, now: &Now, seqs: Vec<Seq>) {
        let store = &mut self.ports_mut().store;
        store.submit(now, StoreWork::Forget { seqs });
    }
}
