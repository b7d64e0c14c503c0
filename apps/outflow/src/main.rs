//! The one binary of Outflow: the server and the command line.
//!
//! Reading order: this file (commands), [`serve`], [`demo`], [`store`] with [`take_out`],
//! [`config`], [`rules`], [`simulate`], [`report`] (post-mortems), [`cli`] (what speaks to a running
//! server).
#![allow(clippy::print_stderr)]

/// Writes a line to stdout. Nobody may be there to read it any more (`| head`):
/// what is done is done all the same.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

mod cli;
mod config;
mod demo;
mod report;
mod rules;
mod serve;
mod simulate;
mod store;
mod take_out;

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
    #[command(flatten)]
    Cli(cli::Command),
}

fn main() -> ExitCode {
    let Arguments { global, command } = Arguments::parse();
    let data_dir = global.data_dir.as_deref();
    match command {
        Command::Serve(arguments) => serve::run(&arguments, data_dir),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Store(arguments) => store::run(&arguments, data_dir),
        Command::Config(arguments) => config::run(&arguments, data_dir),
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
