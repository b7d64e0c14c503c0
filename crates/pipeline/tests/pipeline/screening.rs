//! Recipients who are suppressed while their messages wait. Time is virtual.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outflow_core::engine::Settings;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Recipient, State};
use outflow_core::policy::set::Policies;
use outflow_core::suppression::Reason;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_pipeline::{Node, Ports};
use outflow_ports::intake::Submission;
use outflow_ports::ledger::NoLedger;
use outflow_ports::suppression::{NoSuchRecipient, Screen, Stopped};
use outflow_simulator::memory::MemoryStore;
use outflow_simulator::memory::store::{Faults, Settings as StoreSettings};
use outflow_transport_sandbox::{Sandbox, Settings as SandboxSettings};

use super::seat::{NoResolver, account, submission};

const SECOND: u64 = 1_000_000_000;

/// A list that counts how often it is asked.
#[derive(Debug, Default)]
struct List {
    stopped: Mutex<BTreeSet<Recipient>>,
    generation: AtomicU64,
    asked: AtomicU64,
}

impl List {
    fn put(&self, recipient: u64) {
        self.stopped.lock().unwrap().insert(Recipient(recipient));
        self.generation.fetch_add(1, Ordering::SeqCst);
    }
}

impl Screen for List {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn stops(&self, _: &FlowKey, recipient: Recipient) -> Option<Stopped> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let stopped = self.stopped.lock().unwrap().contains(&recipient);
        stopped.then_some(Stopped {
            reason: Reason::OptOut,
            since: Wall(0),
        })
    }

    fn bounced(&self, _: NoSuchRecipient) {}
}

type TestNode = Node<MemoryStore, NoLedger, Sandbox, NoResolver>;

fn at(ns: u64) -> Now {
    Now {
        mono: Mono(ns),
        wall: Wall(i64::try_from(ns).unwrap()),
        entropy: Entropy(7),
    }
}

fn node(list: &Arc<List>, limits: &[&str]) -> TestNode {
    let settings = StoreSettings {
        keep_settled: true,
        ..StoreSettings::default()
    };
    let ports = Ports {
        store: MemoryStore::new(settings, Faults::default()),
        ledger: NoLedger,
        transport: Sandbox::new(SandboxSettings::default()),
        resolver: NoResolver,
    };
    let now = at(SECOND);
    let mut node = Node::start(&now, Settings::default(), Policies::default(), ports);
    node.set_screen(Arc::clone(list) as _);
    let account = Box::new(account(limits));
    node.post(Event::AccountChanged { account });
    node
}

/// Turns until `end`, as a thread would that sleeps a second at most.
fn run(node: &mut TestNode, from: u64, end: u64) -> u64 {
    let mut ns = from;
    while ns < end {
        let next = node.turn(&at(ns)).0.max(ns + 1);
        ns = next.min(ns + SECOND);
    }
    ns
}

fn to(recipient: u64) -> Submission {
    Submission {
        recipient: Recipient(recipient),
        ..submission()
    }
}

fn became(node: &mut TestNode, state: State) -> Vec<u64> {
    let settled = node.ports_mut().store.take_settled();
    let of_state = settled.iter().filter(|it| it.state == state);
    of_state.map(|it| it.seq.0).collect()
}

#[test]
fn whoever_opts_out_while_his_message_is_held_gets_none() {
    let list: Arc<List> = Arc::default();
    let mut node = node(&list, &["10/h"]);
    let batch = (1..=50).map(to).collect();
    node.submit(&at(SECOND), batch).unwrap();
    let now = run(&mut node, SECOND, 60 * SECOND);
    // All are held now, and nothing is asked any more.
    let asked = list.asked.load(Ordering::SeqCst);
    let now = run(&mut node, now, now + 600 * SECOND);
    assert_eq!(list.asked.load(Ordering::SeqCst), asked);
    let sent = became(&mut node, State::Delivered).len();
    assert!((1..40).contains(&sent), "{sent} were sent in minutes");
    list.put(45);
    let now = run(&mut node, now, now + 2 * SECOND);
    assert_eq!(became(&mut node, State::Suppressed), [45]);
    let once = list.asked.load(Ordering::SeqCst) - asked;
    assert!(once <= 50, "each is looked at once: {once}");
    // Nobody else misses his.
    run(&mut node, now, now + 6 * 3_600 * SECOND);
    let settled = node.ports_mut().store.take_settled();
    assert_eq!(settled.len() + sent, 49);
    assert!(settled.iter().all(|it| it.state == State::Delivered));
    assert!(settled.iter().all(|it| it.seq.0 != 45));
}

/// The turn that would send it comes hours after the change.
#[test]
fn a_change_is_seen_before_the_turn_that_follows_it_sends() {
    let list: Arc<List> = Arc::default();
    let mut node = node(&list, &["1/h"]);
    node.submit(&at(SECOND), vec![to(1), to(2)]).unwrap();
    run(&mut node, SECOND, 60 * SECOND);
    assert_eq!(became(&mut node, State::Delivered), [1]);
    list.put(2);
    let later = 2 * 3_600 * SECOND;
    run(&mut node, later, later + Nanos::from_secs(10).0);
    let settled = node.ports_mut().store.take_settled();
    let settled: Vec<_> = settled.iter().map(|it| (it.seq.0, it.state)).collect();
    assert_eq!(settled, [(2, State::Suppressed)]);
}
