//! `outflow demo`: a server in a temporary directory, three providers with
//! different limits, traffic over the HTTP API, and a live table of what
//! happens.
//!
//! Reading order: this file, [`scenery`] (providers and settings), [`traffic`],
//! [`witness`] (what the sandbox saw), [`table`], [`summary`] (the checks),
//! [`client`]; [`incident`] (another demonstration).

mod client;
mod incident;
mod scenery;
mod summary;
mod table;
mod traffic;
mod witness;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use outflow_core::message::Seq;

use self::client::Client;
use self::scenery::Scratch;
use self::table::{Latency, Look, Table};
use self::traffic::Traffic;
use self::witness::Witness;
use crate::serve::server::Server;

/// Between two looks.
const TICK: Duration = Duration::from_secs(1);
/// How long it runs with `--json` unless told.
const JSON_SECONDS: u64 = 10;

/// What to show.
#[derive(clap::Args)]
pub struct Arguments {
    /// End after so many seconds; without it, at Ctrl-C.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Print nothing but a summary as JSON at the end.
    #[arg(long)]
    json: bool,
    /// Show an incident instead, in accelerated time: a provider starts to
    /// refuse, the rate is cut and comes back, and a report tells of it.
    #[arg(long)]
    incident: bool,
    /// Where the report goes. Without it, a new folder here.
    #[arg(long, value_name = "DIR", requires = "incident")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    let shown = match arguments.incident {
        true => incident::show(&incident::Wanted {
            seconds: arguments.seconds,
            json: arguments.json,
            out: arguments.out.clone(),
        }),
        false => show(arguments),
    };
    match shown {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("the demo cannot go on: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every check held.
fn show(arguments: &Arguments) -> Result<bool, String> {
    let words = |error: io::Error| error.to_string();
    let scratch = Scratch::new().map_err(words)?;
    let settings = scenery::settings(scratch.path()).map_err(|error| error.to_string())?;
    let server = Server::start(&settings, io::stderr()).map_err(|error| error.to_string())?;
    let witness = Witness::watch(&server.sandbox);
    let token = server.token.as_deref().map(fs::read_to_string);
    let token = token.transpose().map_err(words)?.unwrap_or_default();
    let token = token.trim();
    if !arguments.json {
        greet(&server, token, &scratch);
    }
    let traffic = Traffic::start(server.address, token, witness.clone()).map_err(words)?;
    let mut show = Show {
        scratch: &scratch,
        client: Client::new(server.address, token),
        url: server.url(),
        token: token.to_owned(),
        server,
        witness,
        traffic,
        started: Instant::now(),
    };
    let seconds = arguments
        .seconds
        .or_else(|| arguments.json.then_some(JSON_SECONDS));
    let watched = show.watch(seconds.map(Duration::from_secs), arguments.json);
    let summed = watched.and_then(|()| show.end());
    let (summary, end) = summed.map_err(words)?;
    if arguments.json {
        say!("{}", summary.json);
    } else {
        let checks = summary.json.get("checks").cloned().unwrap_or_default();
        say!("\nchecked at the sandbox: {checks}");
        say!("{}", summary.json);
    }
    Ok(summary.holds && end == crate::serve::server::End::Settled)
}

fn greet(server: &Server, token: &str, scratch: &Scratch) {
    let url = server.url();
    say!(
        "outflow demo: a server of its own in {}",
        scratch.path().display()
    );
    say!("(removed at the end); its only account is a sandbox: nothing leaves this machine.");
    say!("\n  address  {url}\n  token    {token}\n");
    say!("Send a message yourself:\n");
    say!("  curl -s {url}/api/v1/messages -H 'Authorization: Bearer {token}' \\");
    say!("    -H 'Content-Type: application/json' \\");
    say!(
        "    -d '{{\"from\":\"me@example.com\",\"to\":\"you@gmail.com\",\"subject\":\"Hello\",\
         \"text\":\"Hello!\",\"class\":\"critical\"}}'\n"
    );
}

/// A running demonstration.
struct Show<'a> {
    scratch: &'a Scratch,
    server: Server,
    client: Client,
    url: String,
    token: String,
    witness: Witness,
    traffic: Traffic,
    started: Instant,
}

impl Show<'_> {
    /// Draws the table once a second, until the time is over or somebody
    /// interrupts.
    fn watch(&mut self, limit: Option<Duration>, is_quiet: bool) -> io::Result<()> {
        let mut table = Table::new();
        let mut has_hinted = is_quiet;
        loop {
            let left = limit.map(|limit| limit.saturating_sub(self.started.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(());
            }
            let tick = left.map_or(TICK, |left| left.min(TICK));
            let woken = self.server.run_until(async move {
                tokio::select! {
                    _ = tokio::signal::ctrl_c() => true,
                    () = tokio::time::sleep(tick) => false,
                }
            });
            match woken {
                None => return Err(io::Error::other("the server has failed")),
                Some(true) => return Ok(()),
                Some(false) if is_quiet => {}
                Some(false) => {
                    if !has_hinted && self.hint()? {
                        has_hinted = true;
                        table.begin_anew();
                    }
                    self.draw(&mut table)?;
                }
            }
        }
    }

    /// Says how to ask why a message waits, once one does.
    fn hint(&mut self) -> io::Result<bool> {
        let path = "/api/v1/messages?state=queued&class=low&destination=isp:yahoo&limit=1";
        let answer = self.client.get(path)?.json();
        let Some(id) = answer.pointer("/messages/0/id").and_then(|id| id.as_str()) else {
            return Ok(false);
        };
        say!("Ask why a digest waits, and until when:\n");
        say!(
            "  outflow explain {id} --data-dir {}\n",
            self.scratch.path().display()
        );
        say!(
            "  curl -s {}/api/v1/messages/{id}/explain -H 'Authorization: Bearer {}'\n",
            self.url,
            self.token
        );
        Ok(true)
    }

    fn draw(&mut self, table: &mut Table) -> io::Result<()> {
        let lanes = self.client.get("/api/v1/lanes")?.json();
        let critical = self.critical();
        let accepted = self.traffic.accepted().all.len();
        table.draw(&Look {
            at: self.started.elapsed(),
            lanes: &lanes,
            arrivals: &self.witness.arrivals(),
            accepted,
            delivered: self.witness.counts().0,
            critical,
        })
    }

    /// How long the passwords that arrived took.
    fn critical(&self) -> Latency {
        let passwords: Vec<(Seq, Instant)> = self.traffic.accepted().passwords.clone();
        let took = passwords.into_iter().filter_map(|(seq, began)| {
            let arrived = self.witness.arrived(seq)?;
            Some(arrived.saturating_duration_since(began))
        });
        Latency::of(took.collect())
    }

    /// Ends the traffic, looks for every message and stops the server.
    fn end(mut self) -> io::Result<(summary::Summary, crate::serve::server::End)> {
        self.traffic.stop();
        let ran = self.started.elapsed();
        let critical = self.critical();
        let accepted = std::mem::take(&mut *self.traffic.accepted());
        let summary = summary::sum_up(ran, &mut self.client, &accepted, &self.witness, critical)?;
        let end = self.server.stop(std::future::pending());
        Ok((summary, end))
    }
}
