//! The one binary of Outflow: the server and the command line.
//!
//! Reading order: this file (commands), [`serve`], [`demo`], [`store`],
//! [`config`], [`simulate`].
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod config;
mod demo;
mod serve;
mod simulate;
mod store;

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
    /// Run the server: API, queue and dispatch, in one process.
    Serve(serve::Arguments),
    /// Watch a server at work, in a temporary directory, with sandboxed providers.
    Demo(demo::Arguments),
    /// Run the engine against simulated networks in virtual time.
    Simulate(simulate::Arguments),
    /// Look a data directory over.
    Store(store::Arguments),
    /// Check, show or explain settings.
    Config(config::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Store(arguments) => store::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
    }
}
