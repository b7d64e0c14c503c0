//! The server at the far end: takes every message and keeps none. One thread,
//! the same for all sides, and no more work than reading to the end of each
//! message, so that it is not what is measured.
//!
//! It counts recipients, each once, so that a message that is lost does not go
//! unnoticed behind another that came twice.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use memchr::{memchr, memmem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::cpu::ThreadCpu;
use crate::server::block_on;

const READ_BYTES: usize = 64 << 10;
const END: &[u8] = b"\r\n.\r\n";
/// How often is looked how far it has come.
const LOOK: Duration = Duration::from_millis(2);

/// What has come in so far.
#[derive(Debug, Default)]
struct Taken {
    messages: AtomicU64,
    bytes: AtomicU64,
    recipients: AtomicU64,
}

/// A running sink. It ends when it is dropped.
pub struct Sink {
    pub address: SocketAddr,
    pub cpu: ThreadCpu,
    taken: Arc<Taken>,
    _running: oneshot::Sender<()>,
}

impl Sink {
    /// Starts one. With `chunking` it offers CHUNKING too.
    pub fn start(chunking: bool) -> io::Result<Self> {
        let taken = Arc::new(Taken::default());
        let (started, ready) = channel();
        let (running, stopped) = oneshot::channel();
        let theirs = Arc::clone(&taken);
        std::thread::spawn(move || block_on(listen(theirs, chunking, started, stopped)));
        let (address, cpu) = ready.recv().map_err(io::Error::other)?;
        Ok(Self {
            address,
            cpu,
            taken,
            _running: running,
        })
    }

    pub fn messages(&self) -> u64 {
        self.taken.messages.load(Ordering::Acquire)
    }

    /// Waits until so many have come in, and sees whether they are the right
    /// ones.
    pub async fn wait(&self, count: u64, payload: usize, patience: Duration) -> io::Result<()> {
        let began = Instant::now();
        while self.messages() < count {
            if began.elapsed() > patience {
                let came = self.messages();
                let text = format!("only {came} of {count} messages reached the sink");
                return Err(io::Error::other(text));
            }
            tokio::time::sleep(LOOK).await;
        }
        let recipients = self.taken.recipients.load(Ordering::Acquire);
        let bytes = self.taken.bytes.load(Ordering::Acquire);
        match recipients == count && bytes >= count * payload as u64 {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the sink took {count} messages, but {bytes} bytes for {recipients} recipients"
            ))),
        }
    }
}

async fn listen(
    taken: Arc<Taken>,
    chunking: bool,
    started: Sender<(SocketAddr, ThreadCpu)>,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let _ = started.send((listener.local_addr()?, ThreadCpu::of_this()?));
    let hello: &'static [u8] = match chunking {
        true => b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-CHUNKING\r\n250 SIZE\r\n",
        false => b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE\r\n",
    };
    let seen = Rc::new(RefCell::new(Seen::default()));
    let local = LocalSet::new();
    let accepting = local.run_until(async {
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let conversation = Conversation {
                taken: Arc::clone(&taken),
                seen: Rc::clone(&seen),
                hello,
                state: State::Command,
            };
            tokio::task::spawn_local(conversation.hold(stream));
        }
    });
    tokio::select! {
        ended = accepting => ended,
        _ = stopped => Ok(()),
    }
}

/// The numbers of the recipients that came, a bit each.
#[derive(Default)]
struct Seen(Vec<u64>);

impl Seen {
    /// Whether this one is new.
    fn note(&mut self, no: usize) -> bool {
        let (word, bit) = (no / 64, 1 << (no % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

enum State {
    Command,
    /// Between DATA and its end.
    Data,
    /// So many bytes of a chunk are to come.
    Chunk(usize),
    Over,
}

struct Conversation {
    taken: Arc<Taken>,
    seen: Rc<RefCell<Seen>>,
    hello: &'static [u8],
    state: State,
}

impl Conversation {
    async fn hold(mut self, mut stream: TcpStream) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        let mut replies = Vec::new();
        stream.write_all(b"220 sink ESMTP\r\n").await?;
        while !matches!(self.state, State::Over) {
            if stream.read_buf(&mut buffer).await? == 0 {
                break;
            }
            let mut used = 0;
            while let Some(count) = self.step(&buffer[used..], &mut replies) {
                used += count;
            }
            buffer.drain(..used);
            if !replies.is_empty() {
                stream.write_all(&replies).await?;
                replies.clear();
            }
        }
        Ok(())
    }

    /// Does what the next bytes say: how many those were, if there are enough.
    fn step(&mut self, bytes: &[u8], replies: &mut Vec<u8>) -> Option<usize> {
        match self.state {
            State::Command => {
                let end = memchr(b'\n', bytes)? + 1;
                self.command(&bytes[..end], replies);
                Some(end)
            }
            State::Data => {
                let end = memmem::find(bytes, END)? + END.len();
                self.message(end, replies);
                Some(end)
            }
            State::Chunk(size) if bytes.len() >= size => {
                self.message(size, replies);
                Some(size)
            }
            State::Chunk(_) | State::Over => None,
        }
    }

    fn command(&mut self, line: &[u8], replies: &mut Vec<u8>) {
        let reply: &[u8] = match line.get(..4).unwrap_or(line) {
            b"EHLO" | b"HELO" => self.hello,
            b"RCPT" => {
                self.recipient(line);
                b"250 2.1.5 Ok\r\n"
            }
            b"MAIL" | b"RSET" | b"NOOP" => b"250 2.1.0 Ok\r\n",
            b"DATA" => {
                self.state = State::Data;
                b"354 Go on\r\n"
            }
            b"BDAT" => {
                let size = line.split(|byte| *byte == b' ').nth(1);
                let size = size.and_then(|size| std::str::from_utf8(size).ok());
                let size = size.and_then(|size| size.trim_end().parse().ok());
                self.state = size.map_or(State::Over, State::Chunk);
                b""
            }
            b"QUIT" => {
                self.state = State::Over;
                b"221 2.0.0 Bye\r\n"
            }
            _ => b"502 5.5.1 What?\r\n",
        };
        replies.extend_from_slice(reply);
    }

    fn recipient(&self, line: &[u8]) {
        let digits = line.iter().skip_while(|byte| **byte != b'<').skip(1);
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        let no = digits.fold(0, |no, digit| no * 10 + usize::from(digit - b'0'));
        if self.seen.borrow_mut().note(no) {
            self.taken.recipients.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn message(&mut self, bytes: usize, replies: &mut Vec<u8>) {
        self.state = State::Command;
        self.taken.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.taken.messages.fetch_add(1, Ordering::Release);
        replies.extend_from_slice(b"250 2.0.0 Taken\r\n");
    }
}
