//! One SMTP connection, from the server's side, without input and output.
//!
//! Bytes come in; replies, and what must be done before the next one
//! ([`Output`]), come out. While something is to be done, what was sent after it
//! waits. So every client, honest or not, split at any byte, is a test without a
//! socket.
//!
//! All of it is bounded: lines, recipients, bytes of a message, errors and
//! commands of a connection. Commands end with CRLF, and data with CRLF, a dot
//! and CRLF; nothing else does. Nobody gets past MAIL without a token; where
//! reports return to, nobody gets past RCPT without one, except to an address
//! that we signed.
//!
//! Reading order: [`reply`], [`login`], [`data`], [`returns`], `transaction`, this file (the
//! connection), `commands` (what each of them does), `body` (what comes behind
//! DATA and BDAT); [`feed`](mod@feed) is for fuzz targets.

mod body;
mod commands;
pub mod data;
pub mod feed;
pub mod login;
pub mod reply;
pub mod returns;
#[cfg(test)]
mod tests;
mod transaction;

use std::sync::Arc;

use memchr::memchr;
use outflow_core::message_id::MessageId;

use body::Chunk;
use data::DataReader;
pub use feed::feed;
use login::{Next, Step, Token};
use reply::Reply;
pub use returns::Returns;
pub use transaction::Handed;
use transaction::Transaction;

/// The most bytes of a command line, with its end: 512 (RFC 5321) and what
/// extensions add.
pub const LINE_BYTES_MAX: usize = 2_048;
/// Failed logins of a connection.
const FAILURES_MAX: u32 = 3;

/// What a session is told once.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What the server calls itself.
    pub hostname: String,
    /// Bytes of a message.
    pub message_bytes_max: usize,
    /// Recipients of a message.
    pub recipients_max: usize,
    /// Errors of a connection, since its last message.
    pub errors_max: u32,
    /// Commands of a connection; recipients that were taken do not count.
    pub commands_max: u32,
    /// Where reports return to; without it nothing is taken without a token.
    pub returns: Option<Returns>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            hostname: "localhost".to_owned(),
            message_bytes_max: 25 << 20,
            recipients_max: outflow_ports::draft::RECIPIENTS_MAX,
            errors_max: 20,
            commands_max: 100_000,
            returns: None,
        }
    }
}

/// How safe a connection is before TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whether STARTTLS can be offered.
    pub can_tls: bool,
    /// Whether a token may be shown without TLS: the peer is this machine.
    pub is_trusted: bool,
}

/// What must be done before the session goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Write the replies, do the TLS handshake, then call
    /// [`on_tls`](Session::on_tls).
    StartTls,
    /// Look the token up, then call [`on_admitted`](Session::on_admitted).
    Authenticate(Token),
    /// Make the message durable, then call [`on_stored`](Session::on_stored).
    Deliver(Box<Handed>),
    /// Write the replies and close the connection; nothing more comes.
    Close,
}

#[derive(Debug)]
enum State {
    Command,
    Login(Step),
    Data(DataReader),
    Chunk(Chunk),
    /// For the handshake.
    WaitsForTls,
    /// For the doorkeeper.
    WaitsForPass,
    /// For the store.
    WaitsForStore,
    Over,
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    rules: Arc<Rules>,
    line: Line,
    state: State,
    /// A command line that has begun.
    begun: Vec<u8>,
    /// What came while the session waits.
    rest: Vec<u8>,
    replies: Vec<u8>,
    /// Codes and statuses of replies that said no.
    refusals: Vec<(u16, &'static str)>,
    output: Option<Output>,
    transaction: Option<Transaction>,
    has_greeted: bool,
    is_protected: bool,
    is_admitted: bool,
    is_overloaded: bool,
    is_closing: bool,
    errors: u32,
    commands: u32,
    failures: u32,
    steps: u64,
}

impl Session {
    /// A connection that was just made: the greeting is among the replies.
    pub fn new(rules: Arc<Rules>, line: Line) -> Self {
        let mut session = Self {
            line,
            state: State::Command,
            begun: Vec::new(),
            rest: Vec::new(),
            replies: Vec::new(),
            refusals: Vec::new(),
            output: None,
            transaction: None,
            has_greeted: false,
            is_protected: false,
            is_admitted: false,
            is_overloaded: false,
            is_closing: false,
            errors: 0,
            commands: 0,
            failures: 0,
            steps: 0,
            rules,
        };
        let greeting = format!("{} ESMTP Outflow", session.rules.hostname);
        session.say(&Reply::new(220, "", greeting));
        session
    }

    /// What must be done next, once. Until it is answered the session only
    /// collects bytes: do not read from the connection meanwhile.
    pub fn next_output(&mut self) -> Option<Output> {
        self.output.take()
    }

    /// Whether something must be done.
    pub fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// What is to be written, in one piece. Take it by clearing it.
    pub fn replies(&mut self) -> &mut Vec<u8> {
        &mut self.replies
    }

    /// The codes and statuses of replies that said no, since this was last asked.
    /// There are few: whoever hears many is sent away.
    pub fn take_refusals(&mut self) -> Vec<(u16, &'static str)> {
        std::mem::take(&mut self.refusals)
    }

    /// Counts what was achieved: when it changes, the idle time begins anew. A
    /// byte is no achievement, so a client cannot drip.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether a message is coming in.
    pub fn is_in_data(&self) -> bool {
        matches!(self.state, State::Data(_) | State::Chunk(_))
    }

    /// Bytes of a message that are held.
    pub fn held(&self) -> usize {
        let held = self.transaction.as_ref();
        held.map_or(0, |transaction| transaction.bytes.capacity())
    }

    /// Whether messages can be taken now; if not, they are refused before their
    /// data.
    pub fn set_overloaded(&mut self, is_overloaded: bool) {
        self.is_overloaded = is_overloaded;
    }

    /// Lets the bytes of a message go that is coming in: it will be refused.
    pub fn shed(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.is_shed = true;
            transaction.bytes = Vec::new();
        }
    }

    /// Bytes came.
    pub fn on_bytes(&mut self, bytes: &[u8]) {
        match self.state {
            State::Over => {}
            // Nothing may be said between STARTTLS and the handshake.
            State::WaitsForTls => self.injected(),
            State::WaitsForPass | State::WaitsForStore => self.rest.extend_from_slice(bytes),
            _ => self.run(bytes),
        }
    }

    /// The TLS handshake is done. All that was said before is forgotten.
    pub fn on_tls(&mut self) {
        if !matches!(self.state, State::WaitsForTls) {
            return;
        }
        self.is_protected = true;
        self.has_greeted = false;
        self.is_admitted = false;
        self.transaction = None;
        self.steps += 1;
        self.go_on();
    }

    /// The token is good, and whoever has it has as many connections as they may
    /// have.
    pub fn on_crowded(&mut self) {
        if !matches!(self.state, State::WaitsForPass) {
            return;
        }
        self.state = State::Command;
        let text = "too many connections with this token, or of its tenant: try again later";
        self.refuse(&Reply::new(421, "4.7.0", text));
        self.close();
    }

    /// Whether the token that was shown opens anything.
    pub fn on_admitted(&mut self, is_admitted: bool) {
        if !matches!(self.state, State::WaitsForPass) {
            return;
        }
        self.state = State::Command;
        if is_admitted {
            self.is_admitted = true;
            self.steps += 1;
            self.say(&Reply::new(235, "2.7.0", "Authentication succeeded"));
        } else {
            self.failures += 1;
            let text = "this token is not known: the password is a submit token";
            self.refuse(&Reply::new(535, "5.7.8", text));
            if self.failures >= FAILURES_MAX {
                self.close();
            }
        }
        self.go_on();
    }

    /// The message is durable under this id, or was refused.
    pub fn on_stored(&mut self, result: Result<MessageId, Reply>) {
        self.on_end(result.map(|id| format!("Ok: queued as {id}")));
    }

    /// The report was heard, or was refused.
    pub fn on_heard(&mut self, result: Result<(), Reply>) {
        self.on_end(result.map(|()| "Ok: heard".to_owned()));
    }

    fn on_end(&mut self, result: Result<String, Reply>) {
        if !matches!(self.state, State::WaitsForStore) {
            return;
        }
        self.steps += 1;
        self.state = State::Command;
        match result {
            Ok(text) => {
                // Whoever sends good messages may make mistakes in between.
                self.errors = 0;
                self.say(&Reply::new(250, "2.0.0", text));
            }
            Err(reply) if reply.code() == 421 => {
                self.say(&reply);
                self.close();
            }
            Err(reply) => {
                // A token that was withdrawn opens nothing more.
                self.is_admitted &= reply.code() != 530;
                self.refuse(&reply);
            }
        }
        self.go_on();
    }

    /// The client took too long.
    pub fn on_timeout(&mut self) {
        self.bye(Reply::new(421, "4.4.2", "timed out"));
    }

    /// The server is shutting down: a message that is coming in may finish.
    pub fn on_closing(&mut self) {
        self.is_closing = true;
        let is_busy = self.is_in_data() || matches!(self.state, State::WaitsForStore);
        if !is_busy {
            self.farewell();
        }
    }

    /// Leaves what waits, and takes up what was sent meanwhile.
    fn go_on(&mut self) {
        if matches!(self.state, State::WaitsForTls) {
            self.state = State::Command;
        }
        if matches!(self.state, State::Over) {
            return;
        }
        if self.is_closing {
            return self.farewell();
        }
        let rest = std::mem::take(&mut self.rest);
        self.run(&rest);
    }

    fn run(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            bytes = match self.state {
                State::Command | State::Login(_) => self.take_line(bytes),
                State::Data(_) => self.take_data(bytes),
                State::Chunk(_) => self.take_chunk(bytes),
                State::WaitsForTls => return self.injected(),
                State::WaitsForPass | State::WaitsForStore => {
                    self.rest = bytes.to_vec();
                    return;
                }
                State::Over => return,
            };
        }
    }

    fn take_line<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = memchr(b'\n', bytes);
        let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |at| at + 1));
        if self.begun.len() + line.len() > LINE_BYTES_MAX {
            // What follows is not looked at: its rest must not become a command.
            self.bye(Reply::new(500, "5.5.2", "the line is too long"));
            return &[];
        }
        if end.is_none() {
            self.begun.extend_from_slice(line);
        } else if self.begun.is_empty() {
            self.on_line(line);
        } else {
            let mut whole = std::mem::take(&mut self.begun);
            whole.extend_from_slice(line);
            self.on_line(&whole);
            whole.clear();
            self.begun = whole;
        }
        rest
    }

    fn on_line(&mut self, line: &[u8]) {
        let text = line.strip_suffix(b"\r\n");
        let is_plain = |text: &&[u8]| !text.iter().any(|byte| matches!(byte, 0 | b'\r'));
        let text = text.filter(is_plain);
        let Some(text) = text.and_then(|text| std::str::from_utf8(text).ok()) else {
            self.state = State::Command;
            let text = "a command is one line of UTF-8 that ends with CR LF";
            return self.refuse(&Reply::new(500, "5.5.2", text));
        };
        match self.state {
            State::Login(step) => {
                self.state = State::Command;
                match text {
                    "*" => self.refuse(&Reply::new(501, "5.7.0", "Authentication cancelled")),
                    _ => self.on_answer(step.answer(text)),
                }
            }
            _ => self.on_command(text, line),
        }
    }

    fn on_answer(&mut self, next: Next) {
        match next {
            Next::Ask(step) => {
                self.replies.extend_from_slice(step.question());
                self.state = State::Login(step);
            }
            Next::Shown(token) => {
                self.state = State::WaitsForPass;
                self.output = Some(Output::Authenticate(token));
            }
            Next::Garbled => {
                let text = "not base64, or not what this mechanism says";
                self.refuse(&Reply::new(501, "5.5.2", text));
            }
        }
    }

    /// Somebody went on in the open behind STARTTLS: it would be taken for what
    /// was said inside.
    fn injected(&mut self) {
        self.rest = Vec::new();
        self.replies.clear();
        let text = "commands behind STARTTLS in the open: somebody may be in between";
        self.bye(Reply::new(554, "5.7.0", text));
    }

    fn farewell(&mut self) {
        self.bye(Reply::new(421, "4.3.2", "the server is shutting down"));
    }

    /// Says a last word.
    fn bye(&mut self, reply: Reply) {
        if !matches!(self.state, State::Over) {
            self.say(&reply);
            self.close();
        }
    }

    fn close(&mut self) {
        self.state = State::Over;
        self.transaction = None;
        self.rest = Vec::new();
        self.output = Some(Output::Close);
    }

    fn say(&mut self, reply: &Reply) {
        reply.write(&mut self.replies);
        if reply.code() >= 400 {
            self.refusals.push((reply.code(), reply.status()));
        }
    }

    /// Says no, and counts it.
    fn refuse(&mut self, reply: &Reply) {
        if matches!(self.state, State::Over) {
            return;
        }
        self.say(reply);
        self.errors += 1;
        if self.errors > self.rules.errors_max {
            self.bye(Reply::new(421, "4.7.0", "too many errors"));
        }
    }
}

fn too_large(bytes_max: usize) -> Reply {
    let text = format!("the message is too large: at most {bytes_max} bytes");
    Reply::new(552, "5.3.4", text)
}

fn overloaded() -> Reply {
    Reply::new(452, "4.3.1", "too busy for another message: try again soon")
}
