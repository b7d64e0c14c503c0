//! `outflow store check` looks a data directory over and names what is damaged;
//! `outflow store salvage` saves what is left of one; `take-out` withdraws a
//! message from it. The server must not run
//! meanwhile.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outflow_store_embedded::{check, salvage};
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
    /// Read everything and name what is missing or damaged. Changes nothing.
    Check {
        #[command(flatten)]
        sources: Sources,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a new data directory with all that can be read of a damaged one,
    /// and a list of what cannot (salvaged.txt). Changes nothing in the old one.
    Salvage {
        /// The damaged data directory.
        #[arg(value_name = "DIR")]
        old: PathBuf,
        /// The new data directory; it must not exist yet, or be empty.
        #[arg(value_name = "NEW_DIR")]
        new: PathBuf,
    },
    /// Withdraw one message that a server cannot go on with.
    TakeOut {
        /// The id of the message.
        id: String,
        #[command(flatten)]
        sources: Sources,
    },
}

/// What to do about damage, for the end of a sentence.
pub fn advice(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "If there is a newer copy or snapshot of {dir}, restore it. Else write what can be read to \
         a new directory: outflow store salvage {dir} NEW_DIR"
    )
}

/// Runs the command.
pub fn run(arguments: &Arguments, data_dir: Option<&Path>) -> ExitCode {
    match &arguments.action {
        Action::Check { sources, json } => look_over(sources, *json, data_dir),
        Action::Salvage { old, new } => save(old, new),
        Action::TakeOut { id, sources } => match sources.load(data_dir, &[]) {
            Ok(settings) => take_out::run(&settings, id),
            Err(exit) => exit,
        },
    }
}

fn save(old: &Path, new: &Path) -> ExitCode {
    let salvaged = match salvage::salvage(old, new) {
        Ok(salvaged) => salvaged,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    say!(
        "{}: {} messages, {} dead letters",
        new.display(),
        salvaged.messages,
        salvaged.dead_letters
    );
    if salvaged.lost.is_empty() {
        say!("everything could be read");
        return ExitCode::SUCCESS;
    }
    for line in &salvaged.lost {
        say!("lost: {line}");
    }
    if !salvaged.ended.is_empty() {
        say!(
            "{} messages lost their content; they are dead letters (storage_damaged)",
            salvaged.ended.len()
        );
    }
    if !salvaged.missing.is_empty() {
        say!(
            "{} messages were accepted and cannot be found; some may have been settled",
            salvaged.missing.len()
        );
    }
    if salvaged.counts_lost {
        say!(
            "what became of some messages may be lost with it: they are sent again. Counts of \
             limits may be lost: limits over a time (1/h) count as used up until that time is over"
        );
    }
    let list = new.join(salvage::LIST);
    say!("the list: {}", list.display());
    ExitCode::SUCCESS
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
            "clean_stop": report.clean_stop,
            "notes": report.notes,
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
    for note in &report.notes {
        say!("{note}");
    }
    for problem in &report.problems {
        say!("damaged: {problem}");
    }
    if report.more_problems > 0 {
        say!("damaged: and {} more", report.more_problems);
    }
    match report.is_sound() {
        true => say!("nothing is damaged"),
        false => say!("{}", advice(dir)),
    }
}
