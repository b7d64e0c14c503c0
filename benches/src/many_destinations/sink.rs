//! A mail server that takes the same time for every message.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::sleep_until;

use crate::server::block_on;

const LOOK: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Taken {
    messages: AtomicU64,
    connections: AtomicU64,
    /// How long connections carried messages, all added up.
    busy_ns: AtomicU64,
    /// When the first connection came and the last message was taken.
    times: Mutex<Option<(Instant, Instant)>>,
}

impl Taken {
    fn mark(&self) {
        let now = Instant::now();
        if let Ok(mut times) = self.times.lock() {
            let first = times.map_or(now, |(first, _)| first);
            *times = Some((first, now));
        }
    }

    /// A message that began then was taken.
    fn end(&self, began: Instant) {
        self.mark();
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.busy_ns.fetch_add(ns, Ordering::Relaxed);
        self.messages.fetch_add(1, Ordering::Release);
    }
}

/// A running sink. It ends when it is dropped.
pub struct SlowSink {
    pub port: u16,
    taken: Arc<Taken>,
    _running: oneshot::Sender<()>,
}

impl SlowSink {
    pub fn start(service: Duration) -> io::Result<Self> {
        let taken = Arc::new(Taken::default());
        let (started, ready) = channel();
        let (running, stopped) = oneshot::channel();
        let theirs = Arc::clone(&taken);
        std::thread::spawn(move || block_on(listen(theirs, service, started, stopped)));
        let port = ready.recv().map_err(io::Error::other)?;
        Ok(Self {
            port,
            taken,
            _running: running,
        })
    }

    pub fn connections(&self) -> u64 {
        self.taken.connections.load(Ordering::Relaxed)
    }

    /// How long connections carried messages, from MAIL to the answer to the
    /// final dot, all added up.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.taken.busy_ns.load(Ordering::Relaxed))
    }

    /// Waits until so many messages were taken: how long that was from the first
    /// connection on.
    pub async fn wait(&self, count: u64, patience: Duration) -> io::Result<Duration> {
        let began = Instant::now();
        loop {
            let came = self.taken.messages.load(Ordering::Acquire);
            if came >= count {
                break;
            }
            if began.elapsed() > patience {
                let text = format!("only {came} of {count} messages reached the sink");
                return Err(io::Error::other(text));
            }
            tokio::time::sleep(LOOK).await;
        }
        let times = self.taken.times.lock().ok().and_then(|times| *times);
        Ok(times.map_or(Duration::ZERO, |(first, last)| last - first))
    }
}

async fn listen(
    taken: Arc<Taken>,
    service: Duration,
    started: Sender<u16>,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let _ = started.send(listener.local_addr()?.port());
    let local = LocalSet::new();
    let accepting = local.run_until(async {
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            if taken.connections.fetch_add(1, Ordering::Relaxed) == 0 {
                taken.mark();
            }
            tokio::task::spawn_local(talk(stream, Arc::clone(&taken), service));
        }
    });
    tokio::select! {
        ended = accepting => ended,
        _ = stopped => Ok(()),
    }
}

async fn talk(mut stream: TcpStream, taken: Arc<Taken>, service: Duration) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    // The time for a message begins with its MAIL.
    let mut began = None;
    write.write_all(b"220 sink ESMTP\r\n").await?;
    loop {
        line.clear();
        if read.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let reply: &[u8] = match line.get(..4).unwrap_or(&line) {
            b"EHLO" | b"HELO" => b"250-sink\r\n250-PIPELINING\r\n250 8BITMIME\r\n",
            b"MAIL" => {
                began = Some(Instant::now());
                b"250 2.1.0 Ok\r\n"
            }
            b"DATA" => {
                write.write_all(b"354 Go on\r\n").await?;
                while line != b".\r\n" {
                    line.clear();
                    if read.read_until(b'\n', &mut line).await? == 0 {
                        return Ok(());
                    }
                }
                let began = began.take().unwrap_or_else(Instant::now);
                sleep_until((began + service).into()).await;
                taken.end(began);
                b"250 2.0.0 Taken\r\n"
            }
            b"QUIT" => return write.write_all(b"221 2.0.0 Bye\r\n").await,
            _ => b"250 2.0.0 Ok\r\n",
        };
        write.write_all(reply).await?;
    }
}
