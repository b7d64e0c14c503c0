//! The commands that speak to a running server, and only over its REST API:
//! what they can do, a program can do as well.
//!
//! Results go to stdout, errors to stderr. Exit codes: 0 done, 1 failed, 2
//! wrong use. A reader that stops reading (`| head`) is no error.
//!
//! In reading order: [`failure`] (how a command ends badly), [`target`] (where
//! the server and the token are found), [`client`], [`session`] (what every
//! command works with); how things are written: [`plain`], [`table`], [`when`],
//! [`words`]; how they are read: [`selection`], [`fields`], [`pace`],
//! [`content`], [`confirm`]; [`message`] (a message as it is shown); then one
//! file for each command, and `reference` (the page about all of them).

mod accounts;
mod audit;
mod bulk;
mod classify;
mod client;
mod confirm;
mod content;
mod dead_letters;
mod doctor;
mod explain;
mod failure;
mod fields;
mod incidents;
mod lanes;
mod limits;
mod message;
mod messages;
pub mod pace;
mod pauses;
pub mod plain;
mod policies;
#[cfg(test)]
pub mod reference;
pub mod report;
mod reviews;
mod selection;
mod send;
pub mod session;
mod suppression_files;
mod suppressions;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod throttle;
mod tokens;
mod warmup;
mod watch;
pub mod when;
mod words;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use failure::Failure;
use session::Session;

/// Where the server is, and who asks.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct GlobalOptions {
    /// The address of the server. Without it, the file `address` in the data
    /// directory, else <http://127.0.0.1:8025>.
    #[arg(long, global = true, env = "OUTFLOW_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// The token to ask with. Without it, the file `admin-token` in the data
    /// directory.
    #[arg(
        long,
        global = true,
        env = "OUTFLOW_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Where the server keeps its data. Without it, `outflow-data`.
    #[arg(long, global = true, env = "OUTFLOW_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Certificates (PEM) to trust for https, instead of the usual ones.
    #[arg(long, global = true, env = "OUTFLOW_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

/// Commands for a running server.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send a message.
    Send(Box<send::Arguments>),
    /// List and show messages; cancel, retry or move those that wait.
    #[command(subcommand)]
    Messages(messages::Command),
    /// Say why a message waits, on which limit, and until when.
    Explain(explain::Arguments),
    /// Show lanes as they are now; pause or resume one.
    Lanes(lanes::Arguments),
    /// Send nothing that matches, until a time or until it is lifted.
    #[command(subcommand)]
    Pauses(pauses::Command),
    /// Show limits: live tokens, waiters, when they admit again.
    Limits(limits::Arguments),
    /// Credentials and sending addresses.
    #[command(subcommand)]
    Accounts(accounts::Command),
    /// What may be sent how fast.
    #[command(subcommand)]
    Policies(policies::Command),
    /// What was given up: look at it, then replay or discard it.
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// Who is not sent to any more, and why.
    #[command(subcommand)]
    Suppressions(suppressions::Command),
    /// Ask before acting: take limits, give them back.
    #[command(subcommand)]
    Throttle(throttle::Command),
    /// Who may do what.
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// Show what went wrong at destinations, and what was done about it.
    Incidents(incidents::Arguments),
    /// Show senders that are being warmed up: plan, day, quota, yesterday.
    Warmup(warmup::Arguments),
    /// Show who changed what, newest first.
    Audit(audit::Arguments),
    /// Write a post-mortem: what was refused, what was done about it, and when
    /// it was over, as Markdown with drawings.
    Report(report::Arguments),
    /// Say what an answer of a far end means. Needs no server.
    Classify(classify::Arguments),
    /// Look a domain over before it sends: SPF, DKIM, DMARC, MX, reverse DNS,
    /// TLS, limits. Needs no server, and asks one that answers.
    Doctor(doctor::Arguments),
}

/// Runs a command.
pub fn run(command: &Command, options: &GlobalOptions) -> ExitCode {
    match act(command, options) {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to be told if this fails too.
            let _ = writeln!(std::io::stderr(), "outflow: {failure}");
            failure.exit_code()
        }
    }
}

fn act(command: &Command, options: &GlobalOptions) -> Result<(), Failure> {
    if let Command::Classify(arguments) = command {
        return classify::run(arguments);
    }
    if let Command::Doctor(arguments) = command {
        return doctor::run(arguments, options);
    }
    let session = Session::new(options)?;
    match command {
        Command::Send(arguments) => send::run(arguments, &session),
        Command::Messages(command) => messages::run(command, &session),
        Command::Explain(arguments) => explain::run(arguments, &session),
        Command::Lanes(arguments) => lanes::run(arguments, &session),
        Command::Pauses(command) => pauses::run(command, &session),
        Command::Limits(arguments) => limits::run(arguments, &session),
        Command::Accounts(command) => accounts::run(command, &session),
        Command::Policies(command) => policies::run(command, &session),
        Command::DeadLetters(command) => dead_letters::run(command, &session),
        Command::Suppressions(command) => suppressions::run(command, &session),
        Command::Throttle(command) => throttle::run(command, &session),
        Command::Tokens(command) => tokens::run(command, &session),
        Command::Incidents(arguments) => incidents::run(arguments, &session),
        Command::Warmup(arguments) => warmup::run(arguments, &session),
        Command::Audit(arguments) => audit::run(arguments, &session),
        Command::Report(arguments) => report::run(arguments, &session),
        Command::Classify(_) | Command::Doctor(_) => Ok(()),
    }
}
