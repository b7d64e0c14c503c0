//! The port: work from the node goes to sessions, and what they tell goes back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::handle::SessionRef;
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::reply::Reply;
use outflow_core::time::{Mono, Now};
use outflow_mail::address::Address;
use outflow_ports::parcel::ParcelRef;
use outflow_ports::transport::{Transport, TransportWork};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};

use crate::berths::{Berths, Claim};
use crate::connect::unreachable;
use crate::outbox::{Duty, Opening, Outbox, Wake};
use crate::prepare::ReturnAddresses;
use crate::relay::{Prepared, Relay, RelayError};
use crate::session::{Job, Session};

/// Messages that may wait for one session. The engine sends the next one when
/// the last is answered.
const JOBS_MAX: usize = 4;

/// A session that was to be opened, for those who watch.
#[derive(Debug)]
pub struct Opened<'a> {
    /// Through which account.
    pub account: &'a Name,
    /// To whom.
    pub destination: &'a Destination,
    /// What the far end, or the network, said if it could not be.
    pub result: Result<(), &'a Reply>,
}

/// Hears of sessions that were opened, and of those that could not be.
type OnOpened = Arc<dyn Fn(Opened<'_>) + Send + Sync>;

/// By which addresses reports find a message.
#[derive(Clone, Debug)]
pub struct Returning {
    /// Where reports are sent to: the sender of the envelope.
    pub sender: String,
    /// What stands in the header, which more people see.
    pub field: String,
}

/// Makes the addresses by which reports find a message.
pub type ReturnTo = Arc<dyn Fn(MessageId) -> Returning + Send + Sync>;

/// Relays by account. Clones lead to the same ones.
#[derive(Clone, Default)]
pub struct SmtpHandle {
    relays: Arc<RwLock<BTreeMap<Name, Arc<Prepared>>>>,
}

impl fmt::Debug for SmtpHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmtpHandle")
    }
}

impl SmtpHandle {
    /// An account reaches its server like this from now on. Sessions that are
    /// open stay as they are; mail is signed with the new keys at once. Reads
    /// the files that the relay names.
    pub fn set(&self, account: &Name, relay: &Relay) -> Result<(), RelayError> {
        let prepared = Arc::new(relay.prepare()?);
        let mut relays = self.relays.write().unwrap_or_else(PoisonError::into_inner);
        relays.insert(account.clone(), prepared);
        Ok(())
    }

    /// An account is gone: no new sessions.
    pub fn forget(&self, account: &Name) {
        let mut relays = self.relays.write().unwrap_or_else(PoisonError::into_inner);
        relays.remove(account);
    }

    fn get(&self, account: &Name) -> Option<Arc<Prepared>> {
        let relays = self.relays.read().unwrap_or_else(PoisonError::into_inner);
        relays.get(account).cloned()
    }
}

/// A session, as the port knows it.
struct Known {
    no: u64,
    relay: Option<Arc<Prepared>>,
    jobs: Sender<Job>,
    is_answered: bool,
}

/// A transport that delivers mail by SMTP.
pub struct SmtpTransport {
    handle: SmtpHandle,
    runtime: Handle,
    outbox: Arc<Outbox>,
    berths: Arc<Berths>,
    on_opened: OnOpened,
    return_to: Option<ReturnTo>,
    sessions: BTreeMap<SessionRef, Known>,
    openings: u64,
    in_flight: usize,
}

impl fmt::Debug for SmtpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpTransport")
            .field("sessions", &self.sessions.len())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl SmtpTransport {
    /// A transport whose sessions run on `runtime`, which needs its I/O and time
    /// drivers. `wake` has the node look at its ports (the waker of the
    /// pipeline's handle). `on_opened` hears why a session could not be opened:
    /// the engine only learns that it was not; and which ones were.
    ///
    /// Accounts are given to [`SmtpTransport::handle`], before or later; a
    /// session of an account that is not known there does not open.
    pub fn new(
        runtime: Handle,
        wake: Wake,
        on_opened: impl Fn(Opened<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            handle: SmtpHandle::default(),
            runtime,
            outbox: Arc::new(Outbox::new(wake)),
            berths: Arc::default(),
            on_opened: Arc::new(on_opened),
            return_to: None,
            sessions: BTreeMap::new(),
            openings: 0,
            in_flight: 0,
        }
    }

    /// Gives mail that names no return address one of these from now on.
    pub fn set_return_to(&mut self, return_to: ReturnTo) {
        self.return_to = Some(return_to);
    }

    /// A way in for whoever knows the accounts.
    pub fn handle(&self) -> SmtpHandle {
        self.handle.clone()
    }

    /// How many sessions are being opened and messages are on their way: so
    /// many answers are to come.
    pub fn pending(&self) -> usize {
        let opening = self.sessions.values().filter(|known| !known.is_answered);
        opening.count() + self.in_flight
    }

    fn open(&mut self, session: SessionRef, account: &AccountSpec, destination: &Destination) {
        self.openings += 1;
        let no = self.openings;
        let opening = Opening { session, no };
        let (sender, jobs) = channel(JOBS_MAX);
        let name = account.id.clone();
        let on_opened = Arc::clone(&self.on_opened);
        let Some(relay) = self.handle.get(&name) else {
            let reply = unreachable("the account has no SMTP server".to_owned());
            on_opened(Opened {
                account: &name,
                destination,
                result: Err(&reply),
            });
            // It is answered like any other that fails.
            self.know(session, no, None, sender);
            let reply = Box::new(reply);
            let event = Event::SessionRefused { session, reply };
            return self.outbox.tell(opening, event);
        };
        self.know(session, no, Some(Arc::clone(&relay)), sender);
        let task = Session {
            opening,
            relay,
            destination: destination.clone(),
            outbox: Arc::clone(&self.outbox),
            berths: Arc::clone(&self.berths),
            claim: Claim::new(account, destination),
            on_opened: Box::new(move |destination, result| {
                on_opened(Opened {
                    account: &name,
                    destination,
                    result,
                });
            }),
        };
        self.runtime.spawn(task.run(jobs));
    }

    fn know(
        &mut self,
        session: SessionRef,
        no: u64,
        relay: Option<Arc<Prepared>>,
        jobs: Sender<Job>,
    ) {
        let known = Known {
            no,
            relay,
            jobs,
            is_answered: false,
        };
        self.sessions.insert(session, known);
    }

    fn deliver(&mut self, delivery: &Delivery, parcel: Option<ParcelRef>, account: &AccountSpec) {
        self.in_flight += 1;
        let session = delivery.session;
        let known = self.sessions.get(&session);
        let no = known.map_or(0, |known| known.no);
        let opening = Opening { session, no };
        let duty = Duty::new(opening, delivery.permit, Arc::clone(&self.outbox));
        // What is not sent on is dropped, and answers that the session is closed.
        let Some(known) = known else { return };
        let relay = self.handle.get(&account.id).or_else(|| known.relay.clone());
        let head = &delivery.head;
        let return_to = self.return_to.as_ref().and_then(|return_to| {
            let made = return_to(MessageId::new(head.accepted_at, head.seq));
            Some(ReturnAddresses {
                sender: Address::parse(&made.sender).ok()?,
                field: Address::parse(&made.field).ok()?,
            })
        });
        let job = Job {
            duty,
            parcel,
            return_to,
            keys: relay.map_or_else(Arc::default, |relay| Arc::clone(&relay.keys)),
        };
        let _ = known.jobs.try_send(job);
    }

    /// Whether an event is of a session as it is now, and worth saying.
    fn note(&mut self, opening: Opening, event: &Event) -> bool {
        let known = self.sessions.get_mut(&opening.session);
        let known = known.filter(|known| known.no == opening.no);
        match event {
            Event::SessionReady { .. } => known.map(|known| known.is_answered = true).is_some(),
            Event::SessionRefused { .. } | Event::SessionClosed { .. } => {
                let wanted = known.is_some();
                if wanted {
                    self.sessions.remove(&opening.session);
                }
                wanted
            }
            Event::Replied { session_lives, .. } => {
                self.in_flight = self.in_flight.saturating_sub(1);
                if known.is_some() && !session_lives {
                    self.sessions.remove(&opening.session);
                }
                true
            }
            _ => true,
        }
    }
}

impl Transport for SmtpTransport {
    fn submit(&mut self, _: &Now, work: TransportWork<'_>) {
        match work {
            TransportWork::Open {
                session,
                account,
                destination,
            } => self.open(session, account, destination),
            // The task says goodbye when nobody can send it jobs any more.
            TransportWork::Close { session } => {
                self.sessions.remove(&session);
            }
            TransportWork::Deliver {
                delivery,
                parcel,
                account,
                ..
            } => self.deliver(&delivery, parcel, account),
        }
    }

    fn complete(&mut self, _: &Now, done: &mut Vec<Event>) {
        for (opening, event) in self.outbox.fetch() {
            if self.note(opening, &event) {
                done.push(event);
            }
        }
    }

    fn next_completion(&self) -> Mono {
        match self.outbox.is_empty() {
            true => Mono::NEVER,
            false => Mono(0),
        }
    }
}
