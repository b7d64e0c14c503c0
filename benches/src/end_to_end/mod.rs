//! `end_to_end`: mail of 2 KB, durable, to an SMTP sink on this machine: taken
//! in over HTTP in batches, and over SMTP, beside Postfix that relays the same
//! mail to the same sink with its default settings.
//!
//! A round counts from the first submission until the sink has every message,
//! and here also until every settlement is durable. Each side of each round
//! starts with an empty queue and a sink of its own.

mod cpu;
mod mail;
mod postfix;
mod sink;
mod source;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::cpu::ThreadCpu;
use self::mail::PAYLOAD;
use self::postfix::Postfix;
use self::sink::Sink;
use crate::figures::{exact, median, short};
use crate::server::{Scratch, Server, block_on, progress};

/// How long one side may take.
const PATIENCE: Duration = Duration::from_secs(900);
/// How often is looked whether all are settled.
const LOOK: Duration = Duration::from_millis(10);

/// What is measured, and how.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub messages: u64,
    pub rounds: usize,
    /// Sessions over which mail is submitted by SMTP, to either.
    pub sessions: usize,
    /// Connections of Outflow's account, if not the default.
    pub connections: Option<u32>,
    /// Whether the sink offers CHUNKING.
    pub chunking: bool,
    /// Whether Postfix takes part.
    pub has_peer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The load generator straight into the sink.
    Straight,
    Http,
    Smtp,
    /// Postfix, from `smtp-source`.
    Postfix,
    /// Postfix, from the load generator.
    PostfixOurs,
}

impl Side {
    const ALL: [Self; 5] = [
        Self::Straight,
        Self::Http,
        Self::Smtp,
        Self::Postfix,
        Self::PostfixOurs,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Straight => "generator straight into the sink",
            Self::Http => "outflow from HTTP",
            Self::Smtp => "outflow from SMTP",
            Self::Postfix => "postfix from smtp-source",
            Self::PostfixOurs => "postfix from the generator",
        }
    }

    const fn is_peer(self) -> bool {
        matches!(self, Self::Postfix | Self::PostfixOurs)
    }
}

/// One side in one round.
#[derive(Clone, Copy, Debug)]
struct Run {
    per_s: f64,
    /// CPU for one message, in microseconds.
    server_us: f64,
    sink_us: f64,
    source_us: f64,
}

/// All sides in turn, round by round.
pub fn run(plan: Plan) -> io::Result<Value> {
    let sides = Side::ALL.into_iter();
    let sides: Vec<Side> = sides
        .filter(|side| plan.has_peer || !side.is_peer())
        .collect();
    let mut runs: Vec<(Side, Vec<Run>)> = sides.iter().map(|side| (*side, Vec::new())).collect();
    for round in 1..=plan.rounds {
        for (side, runs) in &mut runs {
            let run = block_on(once(*side, plan))?;
            progress(&format!(
                "round {round} of {}: {}: {}",
                plan.rounds,
                side.name(),
                said(&run)
            ));
            runs.push(run);
        }
    }
    for (side, runs) in &runs {
        let of = |figure| median_of(runs, figure);
        let run = Run {
            per_s: of(|run| run.per_s),
            server_us: of(|run| run.server_us),
            sink_us: of(|run| run.sink_us),
            source_us: of(|run| run.source_us),
        };
        println!("{:<34}{}", side.name(), said(&run));
    }
    let of = |side: Side| {
        let runs = runs.iter().find(|(it, _)| *it == side);
        runs.map_or(&[][..], |(_, runs)| &runs[..])
    };
    let per_s = |side| short(median_of(of(side), |run| run.per_s));
    // Both sides of a ratio are of one round.
    let ratio = |side| {
        let pairs = of(side).iter().zip(of(Side::Postfix));
        exact(median(
            &pairs.map(|(a, b)| a.per_s / b.per_s).collect::<Vec<_>>(),
        ))
    };
    let server_us = |side| short(median_of(of(side), |run| run.server_us));
    Ok(json!({
        "bench": "end_to_end",
        "messages": plan.messages,
        "sessions": plan.sessions,
        "http_per_s": per_s(Side::Http),
        "smtp_per_s": per_s(Side::Smtp),
        "postfix_per_s": per_s(Side::Postfix),
        "http_ratio": ratio(Side::Http),
        "smtp_ratio": ratio(Side::Smtp),
        "postfix_from_generator_per_s": per_s(Side::PostfixOurs),
        "straight_per_s": per_s(Side::Straight),
        "http_cpu_us": server_us(Side::Http),
        "smtp_cpu_us": server_us(Side::Smtp),
        "postfix_cpu_us": server_us(Side::Postfix),
    }))
}

fn median_of(runs: &[Run], figure: fn(&Run) -> f64) -> f64 {
    median(&runs.iter().map(figure).collect::<Vec<_>>())
}

fn said(run: &Run) -> String {
    format!(
        "{:>8.0}/s; CPU a message: server {:.0} us, sink {:.0} us, source {:.0} us",
        run.per_s, run.server_us, run.sink_us, run.source_us
    )
}

async fn once(side: Side, plan: Plan) -> io::Result<Run> {
    let sink = Sink::start(plan.chunking)?;
    let meter = Meter::new(&sink, plan.messages)?;
    match side {
        Side::Straight => {
            let began = meter.begin(Duration::ZERO);
            source::over_smtp(sink.address, None, plan.sessions, plan.messages).await?;
            sink.wait(plan.messages, PAYLOAD, PATIENCE).await?;
            Ok(began.end(Duration::ZERO))
        }
        Side::Http | Side::Smtp => outflow(side, plan, &sink, meter).await,
        Side::Postfix | Side::PostfixOurs => postfix(side, plan, &sink, meter).await,
    }
}

async fn outflow(side: Side, plan: Plan, sink: &Sink, meter: Meter<'_>) -> io::Result<Run> {
    let scratch = Scratch::new("end-to-end")?;
    let config = config(sink.address, plan.connections);
    let server = Server::start(scratch.path(), &config).await?;
    let began = meter.begin(server.cpu());
    match (side, server.smtp) {
        (Side::Smtp, Some(smtp)) => {
            source::over_smtp(smtp, Some(&server.token), plan.sessions, plan.messages).await?;
        }
        (Side::Smtp, None) => return Err(io::Error::other("the server takes no mail by SMTP")),
        _ => source::over_http(&server, plan.messages).await?,
    }
    sink.wait(plan.messages, PAYLOAD, PATIENCE).await?;
    let mut connection = server.connect().await?;
    let settled = "outflow_messages_settled_total";
    let waiting = Instant::now();
    while server
        .metric_over(&mut connection, settled, "delivered")
        .await?
        < plan.messages as f64
    {
        if waiting.elapsed() > PATIENCE {
            return Err(io::Error::other("not all messages are settled"));
        }
        tokio::time::sleep(LOOK).await;
    }
    // The count runs ahead of the disk.
    while server.any_left(&mut connection).await? {
        tokio::time::sleep(LOOK / 4).await;
    }
    Ok(began.end(server.cpu()))
}

async fn postfix(side: Side, plan: Plan, sink: &Sink, meter: Meter<'_>) -> io::Result<Run> {
    let postfix = Postfix::start(sink.address)?;
    let children = cpu::of_ended_children();
    let began = meter.begin(postfix.cpu());
    if side == Side::PostfixOurs {
        source::over_smtp(postfix.address, None, plan.sessions, plan.messages).await?;
        sink.wait(plan.messages, PAYLOAD, PATIENCE).await?;
        return Ok(began.end(postfix.cpu()));
    }
    let mut source = postfix.smtp_source(plan.sessions, plan.messages)?;
    sink.wait(plan.messages, PAYLOAD, PATIENCE).await?;
    let run = began.end(postfix.cpu());
    let is_well = source.wait()?.success();
    if !is_well {
        return Err(io::Error::other("smtp-source failed"));
    }
    let source = cpu::of_ended_children().saturating_sub(children);
    let source_us = micros(source, plan.messages);
    Ok(Run { source_us, ..run })
}

/// The settings: a listener, an account without limits, and otherwise what is
/// the default. Whoever relays to one host need not ask DNS, as Postfix does
/// not.
fn config(sink: SocketAddr, connections: Option<u32>) -> String {
    let connections = connections.map(|most| format!("max_connections = {most}\n"));
    format!(
        "[smtp]\nlisten = \"127.0.0.1:0\"\n\
         [dns]\nlookups = \"never\"\n\
         [[account]]\nid = \"relay\"\ntransport = \"smtp\"\nhost = \"127.0.0.1\"\nport = {}\n\
         tls = \"none\"\n{}",
        sink.port(),
        connections.unwrap_or_default()
    )
}

/// Time and CPU of a run.
struct Meter<'a> {
    sink: &'a Sink,
    own: ThreadCpu,
    count: u64,
}

struct Began<'a> {
    meter: Meter<'a>,
    at: Instant,
    server: Duration,
    sink: Duration,
    own: Duration,
}

impl<'a> Meter<'a> {
    fn new(sink: &'a Sink, count: u64) -> io::Result<Self> {
        let own = ThreadCpu::of_this()?;
        Ok(Self { sink, own, count })
    }

    fn begin(self, server: Duration) -> Began<'a> {
        Began {
            at: Instant::now(),
            server,
            sink: self.sink.cpu.now(),
            own: self.own.now(),
            meter: self,
        }
    }
}

impl Began<'_> {
    fn end(self, server: Duration) -> Run {
        let took = self.at.elapsed();
        let Meter { sink, own, count } = self.meter;
        Run {
            per_s: count as f64 / took.as_secs_f64(),
            server_us: micros(server - self.server, count),
            sink_us: micros(sink.cpu.now() - self.sink, count),
            source_us: micros(own.now() - self.own, count),
        }
    }
}

fn micros(cpu: Duration, count: u64) -> f64 {
    cpu.as_secs_f64() * 1e6 / count as f64
}
