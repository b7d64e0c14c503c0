//! The one binary of Outflow: the command line, and soon the server.
//!
//! Reading order: this file (commands), [`simulate`].
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Sends each message as early as every limit on its way allows, and never
/// earlier.
#[derive(Parser)]
#[command(name = "outflow", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the engine against simulated networks in virtual time.
    Simulate(simulate::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Simulate(arguments) => simulate::run(&arguments),
    }
}
