//! Many clients that mean harm, on a thread of their own. Whoever is hung up on
//! comes back.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::kinds::{Kind, Script, Target};

/// How long somebody who is hung up on stays away.
const AWAY: Duration = Duration::from_millis(500);
/// Those who do not read have a window of this size, so that little stands
/// between the server and its patience.
const WINDOW_BYTES: u32 = 4_096;

/// How many there are.
#[derive(Debug, Default)]
struct Counts {
    connected: AtomicUsize,
    /// Times that somebody had been connected and came back.
    returned: AtomicUsize,
}

/// A crowd that is there until it is dropped.
#[derive(Debug)]
pub struct Crowd {
    counts: Arc<Counts>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    is_begun: Arc<AtomicBool>,
}

impl Crowd {
    /// So many clients of a kind, from so many addresses (127.0.1.1 and so on).
    pub fn start(kind: Kind, target: &Target, clients: usize, addresses: u8) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let counts = Arc::new(Counts::default());
        let is_begun = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let script = Arc::new(kind.script(target));
        let (to, kept, begun) = (
            target.address(kind.door),
            Arc::clone(&counts),
            Arc::clone(&is_begun),
        );
        let thread = thread::Builder::new().spawn(move || {
            runtime.block_on(async {
                for no in 0..clients {
                    let last = u8::try_from(no % usize::from(addresses.max(1))).unwrap_or(0) + 1;
                    let from = IpAddr::V4(Ipv4Addr::new(127, 0, 1, last));
                    let (script, counts) = (Arc::clone(&script), Arc::clone(&kept));
                    tokio::spawn(client((from, to), script, counts, stopped.clone()));
                    // A listener's backlog is not what is attacked.
                    if no % 100 == 99 {
                        sleep(Duration::from_millis(5)).await;
                    }
                }
                begun.store(true, Ordering::Relaxed);
                let mut stopped = stopped;
                let _ = stopped.wait_for(|is_over| *is_over).await;
            });
        })?;
        Ok(Self {
            counts,
            stop,
            thread: Some(thread),
            is_begun,
        })
    }

    /// Whether all of them have been sent out.
    pub fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }

    /// How many are connected now.
    pub fn connected(&self) -> usize {
        self.counts.connected.load(Ordering::Relaxed)
    }

    /// How often somebody was hung up on and came back.
    pub fn returned(&self) -> usize {
        self.counts.returned.load(Ordering::Relaxed)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say if it panicked.
            let _ = thread.join();
        }
    }
}

async fn client(
    (from, to): (IpAddr, SocketAddr),
    script: Arc<Script>,
    counts: Arc<Counts>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let visit = async {
            if let Ok(stream) = connect(from, to, script.reads).await {
                counts.connected.fetch_add(1, Ordering::Relaxed);
                // However it ends, it is over.
                let _ = talk(stream, &script).await;
                counts.connected.fetch_sub(1, Ordering::Relaxed);
                counts.returned.fetch_add(1, Ordering::Relaxed);
            }
            sleep(AWAY).await;
        };
        tokio::select! {
            () = visit => {}
            _ = stopped.wait_for(|is_over| *is_over) => return,
        }
    }
}

async fn connect(from: IpAddr, to: SocketAddr, reads: bool) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from, 0))?;
    if !reads {
        socket.set_recv_buffer_size(WINDOW_BYTES)?;
    }
    socket.connect(to).await
}

/// Says what there is to say until the server hangs up.
async fn talk(stream: TcpStream, script: &Script) -> io::Result<()> {
    let (mut reads, mut writes) = stream.into_split();
    let mut heard = vec![0; 4_096];
    let hears = async {
        if script.reads {
            while reads.read(&mut heard).await? > 0 {}
            return io::Result::Ok(());
        }
        // Whoever reads nothing notices only that the other side is gone.
        loop {
            sleep(AWAY).await;
            let ready = reads.ready(tokio::io::Interest::READABLE).await?;
            if ready.is_read_closed() {
                return Ok(());
            }
            sleep(AWAY).await;
        }
    };
    let says = async {
        writes.write_all(&script.first).await?;
        let Some((drop, every)) = &script.drip else {
            return std::future::pending().await;
        };
        let mut next = Instant::now();
        loop {
            next += *every;
            sleep_until(next).await;
            writes.write_all(drop).await?;
        }
    };
    tokio::select! {
        ended = hears => ended,
        ended = says => ended,
    }
}
