//! `outflow serve`: all roles in one process.
//!
//! Reading order: this file (from settings to the end of the process),
//! [`server`] and [`wiring`] (everything put together), [`gate`] (what is in
//! force before the first send); the node's ports: [`timed_store`], [`transports`], [`troubles`] and
//! [`accounts`] with [`relays`] and [`exchangers`], [`resolver`]; what is told:
//! [`logs`] and [`paced`], [`metrics`], [`health`], [`history`] and [`rates`], [`dns_watch`], [`deliveries`], [`audit_trail`]; [`submission`] (messages
//! over SMTP); [`returns`] (what comes back); [`throttle`] (limits for others); [`files`], [`memory`], [`open_files`], [`tls`], [`unbuilt`].

pub mod accounts;
pub mod audit_trail;
pub mod deliveries;
pub mod dns_watch;
pub mod exchangers;
pub mod files;
pub mod fleet;
pub mod gate;
pub mod health;
pub mod history;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod open_files;
pub mod paced;
pub mod rates;
pub mod relays;
pub mod resolver;
pub mod returns;
pub mod server;
pub mod submission;
pub mod throttle;
pub mod timed_store;
pub mod tls;
pub mod transports;
pub mod troubles;
pub mod unbuilt;
pub mod wiring;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use outflow_config::Settings;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::server::{End, ServeError, Server};
use crate::config;

/// How to serve.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    settings: config::Sources,
    /// Address and port of the API and the page.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, data_dir: Option<&Path>) -> ExitCode {
    let started = Instant::now();
    let listen = arguments.listen.as_deref();
    let over = Vec::from_iter(listen.map(|listen| ("server.listen", listen)));
    let settings = match arguments.settings.load(data_dir, &over) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let unbuilt = unbuilt::unbuilt(&settings);
    if !unbuilt.is_empty() {
        for line in unbuilt {
            eprintln!("{line}");
        }
        return ExitCode::from(2);
    }
    memory::set_large();
    if let Some(warning) = open_files::raise() {
        eprintln!("{warning}");
    }
    let mut server = match Server::start(&settings, io::stderr()) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("outflow cannot start: {error}");
            if let ServeError::Store(error) = &error
                && error.is_damage()
            {
                let dir = &settings.server.data_dir;
                eprintln!("`outflow store check` names all that is damaged.");
                eprintln!("{}", crate::store::advice(dir));
            }
            return ExitCode::FAILURE;
        }
    };
    // Before anybody is told that it is ready, and may ask it to end.
    let reload = server.reloads();
    let mut signals = match server.within(|| Signals::new(reload)) {
        Ok(signals) => signals,
        Err(error) => {
            eprintln!("outflow cannot hear signals: {error}");
            server.stop(std::future::ready(()));
            return ExitCode::FAILURE;
        }
    };
    greet(&settings, &server, started);
    if server.run_until(signals.next()).is_none() {
        eprintln!("outflow has failed: its node has ended; what was under way is found again");
        return ExitCode::FAILURE;
    }
    say!(
        "stopping: what is under way has {} to end; once more ends it at once",
        settings.server.shutdown_timeout
    );
    let hurry = async move {
        signals.next().await;
    };
    match server.stop(hurry) {
        End::Settled => say!("stopped: everything is settled"),
        End::Unsettled => {
            say!("stopped: what was not settled in time is tried again at the next start");
        }
        End::Panicked => {
            eprintln!("outflow has failed while it stopped; what was under way is found again");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// What asks the process to end. A hangup does not: it has files read again.
struct Signals<F> {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    reload: F,
}

impl<F: Fn()> Signals<F> {
    /// SIGHUP asks for `reload` and ends nothing.
    fn new(reload: F) -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            reload,
        })
    }

    async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => (self.reload)(),
            }
        }
    }
}

/// What a person wants to know at the start.
fn greet(settings: &Settings, server: &Server, started: Instant) {
    let opened = &server.opened;
    say!("outflow {}", env!("CARGO_PKG_VERSION"));
    say!("data      {}", settings.server.data_dir.display());
    say!(
        "found     {} messages in {} flows, {} dead letters, in {} ms ({} KiB read)",
        opened.messages,
        opened.flows,
        opened.dead_letters,
        opened.took.as_millis(),
        opened.bytes_read >> 10,
    );
    if opened.bytes_cut > 0 {
        say!(
            "          {} bytes that were not finished at the last end were cut off; nobody had \
             been told that they were stored",
            opened.bytes_cut
        );
    }
    if opened.list_mended {
        say!("          one file of the list of segments was damaged, and is written again");
    }
    if opened.unrecorded > 0 {
        say!(
            "          {} receipts are still to be written",
            opened.unrecorded
        );
    }
    say!("address   {}", server.url());
    if let Some(smtp) = server.smtp {
        say!("smtp      {smtp} (any user, a token as the password)");
    }
    if let Some(throttle) = server.throttle {
        say!("throttle  {throttle} (Redis protocol; AUTH with a token)");
    }
    match &server.token {
        Some(path) => say!("token     {} (administrator)", path.display()),
        None => say!("token     not in the data directory: use one that you have"),
    }
    if server.is_sandboxed {
        say!("accounts  only the sandbox: nothing leaves this machine");
    }
    say!("ready     after {} ms", started.elapsed().as_millis());
}
