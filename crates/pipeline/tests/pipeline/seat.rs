//! A node on its thread over a store in memory and a sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::Settings;
use outflow_core::engine::event::Event;
use outflow_core::engine::explain::Explanation;
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::message::{Recipient, Seq, State};
use outflow_core::name::Name;
use outflow_core::policy::set::Policies;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_pipeline::handle::{self, Handle};
use outflow_pipeline::thread::{Ended, Surroundings, spawn};
use outflow_pipeline::{Node, Ports};
use outflow_ports::control::{Control, Touched};
use outflow_ports::intake::{Intake, Refused, Submission, Taken, Then};
use outflow_ports::ledger::NoLedger;
use outflow_ports::query::{Depth, LiveMessage, Query};
use outflow_ports::resolver::Resolver;
use outflow_ports::transport::Transport;
use outflow_simulator::memory::MemoryStore;
use outflow_simulator::memory::store::{Faults, Settings as StoreSettings};
use outflow_transport_sandbox::{Behaviour, Sandbox, SandboxHandle, Settings as SandboxSettings};

/// Longer than anything here takes, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Asked for nothing: all destinations are known.
#[derive(Debug)]
pub struct NoResolver;

impl Resolver for NoResolver {
    fn submit(&mut self, _: &Now, _: Name) {}

    fn complete(&mut self, _: &Now, _: &mut Vec<Event>) {}

    fn next_completion(&self) -> Mono {
        Mono::NEVER
    }
}

pub type End<T> = Ended<MemoryStore, NoLedger, T, NoResolver>;

/// A node over this transport; its disk fails as it is told.
pub fn start<T: Transport + Send + 'static>(
    transport: T,
    faults: Faults,
) -> (Handle, JoinHandle<End<T>>) {
    start_with(transport, faults, Settings::default())
}

/// The same with an engine of these settings.
pub fn start_with<T: Transport + Send + 'static>(
    transport: T,
    faults: Faults,
    engine: Settings,
) -> (Handle, JoinHandle<End<T>>) {
    let (handle, inbox) = handle::open();
    let mut entropy = Entropy(42);
    let surroundings = Surroundings {
        entropy: Box::new(move || entropy.draw()),
        alert: Box::new(drop),
    };
    let settings = StoreSettings {
        keep_settled: true,
        ..StoreSettings::default()
    };
    let ports = Ports {
        store: MemoryStore::new(settings, faults),
        ledger: NoLedger,
        transport,
        resolver: NoResolver,
    };
    let start = move |now: &Now| Node::start(now, engine, Policies::default(), ports);
    (handle, spawn(inbox, surroundings, start).unwrap())
}

/// A node over a sandbox with one account.
pub struct Seat {
    pub handle: Handle,
    pub sandbox: SandboxHandle,
    pub thread: JoinHandle<End<Sandbox>>,
}

impl Seat {
    pub fn new(limits: &[&str]) -> Self {
        let sandbox = Sandbox::new(SandboxSettings::default());
        let sandbox_handle = sandbox.handle();
        let (handle, thread) = start(sandbox, Faults::default());
        handle.set_account(account(limits));
        Self {
            handle,
            sandbox: sandbox_handle,
            thread,
        }
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.sandbox.set(&Name::from("main"), behaviour);
    }

    /// Submits messages and waits until they are durable.
    pub fn submit(&self, count: usize) -> Vec<Seq> {
        let batch = (0..count).map(|_| submission()).collect();
        let given = ask(|then| self.handle.submit(batch, then)).unwrap();
        given.into_iter().map(|taken| taken.unwrap().seq).collect()
    }

    pub fn message(&self, seq: Seq) -> Option<LiveMessage> {
        ask(|then| self.handle.message(seq, then))
    }

    pub fn state(&self, seq: Seq) -> Option<State> {
        self.message(seq).map(|message| message.state)
    }

    pub fn explain(&self, seq: Seq) -> Option<(LiveMessage, Explanation)> {
        ask(|then| self.handle.explain(seq, then))
    }

    pub fn cancel(&self, seq: Seq) -> Touched {
        ask(|then| self.handle.cancel(seq, then))
    }

    pub fn depth(&self) -> Depth {
        ask(|then| self.handle.depth(then))
    }

    pub fn taken(&self) -> u64 {
        let counts = self.sandbox.counts();
        counts.values().map(|counts| counts.taken).sum()
    }

    /// Looks again and again until something holds.
    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < PATIENCE, "never: {what}");
        }
    }

    /// Shuts the node down and takes what is left of it.
    pub fn end(self) -> End<Sandbox> {
        self.handle.shut_down(Nanos::from_secs(60));
        self.thread.join().unwrap()
    }
}

/// How often each message was settled, and how.
pub fn settled<T>(end: &mut End<T>) -> BTreeMap<Seq, Vec<State>> {
    let mut settled: BTreeMap<Seq, Vec<State>> = BTreeMap::new();
    for message in end.ports.store.take_settled() {
        settled.entry(message.seq).or_default().push(message.state);
    }
    settled
}

pub fn account(limits: &[&str]) -> AccountSpec {
    let mut account = AccountSpec::new("main");
    account.sessions = Sessions::slots(50);
    let limits = limits.iter().map(|text| LimitSpec::parse(text).unwrap());
    account.limits = limits.collect();
    account
}

pub fn submission() -> Submission {
    Submission {
        key: FlowKey::to(Destination::isp("google")),
        idempotency_key: None,
        not_before: None,
        expires_at: Wall::NEVER,
        recipient: Recipient(1),
        cost: 1,
        engaged: None,
        envelope: Arc::from(*b"to"),
        body: Arc::from(*b"hello"),
    }
}

/// Asks something and waits for the answer.
pub fn ask<T: Send + 'static>(question: impl FnOnce(Then<T>)) -> T {
    answer(question).recv_timeout(PATIENCE).unwrap()
}

/// Asks something; the answer comes over a channel.
pub fn answer<T: Send + 'static>(question: impl FnOnce(Then<T>)) -> Receiver<T> {
    let (sender, receiver) = channel();
    question(Box::new(move |answer| drop(sender.send(answer))));
    receiver
}

pub type Answered = Result<Vec<Taken>, Refused>;
