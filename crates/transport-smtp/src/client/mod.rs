//! One SMTP connection, from the client's side, without input and output.
//!
//! Bytes, the end of the connection and time-outs come in; bytes to write, the
//! wish for TLS and what became of messages come out. So every reply a hostile
//! server could give, split at any byte, is a test without a socket. What can be
//! said by types is: after the last byte of a message was handed over, a lost
//! connection is *uncertain*, unless the verdict had begun; before that it is a
//! failure of the network.
//!
//! Reading order: `reply` (the bounded reader), `offers` (EHLO), `login` (AUTH),
//! `timeouts`, `transaction` (one message), this file (the connection).

pub mod login;
pub mod offers;
pub mod reply;
#[cfg(test)]
mod tests;
pub mod timeouts;
mod transaction;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::Mail;

use login::{Login, LoginStep, Step};
use offers::Offers;
use reply::{ReplyReader, SmtpReply};
use timeouts::Timeouts;
use transaction::{Next, Transaction};

/// How a connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not at all.
    None,
    /// STARTTLS where it is offered; certificates are not checked.
    Opportunistic,
    /// STARTTLS, or nothing is sent.
    Starttls,
    /// From the first byte.
    Implicit,
}

/// What a client is told once.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// What we call ourselves; checked by whoever made it.
    pub helo: String,
    /// How the connection is protected.
    pub tls: Tls,
    /// Who we are to the server.
    pub login: Option<Login>,
    /// Whether a password may go over an open line.
    pub password_in_clear: bool,
    /// Whether CHUNKING is used where it is offered.
    pub chunking: bool,
    /// How long each step may take.
    pub timeouts: Timeouts,
}

/// What the client wants, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Write these bytes.
    Write(Vec<u8>),
    /// Begin the TLS handshake; answer with [`Client::on_tls`].
    StartTls,
    /// A message can be sent.
    Ready,
    /// The session could not be opened.
    Failed(Reply),
    /// What became of the message; whether the session can take another.
    Replied {
        /// The reply.
        reply: Reply,
        /// Whether the session lives on.
        lives: bool,
    },
    /// Close the connection; nothing more comes.
    Close,
}

#[derive(Debug)]
enum State {
    Greeting,
    Ehlo,
    Helo,
    StartTls,
    Handshake,
    Login(LoginStep),
    Idle,
    Busy(Box<Transaction>),
    Quitting,
    Over,
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    settings: Arc<ClientSettings>,
    state: State,
    reader: ReplyReader,
    offers: Offers,
    is_protected: bool,
    /// Whether TLS is required and the server does not let us have it.
    lacks_tls: bool,
    /// Whether the last transaction was left half done.
    needs_reset: bool,
    steps: u64,
    outputs: VecDeque<Output>,
}

impl Client {
    /// A connection that was just made; the server speaks first.
    pub fn new(settings: Arc<ClientSettings>) -> Self {
        Self {
            is_protected: settings.tls == Tls::Implicit,
            settings,
            state: State::Greeting,
            reader: ReplyReader::default(),
            offers: Offers::default(),
            lacks_tls: false,
            needs_reset: false,
            steps: 0,
            outputs: VecDeque::new(),
        }
    }

    /// What it wants next.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What the server offers, once the session is ready.
    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Whether the session could not be opened since TLS is required and the
    /// server does not offer it, or refused to begin.
    pub fn lacks_tls(&self) -> bool {
        self.lacks_tls
    }

    /// Counts what was achieved: when it changes, the time-out begins anew. A
    /// byte of a reply is no achievement, so a server cannot drip.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How long a whole delivery may take.
    pub fn delivery_timeout(&self) -> Duration {
        self.settings.timeouts.delivery
    }

    /// How long the present step may take; none while idle.
    pub fn timeout(&self) -> Option<Duration> {
        let times = &self.settings.timeouts;
        match &self.state {
            State::Greeting => Some(times.greeting),
            State::Ehlo | State::Helo => Some(times.hello),
            State::StartTls | State::Handshake => Some(times.starttls),
            State::Login(_) => Some(times.login),
            State::Idle => None,
            State::Busy(transaction) => Some(transaction.timeout(times)),
            State::Quitting => Some(times.quit),
            State::Over => Some(Duration::ZERO),
        }
    }

    /// Bytes came.
    pub fn on_bytes(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
        loop {
            if matches!(self.state, State::Over) {
                return;
            }
            match self.reader.next_reply() {
                Ok(None) => return,
                Ok(Some(reply)) => {
                    self.steps += 1;
                    self.on_reply(reply);
                }
                Err(garbled) => return self.fail(&format!("the server is garbled: {garbled}")),
            }
        }
    }

    /// The connection ended, for this reason.
    pub fn on_closed(&mut self, why: &str) {
        self.fail(why);
    }

    /// The present step took too long.
    pub fn on_timeout(&mut self) {
        self.fail("timed out");
    }

    /// All bytes that were to be written are written.
    pub fn on_written(&mut self) {
        if let State::Busy(transaction) = &mut self.state {
            transaction.on_written();
        }
    }

    /// The TLS handshake is done, or failed for this reason.
    pub fn on_tls(&mut self, result: Result<(), String>) {
        match (&self.state, result) {
            (State::Handshake, Ok(())) => {
                self.steps += 1;
                self.is_protected = true;
                self.offers = Offers::default();
                self.hello();
            }
            (_, Ok(())) => {}
            (_, Err(why)) => self.fail(&format!("TLS: {why}")),
        }
    }

    /// Sends a message. Only when it is ready and nothing is under way.
    pub fn deliver(&mut self, mail: Mail) {
        if !matches!(self.state, State::Idle) {
            let stage = Stage::Connect;
            let text = Cow::Borrowed("the session is not ready for a message");
            let reply = Reply::Network { stage, text };
            let lives = false;
            return self.outputs.push_back(Output::Replied { reply, lives });
        }
        self.steps += 1;
        let chunking = self.settings.chunking;
        match Transaction::begin(mail, &self.offers, chunking, self.needs_reset) {
            Ok((transaction, bytes)) => {
                self.needs_reset = true;
                self.state = State::Busy(Box::new(transaction));
                self.write(bytes);
            }
            Err(reply) => self
                .outputs
                .push_back(Output::Replied { reply, lives: true }),
        }
    }

    /// Says goodbye. Only when nothing is under way; else it just closes.
    pub fn quit(&mut self) {
        match self.state {
            State::Idle => {
                self.steps += 1;
                self.state = State::Quitting;
                self.write(b"QUIT\r\n".to_vec());
            }
            _ => self.fail("the session is closed"),
        }
    }

    fn write(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Write(bytes));
    }

    fn on_reply(&mut self, reply: SmtpReply) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Greeting => match reply.code {
                220 => self.hello(),
                _ => self.refused(Stage::Greeting, &reply),
            },
            State::Ehlo => match reply.code {
                250..=259 => {
                    self.offers = Offers::parse(reply.lines());
                    self.greeted();
                }
                // A server that does not know EHLO offers nothing.
                500..=599 => {
                    self.state = State::Helo;
                    self.write(format!("HELO {}\r\n", self.settings.helo).into_bytes());
                }
                _ => self.refused(Stage::Greeting, &reply),
            },
            State::Helo => match reply.code {
                250..=259 => self.greeted(),
                _ => self.refused(Stage::Greeting, &reply),
            },
            State::StartTls => self.on_starttls(&reply),
            State::Login(step) => self.on_login(step, &reply),
            State::Busy(transaction) => self.on_transaction(transaction, &reply),
            // Nobody asked: it says goodbye, or talks nonsense.
            State::Handshake | State::Idle | State::Quitting | State::Over => self.close(),
        }
    }

    fn hello(&mut self) {
        self.state = State::Ehlo;
        self.write(format!("EHLO {}\r\n", self.settings.helo).into_bytes());
    }

    fn greeted(&mut self) {
        let wants_tls = matches!(self.settings.tls, Tls::Starttls | Tls::Opportunistic);
        if wants_tls && !self.is_protected {
            if self.offers.starttls {
                self.state = State::StartTls;
                return self.write(b"STARTTLS\r\n".to_vec());
            }
            if self.settings.tls == Tls::Starttls {
                self.state = State::StartTls;
                self.lacks_tls = true;
                return self.fail("TLS is required, but the server does not offer STARTTLS");
            }
        }
        self.log_in();
    }

    fn on_starttls(&mut self, reply: &SmtpReply) {
        self.state = State::StartTls;
        match reply.code {
            // What came in the open behind the answer was put there by somebody
            // in between: it would be taken for an answer inside.
            220 if !self.reader.is_empty() => {
                self.lacks_tls = true;
                self.fail("TLS: the server went on in the open after STARTTLS");
            }
            220 => {
                self.state = State::Handshake;
                self.outputs.push_back(Output::StartTls);
            }
            421 => self.refused(Stage::Greeting, reply),
            _ if self.settings.tls == Tls::Opportunistic => self.log_in(),
            _ => {
                self.lacks_tls = true;
                self.refused(Stage::Greeting, reply);
            }
        }
    }

    fn log_in(&mut self) {
        let Some(login) = &self.settings.login else {
            return self.ready();
        };
        let in_clear = self.is_protected || self.settings.password_in_clear;
        match LoginStep::begin(login, &self.offers, in_clear) {
            Ok((step, line)) => {
                self.state = State::Login(step);
                self.write(line);
            }
            Err(why) => {
                let (stage, text) = (Stage::Auth, Cow::Owned(why));
                let reply = Reply::Network { stage, text };
                self.outputs.push_back(Output::Failed(reply));
                self.close();
            }
        }
    }

    fn on_login(&mut self, step: LoginStep, reply: &SmtpReply) {
        let Some(login) = &self.settings.login else {
            return self.close();
        };
        match step.on_reply(login, reply) {
            Step::Done => self.ready(),
            Step::Say(step, line) => {
                self.state = State::Login(step);
                self.write(line);
            }
            Step::Refused => self.refused(Stage::Auth, reply),
        }
    }

    fn ready(&mut self) {
        self.state = State::Idle;
        self.outputs.push_back(Output::Ready);
    }

    fn on_transaction(&mut self, mut transaction: Box<Transaction>, reply: &SmtpReply) {
        match transaction.on_reply(reply) {
            Next::Wait => self.state = State::Busy(transaction),
            Next::Write(bytes) => {
                self.state = State::Busy(transaction);
                self.write(bytes);
            }
            Next::Done { reply, is_clean } => {
                self.needs_reset = !is_clean;
                self.state = State::Idle;
                self.outputs
                    .push_back(Output::Replied { reply, lives: true });
            }
            Next::Over(reply) => {
                let lives = false;
                self.outputs.push_back(Output::Replied { reply, lives });
                self.close();
            }
        }
    }

    /// The server refused to open the session.
    fn refused(&mut self, stage: Stage, reply: &SmtpReply) {
        let reply = match reply.code {
            400..=599 => reply.said(stage),
            code => Reply::Network {
                stage,
                text: Cow::Owned(format!("the server answered {code} out of turn")),
            },
        };
        self.outputs.push_back(Output::Failed(reply));
        self.close();
    }

    /// The connection is of no use any more: what that means depends on how far
    /// it came.
    fn fail(&mut self, why: &str) {
        let text = || Cow::Owned(why.to_owned());
        let network = |stage| Reply::Network {
            stage,
            text: text(),
        };
        let output = match std::mem::replace(&mut self.state, State::Over) {
            State::Over => return,
            State::Greeting | State::Ehlo | State::Helo | State::StartTls | State::Handshake => {
                Some(Output::Failed(network(Stage::Greeting)))
            }
            State::Login(_) => Some(Output::Failed(network(Stage::Auth))),
            State::Idle | State::Quitting => None,
            State::Busy(transaction) => {
                let verdict = self.reader.begun();
                let (reply, lives) = (transaction.lost(why, verdict.as_ref()), false);
                Some(Output::Replied { reply, lives })
            }
        };
        self.outputs.extend(output);
        self.close();
    }

    fn close(&mut self) {
        self.state = State::Over;
        self.outputs.push_back(Output::Close);
    }
}
