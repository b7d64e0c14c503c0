//! The one binary of Outflow: the command line, and soon the server.
//!
//! Reading order: this file (commands), [`simulate`], [`cli`] (what speaks to a
//! running server).
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Sends each message as early as every limit on its way allows, and never
/// earlier.
#[derive(Parser)]
#[command(name = "outflow", version, about)]
struct Arguments {
    #[command(flatten)]
    global: cli::GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the engine against simulated networks in virtual time.
    Simulate(simulate::Arguments),
    #[command(flatten)]
    Cli(cli::Command),
}

fn main() -> ExitCode {
    let Arguments { global, command } = Arguments::parse();
    match command {
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Cli(command) => cli::run(&command, &global),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// `UPDATE_DOCS=1 cargo test -p outflow` writes the page anew.
    #[test]
    fn the_page_about_commands_is_up_to_date() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let wanted = super::cli::reference::markdown(super::Arguments::command());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(page, &wanted).expect("docs/cli.md can be written");
        }
        let written = std::fs::read_to_string(page).unwrap_or_default();
        assert!(
            written == wanted,
            "docs/cli.md is old: UPDATE_DOCS=1 writes it anew"
        );
    }
}
