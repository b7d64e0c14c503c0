//! One transport in front of all: each account's own carries its messages.
//!
//! An account whose transport is not there opens no session, so that its
//! messages wait and nothing of theirs ends in the sandbox.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::engine::event::Event;
use outflow_core::handle::PermitId;
use outflow_core::name::Name;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Now};
use outflow_ports::transport::{Transport, TransportWork};
use outflow_transport_sandbox::Sandbox;
use outflow_transport_smtp::SmtpTransport;

/// Who carries an account's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The sandbox.
    Sandbox,
    /// SMTP.
    Smtp,
    /// Nobody: its settings cannot be used as they are.
    None,
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
    smtp: SmtpTransport,
    answers: Vec<Event>,
}

impl Transports {
    /// Carries each account's messages as `carriers` says.
    pub fn new(carriers: Carriers, sandbox: Sandbox, smtp: SmtpTransport) -> Self {
        Self {
            carriers,
            sandbox,
            smtp,
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
            // The account may be carried by another by now. Whoever does not
            // know the session does nothing.
            TransportWork::Close { session } => {
                let session = *session;
                self.sandbox.submit(now, TransportWork::Close { session });
                self.smtp.submit(now, TransportWork::Close { session });
                return;
            }
        };
        match self.carriers.of(&account.id) {
            Carrier::Sandbox => self.sandbox.submit(now, work),
            Carrier::Smtp => self.smtp.submit(now, work),
            Carrier::None => self.answers.push(refusal),
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        self.sandbox.complete(now, done);
        self.smtp.complete(now, done);
        done.append(&mut self.answers);
    }

    fn next_completion(&self) -> Mono {
        if self.answers.is_empty() {
            let smtp = self.smtp.next_completion();
            self.sandbox.next_completion().min(smtp)
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
