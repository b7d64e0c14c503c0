//! From commands to answers: what one client has said so far.

use outflow_core::limit::spec::Rate;
use outflow_core::throttle::Ticket;
use outflow_core::throttle::cell::Cell;
use outflow_core::throttle::request::NO_PERMIT;
use outflow_core::time::Nanos;
use outflow_ports::throttle::{
    Acquire, Acquired, Asked, CellReply, ReleasedBy, Reply, ThenAcquired, ThrottleError, Throttling,
};

use crate::acquire::{self, Specs};
use crate::cell;
use crate::codec::{self, Found, Words};
use crate::doorkeeper::{Doorkeeper, Pass};
use crate::reply::{Out, Version};

/// Answers are written when there are so many bytes of them, also if there are
/// more commands.
const OUT_BYTES_MAX: usize = 64 << 10;
/// Tokens that are not known, before the client is sent away.
const STRIKES_MAX: u32 = 3;
/// The longest pause, in milliseconds: a day.
const PAUSE_MS_MAX: u64 = 86_400_000;

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Write what is there, then read more.
    Read,
    /// Write what is there, then go on with what is in the buffer.
    Write,
    /// Write what is there; the next answer comes later.
    Wait(Ticket),
    /// Write what is there and close.
    Close,
}

/// What one client has said so far.
pub struct Session {
    version: Version,
    pass: Option<Pass>,
    /// To ask again whether it is still good.
    token: String,
    strikes: u32,
    words: Words,
    specs: Specs,
    /// The request that waits.
    waiting: Waiting,
    id: i64,
}

/// A request that waits.
#[derive(Debug)]
enum Waiting {
    /// For these keys.
    Acquire(Vec<String>),
    /// In the words of redis-cell.
    Cell {
        space: String,
        name: String,
        burst: u32,
        rate: Rate,
    },
}

impl Default for Waiting {
    fn default() -> Self {
        Self::Acquire(Vec::new())
    }
}

/// What a session asks.
pub struct Peers<'a> {
    /// Has the limits.
    pub throttle: &'a dyn Throttling,
    /// Knows the tokens.
    pub doorkeeper: &'a dyn Doorkeeper,
}

impl Session {
    /// A client that has said nothing.
    pub fn new(id: i64) -> Self {
        Self {
            version: Version::Two,
            pass: None,
            token: String::new(),
            strikes: 0,
            words: Words::new(),
            specs: Specs::default(),
            waiting: Waiting::default(),
            id,
        }
    }

    /// Whether a token was shown.
    pub fn is_known(&self) -> bool {
        self.pass.is_some()
    }

    /// For whom the connection counts, if a token was shown.
    pub fn party(&self) -> Option<&str> {
        self.pass.as_ref().map(|pass| pass.party.as_str())
    }

    /// Asks again whether the token is good, and what it opens.
    pub fn check_again(&mut self, doorkeeper: &dyn Doorkeeper) {
        if self.pass.is_some() {
            self.pass = doorkeeper.admit(&self.token);
        }
    }

    /// Answers the commands in a buffer. How many bytes were used, and what to do
    /// next. `later` is asked for a callback only by a request that waits.
    pub fn run(
        &mut self,
        buffer: &[u8],
        bytes: &mut Vec<u8>,
        peers: &Peers<'_>,
        later: &mut dyn FnMut() -> ThenAcquired,
    ) -> (usize, Next) {
        let mut used = 0;
        let mut found = std::mem::take(&mut self.words);
        let next = loop {
            if bytes.len() >= OUT_BYTES_MAX {
                break Next::Write;
            }
            let rest = buffer.get(used..).unwrap_or_default();
            let mut out = Out::new(bytes, self.version);
            match codec::parse(rest, self.is_known(), &mut found) {
                Ok(Found::Part) => break Next::Read,
                Ok(Found::Command(length)) => {
                    used += length;
                    let words = Line::of(rest, &found);
                    match self.command(words.as_slice(), &mut out, peers, later) {
                        Next::Read => {}
                        next => break next,
                    }
                }
                Err(error) => {
                    out.error(&format!("ERR {error}"));
                    break Next::Close;
                }
            }
        };
        self.words = found;
        (used, next)
    }

    /// Writes the answer that a request waited for.
    pub fn answered(
        &mut self,
        answer: &Result<Acquired, ThrottleError>,
        bytes: &mut Vec<u8>,
        peers: &Peers<'_>,
    ) {
        let mut out = Out::new(bytes, self.version);
        match std::mem::take(&mut self.waiting) {
            Waiting::Acquire(keys) => {
                let key = |by: usize| keys.get(by).map_or("", String::as_str);
                write_acquired(answer, key, &mut out);
            }
            Waiting::Cell {
                space,
                name,
                burst,
                rate,
            } => {
                let look = Cell {
                    space: &space,
                    name: &name,
                    burst,
                    rate,
                    quantity: 0,
                };
                cell::answered(answer, &look, peers.throttle, &mut out);
            }
        }
    }

    fn command(
        &mut self,
        words: &[&[u8]],
        out: &mut Out<'_>,
        peers: &Peers<'_>,
        later: &mut dyn FnMut() -> ThenAcquired,
    ) -> Next {
        let Some((name, rest)) = words.split_first() else {
            return Next::Read;
        };
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        if let Some(pass) = &self.pass {
            // What is asked most comes first.
            if is("CL.THROTTLE") || is("THROTTLE") {
                let read = match cell::read(rest, pass.tenant().unwrap_or("")) {
                    Ok(read) => read,
                    Err(text) => {
                        out.error(&text);
                        return Next::Read;
                    }
                };
                match peers.throttle.cell(&read, later) {
                    CellReply::Now(answer) => cell::write(&answer, out),
                    CellReply::Later(ticket) => {
                        self.waiting = Waiting::Cell {
                            space: read.space.to_owned(),
                            name: read.name.to_owned(),
                            burst: read.burst,
                            rate: read.rate,
                        };
                        return Next::Wait(ticket);
                    }
                }
                return Next::Read;
            }
            if is("ACQUIRE") {
                return self.acquire(rest, out, peers, later);
            }
        }
        if is("AUTH") {
            return self.auth(rest, out, peers);
        }
        if is("HELLO") {
            return self.hello(rest, out, peers);
        }
        if is("QUIT") {
            out.simple("OK");
            return Next::Close;
        }
        if is("PING") && rest.is_empty() {
            out.simple("PONG");
            return Next::Read;
        }
        let Some(pass) = &self.pass else {
            out.error("NOAUTH Authentication required: AUTH token");
            return Next::Read;
        };
        if is("RELEASE") {
            release(pass, rest, out, peers);
        } else if is("PAUSE") {
            pause(pass, rest, out, peers);
        } else {
            courtesy(self.id, name, rest, out);
        }
        Next::Read
    }

    fn acquire(
        &mut self,
        words: &[&[u8]],
        out: &mut Out<'_>,
        peers: &Peers<'_>,
        later: &mut dyn FnMut() -> ThenAcquired,
    ) -> Next {
        let read = match acquire::read(words, &mut self.specs) {
            Ok(read) => read,
            Err(text) => {
                out.error(&text);
                return Next::Read;
            }
        };
        let pass = self.pass.as_ref();
        if !pass.is_some_and(|pass| pass.may_class(read.class)) {
            out.error(&format!(
                "NOPERM this token does not cover class {}",
                read.class
            ));
            return Next::Read;
        }
        let ask = |limits: &[Asked<'_>], later: &mut dyn FnMut() -> ThenAcquired| {
            let acquire = Acquire {
                tenant: pass.and_then(Pass::tenant),
                limits,
                class: read.class,
                wait: read.wait,
                ttl: read.ttl,
            };
            peers.throttle.acquire(&acquire, later)
        };
        let mut asked = read.asked();
        let reply = match (asked.next(), asked.next()) {
            (Some(only), None) => ask(&[only], later),
            _ => ask(&read.asked().collect::<Vec<_>>(), later),
        };
        match reply {
            Reply::Now(answer) => {
                let key = |by| read.asked().nth(by).map_or("", |it| it.key);
                write_acquired(&answer, key, out);
                Next::Read
            }
            Reply::Later(ticket) => {
                self.waiting = Waiting::Acquire(read.keys());
                Next::Wait(ticket)
            }
        }
    }

    /// `AUTH token`, or `AUTH user token` with any user.
    fn auth(&mut self, words: &[&[u8]], out: &mut Out<'_>, peers: &Peers<'_>) -> Next {
        let ([token] | [_, token]) = words else {
            out.error("ERR wrong number of arguments for 'auth' command");
            return Next::Read;
        };
        if self.admit(token, peers) {
            out.simple("OK");
            return Next::Read;
        }
        self.refuse(out)
    }

    fn admit(&mut self, token: &[u8], peers: &Peers<'_>) -> bool {
        let token = std::str::from_utf8(token).unwrap_or_default();
        self.pass = peers.doorkeeper.admit(token);
        self.token.clear();
        if self.pass.is_some() {
            self.token.push_str(token);
        }
        self.pass.is_some()
    }

    fn refuse(&mut self, out: &mut Out<'_>) -> Next {
        out.error("WRONGPASS this token is not known, or not for the throttle");
        self.strikes += 1;
        match self.strikes >= STRIKES_MAX {
            true => Next::Close,
            false => Next::Read,
        }
    }

    /// `HELLO [2|3] [AUTH user token] [SETNAME name]`.
    fn hello(&mut self, words: &[&[u8]], out: &mut Out<'_>, peers: &Peers<'_>) -> Next {
        let (version, mut rest) = match words {
            [] => (self.version, words),
            [version, rest @ ..] => match *version {
                b"2" => (Version::Two, rest),
                b"3" => (Version::Three, rest),
                _ => {
                    out.error("NOPROTO unsupported protocol version");
                    return Next::Read;
                }
            },
        };
        loop {
            rest = match rest {
                [] => break,
                [word, _, token, rest @ ..] if word.eq_ignore_ascii_case(b"AUTH") => {
                    if !self.admit(token, peers) {
                        return self.refuse(out);
                    }
                    rest
                }
                [word, _, rest @ ..] if word.eq_ignore_ascii_case(b"SETNAME") => rest,
                _ => {
                    out.error("ERR Syntax error in HELLO");
                    return Next::Read;
                }
            };
        }
        if self.pass.is_none() {
            out.error("NOAUTH HELLO must be called with AUTH user token");
            return Next::Read;
        }
        self.version = version;
        out.set_version(version);
        out.map(7);
        for (name, value) in [
            ("server", "outflow"),
            ("version", env!("CARGO_PKG_VERSION")),
        ] {
            out.bulk(name.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"proto");
        out.integer(match version {
            Version::Two => 2,
            Version::Three => 3,
        });
        out.bulk(b"id");
        out.integer(self.id);
        for (name, value) in [("mode", "standalone"), ("role", "master")] {
            out.bulk(name.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"modules");
        out.array(0);
        Next::Read
    }
}

/// The words of a command: on the stack, if there are few.
enum Line<'a> {
    Few([&'a [u8]; 8], usize),
    Many(Vec<&'a [u8]>),
}

impl<'a> Line<'a> {
    fn of(buffer: &'a [u8], words: &Words) -> Self {
        let texts = words
            .iter()
            .map(|word| buffer.get(word.clone()).unwrap_or_default());
        let mut few: [&[u8]; 8] = [&[]; 8];
        if words.len() > few.len() {
            return Self::Many(texts.collect());
        }
        for (place, text) in few.iter_mut().zip(texts) {
            *place = text;
        }
        Self::Few(few, words.len())
    }

    fn as_slice(&self) -> &[&'a [u8]] {
        match self {
            Self::Few(few, count) => few.get(..*count).unwrap_or_default(),
            Self::Many(many) => many,
        }
    }
}

fn release(pass: &Pass, words: &[&[u8]], out: &mut Out<'_>, peers: &Peers<'_>) {
    let [permit] = words else {
        out.error("ERR usage: RELEASE permit");
        return;
    };
    let text = std::str::from_utf8(permit).unwrap_or_default();
    if text == NO_PERMIT {
        out.integer(0);
        return;
    }
    match text.parse() {
        Ok(permit) => {
            let by = ReleasedBy::Holder(pass.tenant());
            out.integer(peers.throttle.release(by, permit).into());
        }
        Err(error) => out.error(&format!("ERR {error}")),
    }
}

fn pause(pass: &Pass, words: &[&[u8]], out: &mut Out<'_>, peers: &Peers<'_>) {
    let read = match words {
        [key, millis] => {
            let millis = std::str::from_utf8(millis)
                .ok()
                .and_then(|it| it.parse().ok());
            std::str::from_utf8(key).ok().zip(millis)
        }
        _ => None,
    };
    let Some((key, millis)) = read.filter(|(_, millis): &(_, u64)| *millis <= PAUSE_MS_MAX) else {
        out.error("ERR usage: PAUSE key milliseconds, at most a day");
        return;
    };
    let lasts = Nanos::from_millis(millis);
    match peers.throttle.pause(pass.tenant(), key, lasts) {
        Ok(()) => out.simple("OK"),
        Err(error) => out.error(&format!("ERR {error}")),
    }
}

/// What clients and tools ask before they begin.
fn courtesy(id: i64, name: &[u8], words: &[&[u8]], out: &mut Out<'_>) {
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let first_is = |word: &str| {
        let first = words.first();
        first.is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
    };
    match words {
        [text] if is("PING") || is("ECHO") => out.bulk(text),
        [b"0"] if is("SELECT") => out.simple("OK"),
        [_] if is("SELECT") => out.error("ERR DB index is out of range"),
        _ if is("CLIENT") && (first_is("SETNAME") || first_is("SETINFO")) => out.simple("OK"),
        _ if is("CLIENT") && first_is("ID") => out.integer(id),
        _ if is("COMMAND") || is("CONFIG") => out.array(0),
        _ if is("INFO") => {
            let version = env!("CARGO_PKG_VERSION");
            let text = format!("# Server\r\nserver:outflow\r\noutflow_version:{version}\r\n");
            out.bulk(text.as_bytes());
        }
        _ => {
            let name = String::from_utf8_lossy(name.get(..name.len().min(64)).unwrap_or_default());
            out.error(&format!(
                "ERR unknown command '{name}', or wrong number of arguments for it"
            ));
        }
    }
}

fn write_acquired<'k>(
    answer: &Result<Acquired, ThrottleError>,
    key: impl FnOnce(usize) -> &'k str,
    out: &mut Out<'_>,
) {
    match answer {
        Ok(acquired) => acquire::write(acquired, key, out),
        Err(error @ ThrottleError::NotYours { .. }) => out.error(&format!("NOPERM {error}")),
        Err(error @ (ThrottleError::Crowded | ThrottleError::Closing)) => {
            out.error(&format!("BUSY {error}"));
        }
        Err(error) => out.error(&format!("ERR {error}")),
    }
}
