//! `outflow throttle`: ask before acting, as programs do.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::failure::Failure;
use super::plain::plain;
use super::selection;
use super::session::{Output, Session, print};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take limits, all together or none. Fails if they are refused.
    Acquire(Acquire),
    /// Give a permit back.
    Release(Release),
    /// Grant nothing of a key for a while.
    Pause(Pause),
}

/// The limits to take.
#[derive(Debug, Args)]
pub struct Acquire {
    /// Keys: `isp:google`, or any name if numbers are given.
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// How much of each.
    #[arg(long, default_value_t = 1)]
    cost: u32,
    /// Numbers of its own for each key: `10/s`, `600/min`.
    #[arg(long)]
    rate: Option<String>,
    /// How much of the rate can be saved up.
    #[arg(long, requires = "rate")]
    burst: Option<u32>,
    /// How many may be held of each key at once.
    #[arg(long, value_name = "SLOTS")]
    concurrency: Option<u32>,
    /// How urgent it is.
    #[arg(long, value_parser = selection::class)]
    class: Option<String>,
    /// How long to wait for them.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    wait: u64,
    /// How long slots are held if they are not given back.
    #[arg(long, value_name = "MILLISECONDS")]
    ttl: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// Which permit.
#[derive(Debug, Args)]
pub struct Release {
    /// As it was given.
    permit: String,
    #[command(flatten)]
    output: Output,
}

/// What to pause.
#[derive(Debug, Args)]
pub struct Pause {
    /// Its key.
    key: String,
    /// For how long.
    #[arg(value_name = "MILLISECONDS")]
    lasts: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    granted: bool,
    permit: String,
    refused_by: String,
    retry_after_ms: u64,
    released: bool,
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Acquire(arguments) => acquire(arguments, session),
        Command::Release(arguments) => {
            let body = json!({ "permit": arguments.permit });
            let answer = session.post("/throttle/release", &body)?;
            session.show(&answer, arguments.output, |answer: Answer, _| {
                let text = match answer.released {
                    true => "Given back.\n",
                    false => "Nothing was held by it any more.\n",
                };
                text.to_owned()
            })
        }
        Command::Pause(arguments) => {
            let body = json!({ "key": arguments.key, "retry_after_ms": arguments.lasts });
            let answer = session.post("/throttle/pause", &body)?;
            session.show(&answer, arguments.output, |_: Value, _| {
                let key = plain(&arguments.key);
                format!("{key} grants nothing for {} ms.\n", arguments.lasts)
            })
        }
    }
}

fn acquire(arguments: &Acquire, session: &Session) -> Result<(), Failure> {
    let limits = arguments.keys.iter().map(|key| {
        json!({
            "key": key,
            "cost": arguments.cost,
            "rate": arguments.rate,
            "burst": arguments.burst,
            "concurrency": arguments.concurrency,
        })
    });
    let body = json!({
        "limits": limits.collect::<Vec<_>>(),
        "class": arguments.class,
        "wait_ms": arguments.wait,
        "ttl_ms": arguments.ttl,
    });
    let answer = session.post("/throttle/acquire", &body)?;
    let read: Answer = answer.read()?;
    if arguments.output.json {
        session.print_json(&answer)?;
    } else if read.granted {
        print(&format!("Granted. Permit: {}\n", plain(&read.permit)))?;
    }
    if read.granted {
        return Ok(());
    }
    let (by, after) = (plain(&read.refused_by), read.retry_after_ms);
    Err(Failure::Other(format!(
        "refused by {by}: come back in {after} ms"
    )))
}
