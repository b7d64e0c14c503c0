//! One transport in front of all: each account's own carries its messages.
//!
//! An account whose transport is not there opens no session, so that its
//! messages wait and nothing of theirs ends in the sandbox.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_config::{Account, TransportSettings};
use outflow_core::engine::event::Event;
use outflow_core::handle::PermitId;
use outflow_core::name::Name;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Now};
use outflow_ports::transport::{Transport, TransportWork};
use outflow_transport_sandbox::Sandbox;

/// Who carries an account's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The sandbox.
    Sandbox,
    /// Nobody yet.
    None,
}

impl Carrier {
    /// The carrier of an account.
    pub const fn of(account: &Account) -> Self {
        match account.transport {
            TransportSettings::Sandbox(_) => Self::Sandbox,
            TransportSettings::Smtp(_) | TransportSettings::Mx(_) => Self::None,
        }
    }
}

/// Which account is carried by whom: written when accounts change, read when
/// sessions open. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Carriers(Arc<Mutex<BTreeMap<Name, Carrier>>>);

impl Carriers {
    /// An account is carried by `carrier` from now on.
    pub fn put(&self, account: &Name, carrier: Carrier) {
        self.lock().insert(account.clone(), carrier);
    }

    /// An account is gone.
    pub fn remove(&self, account: &Name) {
        self.lock().remove(account);
    }

    /// Whether nothing can leave this machine.
    pub fn are_all_sandboxes(&self) -> bool {
        let carriers = self.lock();
        carriers
            .values()
            .all(|carrier| *carrier == Carrier::Sandbox)
    }

    fn of(&self, account: &Name) -> Carrier {
        self.lock().get(account).copied().unwrap_or(Carrier::None)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Carrier>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All transports.
#[derive(Debug)]
pub struct Transports {
    carriers: Carriers,
    sandbox: Sandbox,
    answers: Vec<Event>,
}

impl Transports {
    /// Carries each account's messages as `carriers` says.
    pub fn new(carriers: Carriers, sandbox: Sandbox) -> Self {
        Self {
            carriers,
            sandbox,
            answers: Vec::new(),
        }
    }
}

impl Transport for Transports {
    fn submit(&mut self, now: &Now, work: TransportWork<'_>) {
        let (account, refusal) = match &work {
            TransportWork::Open {
                session, account, ..
            } => (account, Event::SessionClosed { session: *session }),
            TransportWork::Deliver {
                delivery, account, ..
            } => (account, not_there(delivery.permit)),
            TransportWork::Close { .. } => {
                self.sandbox.submit(now, work);
                return;
            }
        };
        match self.carriers.of(&account.id) {
            Carrier::Sandbox => self.sandbox.submit(now, work),
            Carrier::None => self.answers.push(refusal),
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        self.sandbox.complete(now, done);
        done.append(&mut self.answers);
    }

    fn next_completion(&self) -> Mono {
        if self.answers.is_empty() {
            self.sandbox.next_completion()
        } else {
            Mono(0)
        }
    }
}

fn not_there(permit: PermitId) -> Event {
    Event::Replied {
        permit,
        reply: Reply::Network {
            stage: Stage::Connect,
            text: "the transport of this account is not there".into(),
        },
        session_lives: false,
    }
}
