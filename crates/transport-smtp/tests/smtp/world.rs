//! A transport under test.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::handle::{AccountId, FlowId, PermitId, PoolId, SessionId, SessionRef};
use outflow_core::message::{Head, Seq};
use outflow_core::name::Name;
use outflow_core::reply::Reply;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::letter::{Content, Envelope};
use outflow_ports::parcel::{Parcel, ParcelError, ParcelRef, ParcelSource};
use outflow_ports::transport::{Transport, TransportWork};
use outflow_transport_smtp::{Opened, Relay, SmtpTransport, Timeouts, Tls};
use tokio::runtime::Runtime;

use crate::letters;

/// Longer than anything takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// One letter, or why there is none.
struct Stored(Result<(Envelope, Content), ParcelError>);

impl ParcelSource for Stored {
    fn read(&self, _: u64, _: u64) -> Result<Parcel, ParcelError> {
        let (envelope, content) = self.0.as_ref().map_err(Clone::clone)?;
        Ok(Parcel {
            envelope: envelope.to_bytes().into(),
            body: content.to_bytes().into(),
        })
    }
}

pub fn parcel(envelope: &Envelope, content: &Content) -> ParcelRef {
    let stored = Stored(Ok((envelope.clone(), content.clone())));
    ParcelRef::new(Arc::new(stored), 0, 0)
}

pub fn unreadable() -> ParcelRef {
    let error = ParcelError::Unread("the disk is gone".to_owned());
    ParcelRef::new(Arc::new(Stored(Err(error))), 0, 0)
}

pub fn damaged() -> ParcelRef {
    let error = ParcelError::Damaged("it does not hold".to_owned());
    ParcelRef::new(Arc::new(Stored(Err(error))), 0, 0)
}

pub fn simple(to: &str) -> ParcelRef {
    parcel(
        &letters::envelope(to),
        &letters::content("Hello", "Hello\n"),
    )
}

/// Wakes whoever waits for the transport.
#[derive(Default)]
pub struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.heard.notify_all();
    }

    /// Waits until it was rung, or this long.
    pub fn wait(&self, time: Duration) {
        let rung = self.rung.lock().unwrap();
        let (mut rung, _) = self
            .heard
            .wait_timeout_while(rung, time, |rung| !*rung)
            .unwrap();
        *rung = false;
    }
}

/// A transport with one account, `a`.
pub struct World {
    pub transport: SmtpTransport,
    pub bell: Arc<Bell>,
    pub failures: Arc<Mutex<Vec<Reply>>>,
    pub account: AccountSpec,
    pub destination: Destination,
    start: Instant,
    events: VecDeque<Event>,
    permits: u32,
    pub runtime: Runtime,
}

/// A relay at this port, with short times.
pub fn relay(port: u16, tls: Tls) -> Relay {
    Relay {
        timeouts: Timeouts::all(PATIENCE),
        ..Relay::new("localhost", port, tls, "client.example")
    }
}

/// What became of one delivery.
pub struct Became {
    pub permit: PermitId,
    pub reply: Reply,
    pub lives: bool,
}

pub const fn session(no: u32) -> SessionRef {
    SessionRef {
        pool: PoolId(0),
        session: SessionId(no),
    }
}

impl World {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (bell, failures) = (Arc::new(Bell::default()), Arc::new(Mutex::default()));
        let (ringer, noted) = (Arc::clone(&bell), Arc::clone(&failures));
        let transport = SmtpTransport::new(
            runtime.handle().clone(),
            Arc::new(move || ringer.ring()),
            move |opened: Opened<'_>| {
                let mut noted: std::sync::MutexGuard<'_, Vec<Reply>> = noted.lock().unwrap();
                noted.extend(opened.result.err().cloned());
            },
        );
        Self {
            transport,
            bell,
            failures,
            account: AccountSpec::new("a"),
            destination: Destination::isp("somewhere"),
            start: Instant::now(),
            events: VecDeque::new(),
            permits: 0,
            runtime,
        }
    }

    pub fn set(&self, relay: &Relay) {
        let handle = self.transport.handle();
        handle.set(&Name::from("a"), relay).unwrap();
    }

    pub fn now(&self) -> Now {
        let mono = u64::try_from(self.start.elapsed().as_nanos()).unwrap();
        Now {
            mono: Mono(mono),
            wall: Wall(0) + Nanos(mono),
            entropy: Entropy(0),
        }
    }

    pub fn open(&mut self, no: u32) {
        let now = self.now();
        let work = TransportWork::Open {
            session: session(no),
            account: &self.account,
            destination: &self.destination,
        };
        self.transport.submit(&now, work);
    }

    pub fn close(&mut self, no: u32) {
        let now = self.now();
        let work = TransportWork::Close {
            session: session(no),
        };
        self.transport.submit(&now, work);
    }

    pub fn deliver(&mut self, no: u32, parcel: ParcelRef) -> PermitId {
        let now = self.now();
        self.permits += 1;
        let permit = PermitId {
            index: self.permits,
            generation: 0,
        };
        let work = TransportWork::Deliver {
            delivery: Delivery {
                permit,
                session: session(no),
                account: AccountId(0),
                flow: FlowId(0),
                head: Head::new(Seq(u64::from(self.permits)), now.wall),
            },
            parcel: Some(parcel),
            account: &self.account,
            destination: &self.destination,
        };
        self.transport.submit(&now, work);
        permit
    }

    /// The next event.
    pub fn event(&mut self) -> Event {
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            let mut done = Vec::new();
            let now = self.now();
            self.transport.complete(&now, &mut done);
            self.events.extend(done);
            if self.events.is_empty() {
                assert!(Instant::now() < patience, "the transport says nothing");
                self.bell.wait(Duration::from_millis(100));
            }
        }
    }

    /// Opens a session that must open.
    pub fn ready(&mut self, no: u32) {
        self.open(no);
        let event = self.event();
        let failures = self.failures.lock().unwrap().clone();
        assert!(matches!(event, Event::SessionReady { .. }), "{failures:?}");
    }

    /// Opens a session that must not open, and says why it did not.
    pub fn refused(&mut self, no: u32) -> Reply {
        self.open(no);
        let event = self.event();
        let Event::SessionRefused { reply, .. } = event else {
            panic!("{event:?}");
        };
        assert_eq!(self.failures.lock().unwrap().pop().as_ref(), Some(&*reply));
        *reply
    }

    pub fn became(&mut self) -> Became {
        match self.event() {
            Event::Replied {
                permit,
                reply,
                session_lives,
            } => Became {
                permit,
                reply,
                lives: session_lives,
            },
            other => panic!("{other:?} is no reply"),
        }
    }

    /// Delivers and waits.
    pub fn send(&mut self, no: u32, parcel: ParcelRef) -> Became {
        let permit = self.deliver(no, parcel);
        let became = self.became();
        assert_eq!(became.permit, permit);
        became
    }
}
