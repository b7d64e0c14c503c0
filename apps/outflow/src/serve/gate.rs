//! What operators set, held back until the node begins.
//!
//! Policies, pauses and accounts are read from the settings and the registry
//! before there is a node. They are kept here and given to it in the order in
//! which nothing can be sent that should not be: policies before the first
//! flow, then pauses, and accounts only when all pauses are in force.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::account::AccountSpec;
use outflow_core::classify::Rules;
use outflow_core::engine::command::{Command, PauseId, Tune};
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::tally::{Counter, Teller};
use outflow_core::time::{Now, Wall};
use outflow_pipeline::{Handle, Node, Ports};
use outflow_ports::control::{Bulk, Control, Touched};
use outflow_ports::intake::Then;
use outflow_ports::ledger::Ledger;
use outflow_ports::resolver::Resolver;
use outflow_ports::store::Store;
use outflow_ports::suppression::Screen;
use outflow_ports::transport::Transport;
use outflow_telemetry::sink::Sink;

/// Turns in which a node comes to rest before it has accounts. Each does
/// thousands of steps, so this is far more than any number of flows needs.
const TURNS_MAX: usize = 10_000;

/// What was set before the node began.
#[derive(Debug, Default)]
struct Before {
    policies: Policies,
    pauses: Vec<(PauseId, Match, Option<Wall>)>,
    accounts: Vec<AccountSpec>,
}

/// Changes a node, also before it is there.
pub struct Gate {
    handle: Handle,
    throttle: Arc<outflow_throttle::Service>,
    before: Mutex<Option<Before>>,
}

impl Gate {
    /// Closed: what is set waits.
    pub fn new(handle: Handle, throttle: Arc<outflow_throttle::Service>) -> Self {
        Self {
            handle,
            throttle,
            before: Mutex::new(Some(Before::default())),
        }
    }

    /// Starts a node with all that was set so far, and opens: what is set from
    /// now on reaches the node directly.
    pub fn begin<S: Store, L: Ledger, T: Transport, R: Resolver>(
        &self,
        now: &Now,
        settings: outflow_core::engine::Settings,
        rules: Rules,
        ports: Ports<S, L, T, R>,
        (sink, screen): (Arc<dyn Sink>, Arc<dyn Screen>),
    ) -> Node<S, L, T, R> {
        let before = self.lock().take().unwrap_or_default();
        let mut node = Node::start_observed(now, settings, before.policies, ports, sink);
        node.set_rules(rules);
        node.set_screen(screen);
        // Before the flows are told that they have messages: what is paused
        // need not be read from the store.
        for (id, matches, until) in before.pauses {
            node.post_first(Event::Command(Command::Pause { id, matches, until }));
        }
        // Without accounts nothing is sent. Pauses go over all flows meanwhile.
        for _ in 0..TURNS_MAX {
            if node.turn(now) > now.mono {
                break;
            }
        }
        for account in before.accounts {
            let account = Box::new(account);
            node.post(Event::AccountChanged { account });
        }
        node
    }

    fn lock(&self) -> MutexGuard<'_, Option<Before>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a change for later if there is no node yet. Whether it did.
    fn kept(&self, keep: impl FnOnce(&mut Before)) -> bool {
        let mut before = self.lock();
        before.as_mut().map(keep).is_some()
    }
}

impl Control for Gate {
    fn set_policies(&self, policies: Policies) {
        self.throttle.set_policies(policies.clone());
        if !self.kept(|before| before.policies.clone_from(&policies)) {
            self.handle.set_policies(policies);
        }
    }

    fn set_account(&self, account: AccountSpec) {
        let kept = self.kept(|before| {
            before.accounts.retain(|other| other.id != account.id);
            before.accounts.push(account.clone());
        });
        if !kept {
            self.handle.set_account(account);
        }
    }

    fn remove_account(&self, account: Name) {
        if !self.kept(|before| before.accounts.retain(|other| other.id != account)) {
            self.handle.remove_account(account);
        }
    }

    fn pause(&self, id: PauseId, matches: Match, until: Option<Wall>) {
        if !self.kept(|before| before.pauses.push((id, matches.clone(), until))) {
            self.handle.pause(id, matches, until);
        }
    }

    fn resume(&self, id: PauseId) {
        if !self.kept(|before| before.pauses.retain(|(other, ..)| *other != id)) {
            self.handle.resume(id);
        }
    }

    fn cancel(&self, seq: Seq, then: Then<Touched>) {
        self.handle.cancel(seq, then);
    }

    fn retry(&self, seq: Seq, then: Then<Touched>) {
        self.handle.retry(seq, then);
    }

    fn bulk(&self, bulk: Bulk, matches: Match, dry_run: bool, then: Then<u64>) {
        self.handle.bulk(bulk, matches, dry_run, then);
    }

    fn heard(&self, key: FlowKey, account: Option<Name>, counter: Counter, teller: Teller) {
        self.handle.heard(key, account, counter, teller);
    }

    fn feedback(&self, key: FlowKey, seq: Seq, reply: Reply) {
        self.handle.feedback(key, seq, reply);
    }

    fn tune(&self, key: LimitKey, tune: Tune) {
        self.handle.tune(key, tune);
    }

    fn forget(&self, seqs: Vec<Seq>) {
        self.handle.forget(seqs);
    }
}
