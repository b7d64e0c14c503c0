//! `hostile`: an honest client beside thousands that mean harm.
//!
//! For each kind of hostile client, from sixteen addresses and from one, the
//! honest one asks over all three protocols, each time over a new connection,
//! and submits over one that it keeps. What it is not answered as usual counts
//! as having taken for ever.

mod crowd;
mod kinds;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::http;
use crate::server::{Scratch, Server, block_on, progress};
use crowd::Crowd;
use kinds::{Door, KINDS, Kind, Target};

/// How long an answer may take before it counts as none.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two rounds of the honest client.
const PAUSE: Duration = Duration::from_millis(20);
/// Where the honest client comes from.
const HONEST: [u8; 4] = [127, 0, 2, 1];

/// What is measured.
pub struct Plan {
    pub clients: usize,
    /// How long each kind is there.
    pub time: Duration,
    /// Only kinds whose name contains this.
    pub only: Option<String>,
}

/// A server and who asks it.
struct Stage {
    target: Target,
    /// The honest client's own token.
    token: String,
}

/// What an honest client saw, in milliseconds.
#[derive(Default)]
struct Seen {
    took: Vec<f64>,
    failed: usize,
    why: String,
}

impl Seen {
    fn note(&mut self, begun: Instant, answered: io::Result<()>) {
        match answered {
            Ok(()) => self.took.push(begun.elapsed().as_secs_f64() * 1_000.0),
            Err(error) => {
                self.failed += 1;
                self.took.push(PATIENCE.as_secs_f64() * 1_000.0);
                self.why = error.to_string();
            }
        }
    }

    fn p99(&mut self) -> f64 {
        self.took.sort_by(f64::total_cmp);
        let at = (self.took.len() * 99).div_ceil(100).saturating_sub(1);
        self.took.get(at).copied().unwrap_or(f64::INFINITY)
    }
}

pub fn run(plan: &Plan) -> io::Result<Value> {
    block_on(measure(plan))
}

async fn measure(plan: &Plan) -> io::Result<Value> {
    let scratch = Scratch::new("hostile")?;
    let config = "[smtp]\nlisten = \"127.0.0.1:0\"\n[throttle]\nlisten = \"127.0.0.1:0\"\n";
    let server = Server::start(scratch.path(), config).await?;
    let stage = Stage {
        target: Target {
            http: server.address,
            smtp: server.smtp.ok_or_else(|| io::Error::other("no SMTP"))?,
            resp: server
                .throttle
                .ok_or_else(|| io::Error::other("no throttle"))?,
            token: token(&server, "hostile").await?,
        },
        token: token(&server, "honest").await?,
    };
    let idle = server.memory_mb("VmRSS")?;
    let (mut worst, mut p99s, mut failed) = (0_f64, Map::new(), 0);
    let alone = honest(&stage, Duration::from_secs(2)).await;
    let mut alone = alone?;
    progress(&format!(
        "alone: p99 {:.1} ms, {} asked",
        alone.p99(),
        alone.took.len()
    ));
    let wanted = |kind: &&Kind| {
        plan.only
            .as_ref()
            .is_none_or(|only| kind.name.contains(&**only))
    };
    for kind in KINDS.iter().filter(wanted) {
        for (addresses, name) in [(16, "many"), (1, "one")] {
            let crowd = Crowd::start(*kind, &stage.target, plan.clients, addresses)?;
            let begun = Instant::now();
            while !crowd.is_begun() && begun.elapsed() < PATIENCE {
                sleep(PAUSE).await;
            }
            let mut seen = honest(&stage, plan.time).await?;
            let p99 = seen.p99();
            worst = worst.max(p99);
            failed += seen.failed;
            progress(&format!(
                "{kind:?} from {name}: p99 {p99:.1} ms, {} asked, {} failed {}; {} connected, {} \
                 came back; {:.0} MB",
                seen.took.len(),
                seen.failed,
                seen.why,
                crowd.connected(),
                crowd.returned(),
                server.memory_mb("VmRSS")?,
            ));
            p99s.insert(
                format!("{}_{name}", kind.name),
                json!((p99 * 10.0).round() / 10.0),
            );
        }
    }
    Ok(json!({
        "benchmark": "hostile",
        "clients": plan.clients,
        "honest_p99_ms": p99s,
        "worst_p99_ms": (worst * 10.0).round() / 10.0,
        "alone_p99_ms": (alone.p99() * 10.0).round() / 10.0,
        "failed": failed,
        "rss_idle_mb": idle.round(),
        "rss_mb": server.memory_mb("VmHWM")?.round(),
    }))
}

/// A token of a tenant of this name.
async fn token(server: &Server, tenant: &str) -> io::Result<String> {
    let form = json!({ "name": tenant, "scope": "submit", "tenant": tenant }).to_string();
    let request = http::request(
        "POST",
        "/api/v1/tokens",
        &server.token,
        "application/json",
        form.as_bytes(),
    );
    let mut connection = server.connect().await?;
    let made = connection.call(&request).await?.expect(201)?.json();
    let token = made.get("token").and_then(Value::as_str);
    token
        .map(ToOwned::to_owned)
        .ok_or_else(|| io::Error::other("no token was made"))
}

/// Asks for so long, one thing after the other.
async fn honest(stage: &Stage, time: Duration) -> io::Result<Seen> {
    let mut seen = Seen::default();
    let began = Instant::now();
    let message = json!({
        "from": "a@shop.example", "to": "b@gmail.com", "subject": "x", "text": "y",
    });
    let post = http::submission(
        &stage.token,
        "application/json",
        message.to_string().as_bytes(),
    );
    let login = STANDARD.encode(format!("\0app\0{}", stage.token));
    let mail = format!(
        "EHLO a.example\r\nAUTH PLAIN {login}\r\nMAIL FROM:<a@shop.example>\r\n\
         RCPT TO:<b@gmail.com>\r\nDATA\r\nFrom: a@shop.example\r\n\r\nx\r\n.\r\n"
    );
    let token = &stage.token;
    let take = format!(
        "*2\r\n$4\r\nAUTH\r\n${}\r\n{token}\r\n*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$4\r\n1000\r\n\
         $4\r\n1000\r\n$1\r\n1\r\n",
        token.len()
    );
    let health = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let asked: [(Door, &[u8], &[u8]); 4] = [
        (Door::Http, health, b"HTTP/1.1 200"),
        (Door::Http, &post, b"HTTP/1.1 202"),
        (Door::Smtp, mail.as_bytes(), b"\r\n250 2.0.0 "),
        (Door::Resp, take.as_bytes(), b"+OK\r\n*5\r\n"),
    ];
    let mut kept = connect(stage.target.http).await?;
    while began.elapsed() < time {
        for (door, request, answer) in asked {
            let begun = Instant::now();
            let once = async {
                let mut stream = connect(stage.target.address(door)).await?;
                ask(&mut stream, request, answer).await
            };
            seen.note(begun, late(timeout(PATIENCE, once).await));
        }
        let begun = Instant::now();
        let again = ask(&mut kept, &post, b"HTTP/1.1 202");
        seen.note(begun, late(timeout(PATIENCE, again).await));
        sleep(PAUSE).await;
    }
    Ok(seen)
}

fn late<T, E>(answered: Result<io::Result<T>, E>) -> io::Result<T> {
    answered.unwrap_or_else(|_| Err(io::Error::other("no answer in time")))
}

async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((HONEST, 0)))?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Says something and reads until the answer is there.
async fn ask(stream: &mut TcpStream, request: &[u8], answer: &[u8]) -> io::Result<()> {
    stream.write_all(request).await?;
    let mut heard = Vec::new();
    while memchr::memmem::find(&heard, answer).is_none() {
        if stream.read_buf(&mut heard).await? == 0 {
            let said = String::from_utf8_lossy(&heard);
            return Err(io::Error::other(format!("hung up after {said:?}")));
        }
        if heard.starts_with(b"HTTP/1.1 ") && !heard.starts_with(answer) && heard.len() > 12 {
            let said = String::from_utf8_lossy(&heard);
            return Err(io::Error::other(said.chars().take(200).collect::<String>()));
        }
    }
    Ok(())
}
