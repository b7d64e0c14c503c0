//! Clients that always want more: each waits at its server for a grant and asks
//! for the next one at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::nodes::Door;
use crate::redis::words_of;

/// What all clients ask for.
#[derive(Clone, Debug)]
pub struct Wish {
    pub key: &'static str,
    pub limit: &'static str,
    pub cost: u32,
    pub classes: &'static [&'static str],
    /// Whether clients rest now and then, so that leases are given back.
    pub fickle: bool,
    pub when_away: Option<&'static str>,
}

/// What was asked so far.
#[derive(Debug, Default)]
pub struct Counts {
    pub granted: AtomicU64,
    pub refused: AtomicU64,
    pub failed: AtomicU64,
    stop: AtomicBool,
}

/// Clients at work.
pub struct Clients {
    pub counts: Arc<Counts>,
    tasks: Vec<JoinHandle<()>>,
}

impl Clients {
    /// So many clients at each door.
    pub fn start(doors: &[Door], each: usize, wish: &Wish) -> Self {
        let counts = Arc::new(Counts::default());
        let mut tasks = Vec::new();
        for (place, door) in doors.iter().enumerate() {
            for no in 0..each {
                let client = Client {
                    door: door.clone(),
                    request: request(wish, place * each + no),
                    counts: Arc::clone(&counts),
                    fickle: wish.fickle,
                    turn: (place * each + no) as u64,
                };
                tasks.push(tokio::spawn(client.run()));
            }
        }
        Self { counts, tasks }
    }

    /// Ends them.
    pub fn stop(self) -> Arc<Counts> {
        self.counts.stop.store(true, Ordering::Relaxed);
        self.tasks.iter().for_each(JoinHandle::abort);
        self.counts
    }
}

fn request(wish: &Wish, no: usize) -> Vec<u8> {
    let cost = wish.cost.to_string();
    let class = wish.classes[no % wish.classes.len()];
    let mut words = vec![
        "ACQUIRE", wish.key, &cost, "CLASS", class, "RATE", wish.limit,
    ];
    words.extend(wish.when_away.into_iter().flat_map(|it| ["AWAY", it]));
    words.extend(["WAIT", "2000"]);
    words_of(&words)
}

struct Client {
    door: Door,
    request: Vec<u8>,
    counts: Arc<Counts>,
    fickle: bool,
    turn: u64,
}

impl Client {
    /// Asks until it is stopped; a server that died is found again.
    async fn run(mut self) {
        while !self.counts.stop.load(Ordering::Relaxed) {
            if self.ask().await.is_err() {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    async fn ask(&mut self) -> io::Result<()> {
        let stream = TcpStream::connect(("127.0.0.1", self.door.port)).await?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        stream
            .write_all(&words_of(&["AUTH", &self.door.token]))
            .await?;
        let mut line = String::new();
        read_line(&mut stream, &mut line).await?;
        if !line.starts_with("+OK") {
            return Err(io::Error::other(line));
        }
        loop {
            stream.write_all(&self.request).await?;
            let granted = answer(&mut stream, &mut line).await?;
            let count = match granted {
                true => &self.counts.granted,
                false => &self.counts.refused,
            };
            count.fetch_add(1, Ordering::Relaxed);
            self.turn += 1;
            if self.fickle && self.turn.is_multiple_of(23) {
                let rest = Duration::from_millis(self.turn * 7_919 % 400);
                tokio::time::sleep(rest).await;
            }
        }
    }
}

async fn read_line(stream: &mut BufReader<TcpStream>, line: &mut String) -> io::Result<()> {
    line.clear();
    match stream.read_line(line).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Whether an acquire was granted: an array whose first number says so.
async fn answer(stream: &mut BufReader<TcpStream>, line: &mut String) -> io::Result<bool> {
    read_line(stream, line).await?;
    let parts = line.strip_prefix('*').and_then(|it| it.trim().parse().ok());
    let Some(parts): Option<usize> = parts else {
        return Err(io::Error::other(line.clone()));
    };
    let mut granted = false;
    for part in 0..parts {
        read_line(stream, line).await?;
        if part == 0 {
            granted = line.starts_with(":1");
        }
        if line.starts_with('$') && !line.starts_with("$-1") {
            read_line(stream, line).await?;
        }
    }
    Ok(granted)
}
