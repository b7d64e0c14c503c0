//! `outflow store check`: looks a data directory over and names what is
//! damaged; `take-out` withdraws a message from it. The server must not run
//! meanwhile.

use std::path::Path;
use std::process::ExitCode;

use outflow_store_embedded::check;
use serde_json::json;

use crate::config::Sources;
use crate::take_out;

/// What to do with a store.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Read everything and name what is damaged. Changes nothing.
    Check {
        #[command(flatten)]
        sources: Sources,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Withdraw one message that a server cannot go on with.
    TakeOut {
        /// The id of the message.
        id: String,
        #[command(flatten)]
        sources: Sources,
    },
}

/// Runs the command.
pub fn run(arguments: &Arguments, data_dir: Option<&Path>) -> ExitCode {
    match &arguments.action {
        Action::Check { sources, json } => look_over(sources, *json, data_dir),
        Action::TakeOut { id, sources } => match sources.load(data_dir, &[]) {
            Ok(settings) => take_out::run(&settings, id),
            Err(exit) => exit,
        },
    }
}

fn look_over(sources: &Sources, json: bool, data_dir: Option<&Path>) -> ExitCode {
    let dir = match data_dir {
        Some(dir) => dir.to_owned(),
        None => match sources.load(None, &[]) {
            Ok(settings) => settings.server.data_dir,
            Err(exit) => return exit,
        },
    };
    let report = match check::check(&dir) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if json {
        let report = json!({
            "data_dir": dir.display().to_string(),
            "sound": report.is_sound(),
            "segments": report.segments,
            "frames": report.frames,
            "bytes": report.bytes,
            "messages": report.messages,
            "dead_letters": report.dead_letters,
            "torn_bytes": report.torn_bytes,
            "problems": report.problems,
            "more_problems": report.more_problems,
        });
        say!("{report}");
    } else {
        say(&dir, &report);
    }
    match report.is_sound() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn say(dir: &Path, report: &check::Report) {
    say!(
        "{}: {} messages, {} dead letters; {} segments, {} frames, {} MiB read",
        dir.display(),
        report.messages,
        report.dead_letters,
        report.segments,
        report.frames,
        report.bytes >> 20,
    );
    if report.torn_bytes > 0 {
        say!(
            "{} bytes at the end were not finished; the next start cuts them off, which is no \
             damage",
            report.torn_bytes
        );
    }
    for problem in &report.problems {
        say!("damaged: {problem}");
    }
    if report.more_problems > 0 {
        say!("damaged: and {} more", report.more_problems);
    }
    if report.is_sound() {
        say!("nothing is damaged");
    }
}
