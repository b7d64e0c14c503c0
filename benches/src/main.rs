//! Every performance claim of Outflow, side by side with its peer in one run.
//! The last line of each benchmark is one JSON object.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod cardinality;
mod control;
#[allow(
    dead_code,
    clippy::expect_used,
    reason = "the tests of the resolver use the rest"
)]
#[path = "../../crates/resolver-dns/tests/dns/server.rs"]
mod dns;
mod driver;
mod end_to_end;
mod engine;
mod enqueue;
mod fairness;
mod figures;
mod fleet;
mod hostile;
mod http;
mod jobs;
mod letters;
mod many_destinations;
mod memory;
mod preload;
mod priority;
mod reading;
mod redis;
mod server;
mod throttle;
mod trickle;
mod waiting;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::Value;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Messages a second through the engine, beside the governor crate.
    Engine,
    /// The engine's side of `engine` alone, for profilers.
    #[command(hide = true)]
    EngineLoad,
    /// The cost of a send against what waits.
    Waiting,
    /// One load of `waiting`, run under callgrind.
    #[command(hide = true)]
    WaitingLoad { flows: u32, queued: u32, sends: u64 },
    /// How evenly and fully several full limits are used.
    Fairness {
        /// Leave out the cases with 100,000 flows and the pools.
        #[arg(long)]
        small: bool,
        /// Only cases whose name contains this.
        #[arg(long)]
        only: Option<String>,
    },
    /// How well the controller finds hidden limits, beside simpler rules.
    Control {
        /// Only the controller.
        #[arg(long)]
        alone: bool,
        /// The whole engine beside the controller.
        #[arg(long)]
        engine: bool,
        /// Also providers for which no target is stated.
        #[arg(long)]
        others: bool,
        /// Only providers whose name contains this.
        #[arg(long)]
        only: Option<String>,
        /// Full rates of the providers, in messages a second.
        #[arg(long, value_delimiter = ',', default_values_t = [1.0, 10.0, 100.0])]
        rates: Vec<f64>,
        /// Where senders start, as multiples of the full rate.
        #[arg(long, value_delimiter = ',', default_values_t = [10.0, 0.1])]
        starts: Vec<f64>,
        /// Hours of virtual time.
        #[arg(long, default_value_t = 24)]
        hours: u64,
    },
    /// Durable submissions over HTTP, beside what the disk does.
    Enqueue,
    /// Messages drained a second, beside BullMQ.
    Jobs {
        /// Messages, and jobs.
        #[arg(long, default_value_t = 200_000)]
        messages: u64,
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Leave BullMQ out, for profilers.
        #[arg(long)]
        alone: bool,
    },
    /// Mail from submission to an SMTP sink, beside Postfix.
    #[command(name = "end_to_end")]
    EndToEnd {
        #[arg(long, default_value_t = 50_000)]
        messages: u64,
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Sessions over which mail is submitted by SMTP.
        #[arg(long, default_value_t = 20)]
        sessions: usize,
        /// Connections of Outflow's account, if not the default.
        #[arg(long)]
        connections: Option<u32>,
        /// The sink does not offer CHUNKING.
        #[arg(long)]
        no_chunking: bool,
        /// Leave Postfix out, for profilers.
        #[arg(long)]
        alone: bool,
    },
    /// How busy connections are with far more destinations than connections.
    #[command(name = "many_destinations")]
    ManyDestinations {
        /// Domains, each with a server of its own.
        #[arg(long, default_value_t = 2_000)]
        domains: u64,
        /// Messages to each.
        #[arg(long, default_value_t = 3)]
        each: u64,
    },
    /// Resident memory with a long queue, and how soon it is ready again.
    Memory {
        /// Messages in the queue.
        #[arg(long, default_value_t = 5_000_000)]
        messages: u64,
    },
    /// Memory and rates when each message has a campaign, or a domain, of its own.
    Cardinality {
        /// Messages of each phase.
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        /// Seconds without work before memory is looked at for the last time.
        #[arg(long, default_value_t = 60)]
        idle: u64,
    },
    /// What a server does when little happens after much was delivered.
    Trickle {
        /// Messages that were delivered before.
        #[arg(long, default_value_t = 2_000_000)]
        messages: u64,
        /// Seconds of two messages each.
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// How long critical messages take beside a long queue.
    Priority {
        /// Messages in the queue.
        #[arg(long, default_value_t = 1_000_000)]
        messages: u64,
        /// The limit at which they are sent, in messages a second.
        #[arg(long, default_value_t = 2_000)]
        rate: u32,
    },
    /// An honest client beside thousands that mean harm.
    Hostile {
        /// Hostile clients of each kind.
        #[arg(long, default_value_t = 4_096)]
        clients: usize,
        /// Seconds for each kind, once from many addresses and once from one.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Only kinds whose name contains this.
        #[arg(long)]
        only: Option<String>,
    },
    /// Questions about single messages while others flow.
    Reading,
    /// Acquires a second, beside a Lua script in Redis and throttlecrab.
    Throttle {
        /// Acquires of each measurement.
        #[arg(long, default_value_t = 400_000)]
        requests: u64,
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Leave throttlecrab out, which takes minutes to build.
        #[arg(long)]
        no_throttlecrab: bool,
    },
    /// One limit over several servers, while things go wrong.
    Fleet {
        #[arg(long, default_value_t = 4)]
        nodes: usize,
        /// Clients at each node.
        #[arg(long, default_value_t = 25)]
        clients: usize,
        /// How long each case takes.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// Only cases whose name contains this.
        #[arg(long)]
        only: Option<String>,
        /// Redis goes away instead.
        #[arg(long)]
        away: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().bench) {
        Ok(Some(last)) => println!("{last}"),
        Ok(None) => {}
        Err(error) => {
            eprintln!("the benchmark cannot go on: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The last line of a benchmark.
fn run(bench: Bench) -> io::Result<Option<Value>> {
    let last = match bench {
        Bench::Engine => engine::run(),
        Bench::EngineLoad => engine::load(),
        Bench::Waiting => waiting::run(),
        Bench::WaitingLoad {
            flows,
            queued,
            sends,
        } => {
            waiting::load(&waiting::Load {
                flows,
                queued,
                sends,
            });
            return Ok(None);
        }
        Bench::Fairness { small, only } => fairness::run(!small, only.as_deref()),
        Bench::Control {
            alone,
            engine,
            others,
            only,
            rates,
            starts,
            hours,
        } => control::run(control::Wanted {
            alone,
            engine,
            others,
            only,
            rates,
            starts,
            hours,
        })?,
        Bench::Enqueue => enqueue::run()?,
        Bench::Jobs {
            messages,
            rounds,
            alone,
        } => jobs::run(messages, rounds, !alone)?,
        Bench::EndToEnd {
            messages,
            rounds,
            sessions,
            connections,
            no_chunking,
            alone,
        } => end_to_end::run(end_to_end::Plan {
            messages,
            rounds,
            sessions,
            connections,
            chunking: !no_chunking,
            has_peer: !alone,
        })?,
        Bench::ManyDestinations { domains, each } => {
            many_destinations::run(&many_destinations::Plan { domains, each })?
        }
        Bench::Memory { messages } => memory::run(messages)?,
        Bench::Cardinality { messages, idle } => cardinality::run(cardinality::Plan {
            messages,
            idle: std::time::Duration::from_secs(idle),
        })?,
        Bench::Trickle { messages, seconds } => trickle::run(trickle::Plan { messages, seconds })?,
        Bench::Priority { messages, rate } => priority::run(messages, rate)?,
        Bench::Hostile {
            clients,
            seconds,
            only,
        } => hostile::run(&hostile::Plan {
            clients,
            time: std::time::Duration::from_secs(seconds),
            only,
        })?,
        Bench::Reading => reading::run()?,
        Bench::Throttle {
            requests,
            rounds,
            no_throttlecrab,
        } => throttle::run(throttle::Plan {
            requests,
            rounds,
            has_crab: !no_throttlecrab,
        })?,
        Bench::Fleet { away: true, .. } => fleet::away::run()?,
        Bench::Fleet {
            nodes,
            clients,
            seconds,
            only,
            ..
        } => {
            let plan = fleet::Plan {
                nodes,
                clients,
                seconds,
            };
            fleet::run(plan, only.as_deref())?
        }
    };
    Ok(Some(last))
}
