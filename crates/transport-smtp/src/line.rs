//! A connection to a server, from the first attempt to the goodbye.

use std::borrow::Cow;
use std::sync::Arc;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::{Can, Mail};
use tokio::time::{Instant, timeout_at};

use crate::client::{Client, Output, Tls};
use crate::connect;
use crate::exchangers::Exchanger;
use crate::relay::{Prepared, Way};
use crate::wire::{Moved, Wire};

/// Hosts that are tried for one connection.
const HOSTS_MAX: usize = 5;
/// How much is told of why a server's TLS will not do.
const TOLD_MAX: usize = 400;

/// Opens a connection to one of the servers, and speaks up to the point at
/// which a message can be sent.
pub(crate) async fn open(relay: &Prepared, hosts: Vec<Exchanger>) -> Result<Line, Unopened> {
    let mut last = None;
    let mut by_policy = None;
    for host in hosts.into_iter().take(HOSTS_MAX) {
        let addresses = match connect::addresses(relay, &host).await {
            Ok(addresses) => addresses,
            Err(reply) => {
                last = Some(reply);
                continue;
            }
        };
        for address in addresses {
            let (usual, mut next) = relay.ways(host.must_verify);
            let mut this = Some(usual);
            while let Some(way) = this.take() {
                let limit = relay.timeouts.connect;
                let wire = match connect::dial(address, relay.source_ip, limit).await {
                    Ok(stream) => Wire::new(stream),
                    Err(reply) => {
                        last = Some(reply);
                        continue;
                    }
                };
                let mut line = Line::new(wire, way, &host);
                match line.greet(relay, way, &host.host).await {
                    Ok(()) => return Ok(line),
                    // The next server has the same passwords.
                    Err(reply) if is_about_us(&reply) => return Err(reply.into()),
                    Err(reply) if host.must_verify && line.lacks_tls() => {
                        by_policy = Some(unfit(&host.host, &reply));
                    }
                    Err(reply) => last = Some(reply),
                }
                // TLS that is welcome but not required is left out if it fails.
                if line.tls_failed {
                    this = next.take();
                }
            }
        }
    }
    if let Some(reply) = by_policy {
        let is_by_policy = true;
        return Err(Unopened {
            reply,
            is_by_policy,
        });
    }
    let nobody = || connect::unreachable("there is no server".to_owned());
    Err(last.unwrap_or_else(nobody).into())
}

/// Why there is no connection.
pub(crate) struct Unopened {
    pub reply: Reply,
    /// Whether there would have been one, but not one that the domain's policy
    /// allows.
    pub is_by_policy: bool,
}

impl From<Reply> for Unopened {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            is_by_policy: false,
        }
    }
}

/// That a server has no TLS that its domain's policy allows. Whatever it said
/// itself, nobody refused the message: it waits.
fn unfit(host: &str, reply: &Reply) -> Reply {
    let why: Cow<'_, str> = match reply {
        Reply::Said { code, text, .. } => {
            Cow::Owned(format!("STARTTLS was refused: {code} {text}"))
        }
        Reply::Network { text, .. } | Reply::Damaged { text } => Cow::Borrowed(text),
        Reply::Uncertain => Cow::Borrowed("nobody knows why"),
    };
    // A certificate may carry any number of wrong names, and all are told.
    let why: String = why.chars().take(TOLD_MAX).collect();
    Reply::Network {
        stage: Stage::Greeting,
        text: Cow::Owned(format!("MTA-STS: {host}: {why}")),
    }
}

fn is_about_us(reply: &Reply) -> bool {
    match reply {
        Reply::Said { stage, .. } | Reply::Network { stage, .. } => *stage == Stage::Auth,
        Reply::Uncertain | Reply::Damaged { .. } => false,
    }
}

/// A connection and the client that speaks over it.
pub(crate) struct Line {
    /// The name of the server.
    host: String,
    /// How many more messages it wants.
    left: Option<u32>,
    wire: Wire,
    client: Client,
    tls_failed: bool,
    /// Whether it is protected, by a certificate that was verified.
    is_verified: bool,
    steps: u64,
    /// When the present step began.
    since: Instant,
    /// When the whole of what is under way must be done.
    until: Option<Instant>,
}

impl Line {
    fn new(wire: Wire, way: &Way, host: &Exchanger) -> Self {
        Self {
            host: host.host.clone(),
            left: host.messages_max,
            wire,
            client: Client::new(Arc::clone(&way.client)),
            tls_failed: false,
            is_verified: false,
            steps: 0,
            since: Instant::now(),
            until: None,
        }
    }

    /// From the connection to the first message.
    async fn greet(&mut self, relay: &Prepared, way: &Way, host: &str) -> Result<(), Reply> {
        if way.client.tls == Tls::Implicit {
            let limit = Instant::now() + relay.timeouts.starttls;
            let done = timeout_at(limit, self.protect(way, host)).await;
            if let Err(why) = done.unwrap_or_else(|_| Err("timed out".to_owned())) {
                self.tls_failed = true;
                let (stage, text) = (Stage::Greeting, Cow::Owned(format!("TLS: {why}")));
                return Err(Reply::Network { stage, text });
            }
        }
        loop {
            match self.said().await {
                Output::Ready => return Ok(()),
                Output::Failed(reply) => return Err(reply),
                Output::StartTls => {
                    let limit = Instant::now() + relay.timeouts.starttls;
                    let done = timeout_at(limit, self.protect(way, host)).await;
                    let done = done.unwrap_or_else(|_| Err("timed out".to_owned()));
                    self.tls_failed = done.is_err();
                    self.client.on_tls(done);
                }
                _ => return Err(connect::unreachable("the session did not open".to_owned())),
            }
        }
    }

    async fn protect(&mut self, way: &Way, host: &str) -> Result<(), String> {
        match &way.connector {
            Some(connector) => self.wire.protect(connector, host).await?,
            None => return Err("it is not set up".to_owned()),
        }
        self.is_verified = way.is_checked;
        Ok(())
    }

    /// Whether the session did not open for want of TLS.
    fn lacks_tls(&self) -> bool {
        self.tls_failed || self.client.lacks_tls()
    }

    /// Whether it is protected, by a certificate that was verified.
    pub const fn is_verified(&self) -> bool {
        self.is_verified
    }

    /// The name of the server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What the server can take.
    pub fn can(&self) -> Can {
        Can {
            eight_bit: self.client.offers().eight_bit,
        }
    }

    /// Whether the server wants no more messages on this connection.
    pub fn is_used_up(&self) -> bool {
        self.left == Some(0)
    }

    /// Carries a message, which was taken up at `since`: what became of it, and
    /// whether the session lives.
    pub async fn deliver(&mut self, mail: Mail, since: Instant) -> (Reply, bool) {
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.until = Some(since + self.client.delivery_timeout());
        self.client.deliver(mail);
        let output = self.said().await;
        self.until = None;
        match output {
            Output::Replied { reply, lives } => (reply, lives),
            _ => (Reply::Uncertain, false),
        }
    }

    /// Says goodbye.
    pub async fn quit(mut self) {
        self.client.quit();
        self.said().await;
    }

    /// Reads and writes until the client has something to say. May be dropped
    /// at any time and called again.
    pub async fn said(&mut self) -> Output {
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
