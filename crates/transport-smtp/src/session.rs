//! One session: a task that opens a connection, carries messages one after the
//! other and says goodbye.

use std::borrow::Cow;
use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::engine::event::Event;
use outflow_core::reply::{Reply, Stage};
use outflow_mail::{Can, Keyring};
use outflow_ports::parcel::ParcelRef;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::{Client, ClientSettings, Output, Tls};
use crate::connect;
use crate::outbox::{Duty, Leaving, Opening, Outbox};
use crate::prepare::prepare;
use crate::relay::Prepared;
use crate::wire::{Moved, Wire};

/// A message to carry.
pub(crate) struct Job {
    pub duty: Duty,
    pub parcel: Option<ParcelRef>,
    pub keys: Arc<Keyring>,
}

/// Hears why a session could not be opened.
pub(crate) type OnFailed = Box<dyn FnOnce(&Destination, &Reply) + Send>;

/// One session.
pub(crate) struct Session {
    pub opening: Opening,
    pub relay: Arc<Prepared>,
    pub destination: Destination,
    pub outbox: Arc<Outbox>,
    /// Told why a session could not be opened.
    pub on_failed: OnFailed,
}

impl Session {
    /// Runs it until nobody sends it jobs, or the connection ends. Jobs that
    /// come too late answer for themselves when they are dropped.
    pub async fn run(self, mut jobs: Receiver<Job>) {
        let _leaving = Leaving {
            opening: self.opening,
            outbox: Arc::clone(&self.outbox),
        };
        let limit = self.relay.client.timeouts.open;
        let opened = tokio::select! {
            opened = timeout(limit, open(&self.relay, &self.destination)) => opened,
            () = given_up(&mut jobs) => return,
        };
        let late = || {
            Err(connect::unreachable(
                "timed out opening a session".to_owned(),
            ))
        };
        match opened.unwrap_or_else(|_| late()) {
            Ok(line) => {
                let session = self.opening.session;
                let event = Event::SessionReady { session };
                self.outbox.tell(self.opening, event);
                serve(line, jobs).await;
            }
            Err(reply) => {
                (self.on_failed)(&self.destination, &reply);
                drop(jobs);
            }
        }
    }
}

/// Carries one message after the other.
async fn serve(mut line: Line, mut jobs: Receiver<Job>) {
    loop {
        let job = tokio::select! {
            job = jobs.recv() => job,
            // Nobody asked for anything: the server hung up.
            _ = line.said() => return,
        };
        let Some(mut job) = job else {
            return line.quit().await;
        };
        let can = Can {
            eight_bit: line.client.offers().eight_bit,
        };
        let mail = match prepare(job.parcel, can, job.keys).await {
            Ok(mail) => mail,
            Err(reply) => {
                job.duty.answer(reply, true);
                continue;
            }
        };
        job.duty.begin();
        let (reply, lives) = line.deliver(mail).await;
        job.duty.answer(reply, lives);
        if !lives {
            return;
        }
    }
}

/// Waits until the node wants the session no more. A message for a session that
/// is not ready is not sent.
async fn given_up(jobs: &mut Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        drop(job);
    }
}

/// Opens a connection to one of the servers, and speaks up to the point at
/// which a message can be sent.
async fn open(relay: &Prepared, destination: &Destination) -> Result<Line, Reply> {
    let mut last = None;
    for host in connect::hosts(relay, destination).await? {
        let addresses = match connect::addresses(relay, &host).await {
            Ok(addresses) => addresses,
            Err(reply) => {
                last = Some(reply);
                continue;
            }
        };
        for address in addresses {
            let mut settings = Some(&relay.client);
            while let Some(client) = settings.take() {
                let limit = client.timeouts.connect;
                let wire = match connect::dial(address, relay.source_ip, limit).await {
                    Ok(stream) => Wire::new(stream),
                    Err(reply) => {
                        last = Some(reply);
                        continue;
                    }
                };
                let mut line = Line::new(wire, client);
                match line.greet(relay, &host.host).await {
                    Ok(()) => return Ok(line),
                    // The next server has the same passwords.
                    Err(reply) if is_about_us(&reply) => return Err(reply),
                    Err(reply) => last = Some(reply),
                }
                // TLS that is welcome but not required is left out if it fails.
                if line.tls_failed && client.tls == Tls::Opportunistic {
                    settings = relay.in_the_open.as_ref();
                }
            }
        }
    }
    Err(last.unwrap_or_else(|| connect::unreachable("there is no server".to_owned())))
}

fn is_about_us(reply: &Reply) -> bool {
    match reply {
        Reply::Said { stage, .. } | Reply::Network { stage, .. } => *stage == Stage::Auth,
        Reply::Uncertain => false,
    }
}

/// A connection and the client that speaks over it.
struct Line {
    wire: Wire,
    client: Client,
    tls_failed: bool,
    steps: u64,
    /// When the present step began.
    since: Instant,
    /// When the whole of what is under way must be done.
    until: Option<Instant>,
}

impl Line {
    fn new(wire: Wire, settings: &Arc<ClientSettings>) -> Self {
        Self {
            wire,
            client: Client::new(Arc::clone(settings)),
            tls_failed: false,
            steps: 0,
            since: Instant::now(),
            until: None,
        }
    }

    /// From the connection to the first message.
    async fn greet(&mut self, relay: &Prepared, host: &str) -> Result<(), Reply> {
        if relay.client.tls == Tls::Implicit {
            let limit = Instant::now() + relay.client.timeouts.starttls;
            let done = timeout_at(limit, self.protect(relay, host)).await;
            if let Err(why) = done.unwrap_or_else(|_| Err("timed out".to_owned())) {
                let (stage, text) = (Stage::Greeting, Cow::Owned(format!("TLS: {why}")));
                return Err(Reply::Network { stage, text });
            }
        }
        loop {
            match self.said().await {
                Output::Ready => return Ok(()),
                Output::Failed(reply) => return Err(reply),
                Output::StartTls => {
                    let limit = Instant::now() + relay.client.timeouts.starttls;
                    let done = timeout_at(limit, self.protect(relay, host)).await;
                    let done = done.unwrap_or_else(|_| Err("timed out".to_owned()));
                    self.tls_failed = done.is_err();
                    self.client.on_tls(done);
                }
                _ => return Err(connect::unreachable("the session did not open".to_owned())),
            }
        }
    }

    async fn protect(&mut self, relay: &Prepared, host: &str) -> Result<(), String> {
        match &relay.connector {
            Some(connector) => self.wire.protect(connector, host).await,
            None => Err("it is not set up".to_owned()),
        }
    }

    /// Carries a message: what became of it, and whether the session lives.
    async fn deliver(&mut self, mail: outflow_mail::Mail) -> (Reply, bool) {
        self.until = Some(Instant::now() + self.client.delivery_timeout());
        self.client.deliver(mail);
        let output = self.said().await;
        self.until = None;
        match output {
            Output::Replied { reply, lives } => (reply, lives),
            _ => (Reply::Uncertain, false),
        }
    }

    async fn quit(mut self) {
        self.client.quit();
        self.said().await;
    }

    /// Reads and writes until the client has something to say. May be dropped
    /// at any time and called again.
    async fn said(&mut self) -> Output {
        loop {
            while let Some(output) = self.client.next_output() {
                match output {
                    Output::Write(bytes) => self.wire.push(bytes),
                    output => return output,
                }
            }
            if self.steps != self.client.steps() {
                self.steps = self.client.steps();
                self.since = Instant::now();
            }
            let limit = self.client.timeout().map(|limit| self.since + limit);
            let limit = limit.into_iter().chain(self.until).min();
            let moved = match limit {
                Some(limit) => timeout_at(limit, self.wire.moved()).await,
                None => Ok(self.wire.moved().await),
            };
            match moved {
                Ok(Moved::Wrote { all }) => {
                    self.since = Instant::now();
                    if all {
                        self.client.on_written();
                    }
                }
                Ok(Moved::Read(bytes)) => self.client.on_bytes(&bytes),
                Ok(Moved::Closed(why)) => self.client.on_closed(&why),
                Err(_) => self.client.on_timeout(),
            }
        }
    }
}
