//! A mail server that takes everything, and writes down when what came.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A message, by when its parts were read, in nanoseconds of the wall clock.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub to: String,
    /// When MAIL was read.
    pub mail_at: u64,
    /// When the end of the data was read.
    pub data_at: u64,
}

/// How slow it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Before it takes a message.
    pub data: Duration,
    /// Before it lets a client go that said QUIT.
    pub quit: Duration,
    /// Whether it asks for a login, and refuses all.
    pub refuses_logins: bool,
}

/// How many there are of something, and the most that there were at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    now: usize,
    pub most: usize,
    pub in_all: usize,
}

impl Level {
    fn rise(&mut self) {
        self.now += 1;
        self.in_all += 1;
        self.most = self.most.max(self.now);
    }

    fn fall(&mut self) {
        self.now -= 1;
    }
}

/// What it has seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub arrivals: Vec<Arrival>,
    /// Connections that are open.
    pub connections: Level,
    /// Messages of which MAIL was read and the data is not answered.
    pub transactions: Level,
}

/// A server that takes all mail.
pub struct Sink {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Sink {
    pub fn start() -> Self {
        Self::with(Manner::default())
    }

    pub fn with(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Counted here: one after the other, as they come.
                kept.lock().unwrap().connections.rise();
                let kept = Arc::clone(&kept);
                thread::spawn(move || {
                    let mut call = Call {
                        manner,
                        seen: kept,
                        is_open: true,
                        is_busy: false,
                    };
                    // A client may hang up whenever it likes.
                    drop(call.talk(stream));
                });
            }
        });
        Self { address, seen }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().arrivals.len()
    }

    pub fn recipients(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.arrivals.iter().map(|it| it.to.clone()).collect()
    }
}

/// The wall clock, which every process of the machine shares.
pub fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

/// One connection.
struct Call {
    manner: Manner,
    seen: Arc<Mutex<Seen>>,
    is_open: bool,
    is_busy: bool,
}

impl Call {
    fn talk(&mut self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut out = stream.try_clone()?;
        let mut lines = BufReader::new(stream).lines();
        out.write_all(b"220 sink ESMTP\r\n")?;
        let (mut to, mut mail_at) = (String::new(), 0);
        while let Some(line) = lines.next().transpose()? {
            let command = line.to_ascii_uppercase();
            let reply = match command.get(..4) {
                Some("EHLO") if self.manner.refuses_logins => "250-sink\r\n250 AUTH PLAIN",
                Some("AUTH") => "535 5.7.8 wrong password",
                Some("EHLO") => "250-sink\r\n250 PIPELINING",
                Some("MAIL") => {
                    mail_at = wall();
                    self.begin();
                    "250 2.1.0 Ok"
                }
                Some("RCPT") => {
                    let address = line.split(['<', '>']).nth(1);
                    to = address.unwrap_or_default().to_owned();
                    "250 2.1.5 Ok"
                }
                Some("DATA") => {
                    out.write_all(b"354 go\r\n")?;
                    for line in lines.by_ref() {
                        if line? == "." {
                            break;
                        }
                    }
                    let data_at = wall();
                    pause(self.manner.data);
                    let to = to.clone();
                    self.take(Arrival {
                        to,
                        mail_at,
                        data_at,
                    });
                    "250 2.0.0 Ok"
                }
                Some("QUIT") => {
                    pause(self.manner.quit);
                    // Before the client can know: whoever connects because this
                    // one has left is counted after it.
                    self.leave();
                    return out.write_all(b"221 2.0.0 bye\r\n");
                }
                _ => "250 2.0.0 Ok",
            };
            out.write_all(reply.as_bytes())?;
            out.write_all(b"\r\n")?;
        }
        Ok(())
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.is_busy, true) {
            self.seen.lock().unwrap().transactions.rise();
        }
    }

    fn take(&mut self, arrival: Arrival) {
        let mut seen = self.seen.lock().unwrap();
        seen.arrivals.push(arrival);
        if std::mem::take(&mut self.is_busy) {
            seen.transactions.fall();
        }
    }

    fn leave(&mut self) {
        let mut seen = self.seen.lock().unwrap();
        if std::mem::take(&mut self.is_open) {
            seen.connections.fall();
        }
        if std::mem::take(&mut self.is_busy) {
            seen.transactions.fall();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.leave();
    }
}

fn pause(time: Duration) {
    if time > Duration::ZERO {
        thread::park_timeout(time);
    }
}
