//! One client.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, Sleep, sleep_until};

use outflow_connections::places::Place;
use outflow_core::throttle::Ticket;
use outflow_ports::throttle::{Acquired, ThrottleError, Throttling};

use crate::doorkeeper::Doorkeeper;
use crate::session::{Next, Peers, Session};
use crate::settings::Settings;

/// How much is read at once.
const READ_BYTES: usize = 16 << 10;
/// How much may stand unanswered: the largest command, and some more.
const BUFFER_BYTES_MAX: usize = 4 << 20;
/// So often it is asked whether a token is still good.
const CHECKED_EVERY: Duration = Duration::from_secs(1);
/// How long a client may take to take an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What somebody hears whose party has as many connections as it may have.
const TOO_MANY: &[u8] = b"-ERR too many connections with this token, or of its tenant\r\n";

type Answer = Result<Acquired, ThrottleError>;

/// What all connections share.
pub(crate) struct House {
    pub throttle: Arc<dyn Throttling>,
    pub doorkeeper: Arc<dyn Doorkeeper>,
    pub settings: Settings,
}

/// Cancels a request whose client is gone.
struct Waits<'a> {
    throttle: &'a dyn Throttling,
    ticket: Option<Ticket>,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.throttle.cancel(ticket);
        }
    }
}

pub(crate) struct Connection<S> {
    house: Arc<House>,
    place: Place,
    stream: S,
    session: Session,
    /// Whether the place knows that a token was shown.
    is_kept: bool,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were answered.
    used: usize,
    out: Vec<u8>,
    closing: watch::Receiver<bool>,
    checked_at: Instant,
    active_at: Instant,
    timer: Pin<Box<Sleep>>,
}

enum Happening {
    Read(usize),
    Timer,
    Closing,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub fn new(
        house: Arc<House>,
        place: Place,
        stream: S,
        id: i64,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now + house.settings.login));
        Self {
            house,
            place,
            stream,
            session: Session::new(id),
            is_kept: false,
            buffer: Vec::with_capacity(READ_BYTES),
            used: 0,
            out: Vec::with_capacity(READ_BYTES),
            closing,
            checked_at: now,
            active_at: now,
            timer,
        }
    }

    /// Serves it until it leaves. What goes wrong with a socket is nobody's
    /// business but its own.
    pub async fn run(mut self) {
        let _ = self.serve().await;
        let _ = self.stream.shutdown().await;
    }

    async fn serve(&mut self) -> io::Result<()> {
        loop {
            let (next, answer) = self.answer();
            match next {
                Next::Read => {
                    self.write().await?;
                    self.make_room();
                    if !self.read().await? {
                        return Ok(());
                    }
                }
                Next::Write => self.write().await?,
                Next::Wait(ticket) => {
                    self.write().await?;
                    if !self.wait(ticket, answer).await? {
                        return Ok(());
                    }
                }
                Next::Close => return self.write().await,
            }
        }
    }

    /// Answers what is in the buffer.
    fn answer(&mut self) -> (Next, Option<oneshot::Receiver<Answer>>) {
        let mut answer = None;
        let peers = Peers {
            throttle: &*self.house.throttle,
            doorkeeper: &*self.house.doorkeeper,
        };
        let rest = self.buffer.get(self.used..).unwrap_or_default();
        let (used, next) = self.session.run(rest, &mut self.out, &peers, &mut || {
            let (sender, receiver) = oneshot::channel();
            answer = Some(receiver);
            // Whoever is gone does not hear it.
            Box::new(move |said| drop(sender.send(said)))
        });
        self.used += used;
        if !self.is_kept
            && let Some(party) = self.session.party()
        {
            self.is_kept = self.place.known(party, false);
            if !self.is_kept {
                self.out.clear();
                self.out.extend_from_slice(TOO_MANY);
                return (Next::Close, None);
            }
        }
        (next, answer)
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let writes = async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        };
        // A client that takes no answers is not waited for.
        tokio::time::timeout(WRITE_TIMEOUT, writes)
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??;
        self.out.clear();
        Ok(())
    }

    /// Moves what is not answered yet to the front.
    fn make_room(&mut self) {
        if self.used > 0 {
            self.buffer.drain(..self.used);
            self.used = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > 8 * READ_BYTES {
            self.buffer = Vec::with_capacity(READ_BYTES);
        }
    }

    /// Reads more. False if the client is gone, or has to go.
    async fn read(&mut self) -> io::Result<bool> {
        if self.buffer.len() >= BUFFER_BYTES_MAX {
            return Ok(false);
        }
        loop {
            self.buffer.reserve(READ_BYTES);
            let happening = tokio::select! {
                biased;
                read = self.stream.read_buf(&mut self.buffer) => Happening::Read(read?),
                () = &mut self.timer => Happening::Timer,
                _ = self.closing.wait_for(|is_closing| *is_closing) => Happening::Closing,
            };
            match happening {
                Happening::Read(0) | Happening::Closing => return Ok(false),
                Happening::Read(_) => {
                    let now = Instant::now();
                    self.active_at = now;
                    if now.duration_since(self.checked_at) >= CHECKED_EVERY {
                        self.checked_at = now;
                        self.session.check_again(&*self.house.doorkeeper);
                    }
                    return Ok(true);
                }
                Happening::Timer => {
                    let settings = &self.house.settings;
                    let idle = match self.session.is_known() {
                        true => settings.idle,
                        false => settings.login,
                    };
                    let ends_at = self.active_at + idle;
                    if !self.session.is_known() || ends_at <= Instant::now() {
                        return Ok(false);
                    }
                    self.timer.as_mut().reset(ends_at);
                }
            }
        }
    }

    /// Waits for an answer; meanwhile notices if the client leaves. False if it
    /// did.
    async fn wait(
        &mut self,
        ticket: Ticket,
        answer: Option<oneshot::Receiver<Answer>>,
    ) -> io::Result<bool> {
        let Some(mut answer) = answer else {
            return Ok(false);
        };
        let house = Arc::clone(&self.house);
        let mut waits = Waits {
            throttle: &*house.throttle,
            ticket: Some(ticket),
        };
        let said = loop {
            self.buffer.reserve(READ_BYTES);
            let has_room = self.buffer.len() < BUFFER_BYTES_MAX;
            tokio::select! {
                biased;
                said = &mut answer => break said,
                read = self.stream.read_buf(&mut self.buffer), if has_room => {
                    if read? == 0 {
                        return Ok(false);
                    }
                }
            }
        };
        waits.ticket = None;
        let said = said.unwrap_or(Err(ThrottleError::Closing));
        let peers = Peers {
            throttle: &*house.throttle,
            doorkeeper: &*house.doorkeeper,
        };
        self.session.answered(&said, &mut self.out, &peers);
        self.active_at = Instant::now();
        Ok(true)
    }
}
