//! One connection: a session, its wire, and what the session asks for.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use outflow_core::message_id::MessageId;
use outflow_mail::Address;
use outflow_ports::intake::{Refused, Submission};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::accept::accept;
use crate::intake::House;
use crate::observer::{Happened, Visit};
use crate::room::Place;
use crate::server::login::Token;
use crate::server::reply::Reply;
use crate::server::{Handed, Line, Output, Session};
use crate::wire::Wire;

const READ_BYTES: usize = 16 << 10;
/// The same of commands: their answers are many times as long, and wait in memory
/// for who does not read.
const COMMAND_BYTES: usize = 512;
/// Messages larger than this are looked at away from the executor, so that
/// others need not wait for them.
const LARGE_BYTES: usize = 256 << 10;
/// How long a client is listened to after the last word, so that it hears it.
const LINGER: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    house: Arc<House>,
    place: Place,
    session: Session,
    wire: Wire,
    /// What the client showed.
    token: Option<Token>,
    closing: watch::Receiver<bool>,
    visit: Visit,
}

/// What a connection waits for.
enum Happening {
    /// So many bytes came; none if the client left.
    Read(usize),
    /// The server is shutting down.
    Closing,
    /// Nothing came in time.
    Late,
}

impl Connection {
    pub fn new(
        house: Arc<House>,
        place: Place,
        stream: TcpStream,
        peer: IpAddr,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let line = Line {
            can_tls: house.tls.borrow().is_some(),
            is_trusted: house.settings.insecure || peer.to_canonical().is_loopback(),
        };
        Self {
            session: Session::new(Arc::clone(&house.rules), line),
            wire: Wire::Open(stream),
            token: None,
            visit: Visit::begin(peer, Arc::clone(&house.observer)),
            house,
            place,
            closing,
        }
    }

    /// Serves the client until it leaves. Whatever goes wrong on the wire ends
    /// the connection, and there is nobody to tell.
    pub async fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        let mut is_told = false;
        loop {
            while let Some(output) = self.session.next_output() {
                match output {
                    Output::StartTls => self = self.protect().await?,
                    Output::Authenticate(token) => self.authenticate(token).await,
                    Output::Deliver(handed) => self.deliver(*handed).await,
                    Output::Close => return self.close(&mut buffer).await,
                }
            }
            self.flush().await?;
            let deadline = self.deadline();
            // A byte is no reason to wait longer; a command or a message is.
            let steps = self.session.steps();
            while self.session.steps() == steps && !self.has_something() {
                match self.happening(&mut buffer, deadline, is_told).await? {
                    Happening::Read(0) => return Ok(()),
                    Happening::Read(count) => {
                        self.on_bytes(buffer.get(..count).unwrap_or_default());
                    }
                    Happening::Closing => {
                        is_told = true;
                        self.session.on_closing();
                    }
                    Happening::Late => self.session.on_timeout(),
                }
            }
        }
    }

    /// Waits until something happens.
    async fn happening(
        &mut self,
        buffer: &mut [u8],
        deadline: Instant,
        is_told: bool,
    ) -> io::Result<Happening> {
        let most = match self.session.is_in_data() {
            true => READ_BYTES,
            false => COMMAND_BYTES,
        };
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        tokio::select! {
            biased;
            read = self.wire.read(buffer) => Ok(Happening::Read(read?)),
            _ = self.closing.wait_for(|is_closing| *is_closing), if !is_told => {
                Ok(Happening::Closing)
            }
            () = sleep_until(deadline) => Ok(Happening::Late),
        }
    }

    fn deadline(&self) -> Instant {
        let settings = &self.house.settings;
        let time = match self.session.is_in_data() {
            true => settings.data,
            false => settings.idle,
        };
        Instant::now() + time
    }

    /// Whether there is something to write or to do.
    fn has_something(&mut self) -> bool {
        self.session.has_output() || !self.session.replies().is_empty()
    }

    fn on_bytes(&mut self, bytes: &[u8]) {
        self.session.set_overloaded(self.house.room.is_full());
        self.session.on_bytes(bytes);
        let held = self.session.held();
        self.place.hold(held);
        if held > 0 && self.house.room.overflows() {
            self.session.shed();
            self.place.hold(self.session.held());
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        for (code, status) in self.session.take_refusals() {
            self.visit.tell(Happened::Refused { code, status });
        }
        let replies = self.session.replies();
        if replies.is_empty() {
            return Ok(());
        }
        let written = timeout(self.house.settings.idle, self.wire.write(replies));
        written.await.map_err(|_| io::ErrorKind::TimedOut)??;
        replies.clear();
        Ok(())
    }

    async fn protect(mut self) -> io::Result<Self> {
        self.flush().await?;
        let tls = self.house.tls.borrow().clone();
        let tls = tls.ok_or(io::ErrorKind::NotConnected)?;
        let handshake = timeout(self.house.settings.idle, self.wire.protect(tls));
        let wire = handshake.await.map_err(|_| io::ErrorKind::TimedOut)??;
        self.wire = wire;
        self.token = None;
        self.session.on_tls();
        Ok(self)
    }

    async fn authenticate(&mut self, token: Token) {
        let pass = self.house.doorkeeper.admit(token.as_str());
        let is_admitted = pass.is_some();
        if let Some(pass) = pass {
            if !self.place.known(&pass.party) {
                return self.session.on_crowded();
            }
            self.token = Some(token);
            self.visit.tell(Happened::LoggedIn);
        } else {
            self.visit.tell(Happened::LoginRefused);
            sleep(self.house.settings.login_delay).await;
        }
        self.session.on_admitted(is_admitted);
    }

    async fn deliver(&mut self, handed: Handed) {
        if handed.is_report {
            let heard = self.hear(handed).await;
            self.place.hold(0);
            self.session.set_overloaded(self.house.room.is_full());
            return self.session.on_heard(heard);
        }
        let stored = self.store(handed).await;
        self.place.hold(0);
        self.session.set_overloaded(self.house.room.is_full());
        self.session.on_stored(stored);
    }

    /// Has a report heard. What it says, or whether it says anything, is nothing
    /// that its sender is told.
    async fn hear(&mut self, handed: Handed) -> Result<(), Reply> {
        let hearing = self.house.hearing.clone().ok_or_else(not_stored)?;
        let work = move || {
            let to = handed.recipients.first().map(Address::as_str);
            let about = to.and_then(|to| hearing.return_address(to));
            match about {
                Some(_) => hearing.mail(&handed.bytes, about, None).map(drop),
                None => Ok(()),
            }
        };
        let heard = tokio::task::spawn_blocking(work).await;
        let heard = heard.map_err(|_| not_stored())?;
        heard.map_err(|_| not_stored())?;
        self.visit.tell(Happened::Reported);
        Ok(())
    }

    async fn store(&mut self, handed: Handed) -> Result<MessageId, Reply> {
        let submissions = match handed.bytes.len() > LARGE_BYTES {
            true => {
                let (house, token) = (Arc::clone(&self.house), self.token.clone());
                let work = move || submissions(&house, token.as_ref(), &handed);
                let done = tokio::task::spawn_blocking(work).await;
                done.map_err(|_| not_stored())??
            }
            false => submissions(&self.house, self.token.as_ref(), &handed)?,
        };
        let (then, answer) = oneshot::channel();
        let then = Box::new(move |given| {
            // A client that went away is told nothing.
            let _ = then.send(given);
        });
        match submissions.len() {
            1 => self.house.intake.submit(submissions, then),
            // One answer speaks for all recipients.
            _ => self.house.intake.submit_whole(submissions, then),
        }
        // A node that drops the question is on its way down.
        let answer = answer.await.unwrap_or(Err(Refused::Closing));
        let taken = answer.map_err(|refused| match refused {
            Refused::Busy => {
                self.house.room.note_busy();
                Reply::new(452, "4.3.1", format!("{refused}: try again soon"))
            }
            Refused::Closing => Reply::new(421, "4.3.2", refused.to_string()),
            Refused::NotStored => not_stored(),
        })?;
        let first = taken.first().ok_or_else(not_stored)?;
        let first =
            first.map_err(|why| Reply::new(452, "4.3.1", format!("{why}: try again later")))?;
        let recipients = taken.len();
        self.visit.tell(Happened::Taken { recipients });
        Ok(MessageId::new(first.accepted_at, first.seq))
    }

    /// Says the last word. A connection that is closed while the client still
    /// talks is reset, and the word may be lost: so it is heard out for a while.
    async fn close(mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.flush().await?;
        let heard_out = async {
            self.wire.finish().await?;
            while self.wire.read(buffer).await? > 0 {}
            io::Result::Ok(())
        };
        timeout(LINGER, heard_out).await.unwrap_or(Ok(()))
    }
}

fn submissions(
    house: &House,
    token: Option<&Token>,
    handed: &Handed,
) -> Result<Vec<Submission>, Reply> {
    let pass = token.and_then(|token| house.doorkeeper.admit(token.as_str()));
    let pass = pass.ok_or_else(|| Reply::new(530, "5.7.0", "this token was withdrawn"))?;
    let hostname = &house.rules.hostname;
    accept(handed, &pass, hostname, house.clock.now(), &house.naming)
}

fn not_stored() -> Reply {
    let text = "the message could not be stored, as far as is known: try again";
    Reply::new(451, "4.3.0", text)
}
