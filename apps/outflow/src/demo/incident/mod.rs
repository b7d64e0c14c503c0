//! `outflow demo --incident`: a provider that starts to refuse, what the
//! controller does about it, and how it comes back, in accelerated time.
//!
//! Mitigation and recovery take minutes and hours, by design. So the incident
//! is rehearsed in virtual time ([`rehearsal`]), and what happens is written
//! into the history and the audit of a real server as it happens there
//! ([`scribe`]); the report at the end is made by `outflow report` from what
//! that server answers.

mod rehearsal;
mod scribe;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use outflow_api::Clock as _;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::history::{SLICE_S, beginning};

use self::rehearsal::{LENGTH, Rehearsal};
use self::scribe::Scribe;
use super::scenery::{self, Scratch};
use crate::cli::GlobalOptions;
use crate::cli::report::{self, Written};
use crate::cli::session::{Output, Session};
use crate::serve::server::{End, Server};
use crate::serve::wiring::SystemClock;

/// How long it is shown unless told.
const SECONDS: u64 = 21;
/// Virtual time between two lines.
const LINE: Nanos = Nanos::from_secs(300);
const SEED: u64 = 7;

/// What to do.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How long it is shown.
    pub seconds: Option<u64>,
    /// Nothing but JSON, and no waiting.
    pub json: bool,
    /// Where the report goes.
    pub out: Option<PathBuf>,
}

/// Shows it. Whether all went well.
pub fn show(wanted: &Wanted) -> Result<bool, String> {
    let words = |error: io::Error| error.to_string();
    let scratch = Scratch::new().map_err(words)?;
    let settings = scenery::settings(scratch.path()).map_err(|error| error.to_string())?;
    let mut server = Server::start(&settings, io::stderr()).map_err(|error| error.to_string())?;
    let ends = beginning(SystemClock.now(), SLICE_S);
    let begins = Wall(ends.0.saturating_sub_unsigned(LENGTH.0));
    let mut rehearsal = Rehearsal::new(begins, SEED);
    let mut scribe = Scribe::new(&server, begins);
    let lines = LENGTH.0.div_ceil(LINE.0);
    let seconds = wanted.seconds.unwrap_or(SECONDS);
    let pause = match wanted.json {
        true => Duration::ZERO,
        false => Duration::from_secs(seconds) / u32::try_from(lines).unwrap_or(u32::MAX),
    };
    if !wanted.json {
        greet(seconds);
    }
    while rehearsal.now() < LENGTH {
        let until = (rehearsal.now() + LINE).min(LENGTH);
        let passed = rehearsal.run_until(until);
        let line = scribe.write(&passed, &rehearsal)?;
        if !wanted.json {
            say!("{line}");
        }
        let woken = server.run_until(async move {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => true,
                () = tokio::time::sleep(pause) => false,
            }
        });
        match woken {
            None => return Err("the server has failed".to_owned()),
            Some(true) => break,
            Some(false) => {}
        }
    }
    let written = tell(&server, scratch.path().to_owned(), wanted, begins);
    let end = server.stop(std::future::pending());
    let written = written?;
    match wanted.json {
        true => say!("{}", written.json),
        false => {
            say!("\n{}\n", written.headline);
            say!("The report, as `outflow report` writes it:\n");
            for file in &written.files {
                say!("  {}", file.display());
            }
        }
    }
    Ok(end == End::Settled)
}

fn greet(seconds: u64) {
    let hours = LENGTH.0 as f64 / 3.6e12;
    say!("outflow demo --incident: {hours} hours in {seconds} seconds.");
    say!("The traffic and the provider are simulated in virtual time: its hidden limit falls to");
    say!("a tenth and comes back. The rate is decided by the same controller as in a server;");
    say!("what happens is written into the history and the audit of a real server, in a");
    say!("temporary directory, from which the report at the end is made.\n");
    say!("{}", scribe::HEAD);
}

/// Asks the server for the report, as anybody would.
fn tell(
    server: &Server,
    data_dir: PathBuf,
    wanted: &Wanted,
    begins: Wall,
) -> Result<Written, String> {
    let options = GlobalOptions {
        server: Some(server.url()),
        data_dir: Some(data_dir),
        ..GlobalOptions::default()
    };
    let session = Session::new(&options).map_err(|failure| failure.to_string())?;
    let arguments = report::Arguments {
        since: scribe::stamp(begins),
        until: None,
        destination: None,
        out: wanted.out.clone(),
        output: Output { json: wanted.json },
    };
    report::write(&arguments, &session).map_err(|failure| failure.to_string())
}
