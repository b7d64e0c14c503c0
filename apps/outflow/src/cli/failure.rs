//! How a command ends badly, in words that say what to do.

use std::io;
use std::process::ExitCode;

use serde::Deserialize;

use super::plain::plain;

/// Where codes are explained.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main");

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nobody reads what we write. Not an error.
    #[error("nobody reads the output")]
    ClosedPipe,
    /// It was called in a wrong way.
    #[error("{0}")]
    WrongUse(String),
    /// No server answers.
    #[error(
        "cannot reach a server at {url}: {why}\n  \
         It was looked for at: {looked}.\n  \
         Start one with `outflow serve`, or say where it is: --server URL (or OUTFLOW_SERVER), \
         or --data-dir DIR."
    )]
    Unreachable {
        /// Where.
        url: String,
        /// What happened.
        why: String,
        /// Where the address came from.
        looked: String,
    },
    /// The server refused.
    #[error("{}", .0.text())]
    Refused(Box<Refusal>),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// A refusal of the server.
#[derive(Debug)]
pub struct Refusal {
    /// What it said.
    pub problem: Problem,
    /// When to come back, in seconds.
    pub retry_after_s: Option<u64>,
    /// What we can add.
    pub hint: Option<String>,
}

/// `application/problem+json`, as far as it is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The page that explains it.
    #[serde(rename = "type")]
    pub page: String,
    /// What it is, in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request.
    pub detail: String,
    /// The word that programs rely on.
    pub code: String,
    /// Fields at fault.
    pub errors: Vec<FieldError>,
}

/// One field at fault.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FieldError {
    /// Where it is, as a JSON pointer.
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

impl Failure {
    /// 1 for what failed, 2 for wrong use.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::ClosedPipe => ExitCode::SUCCESS,
            Self::WrongUse(_) => ExitCode::from(2),
            Self::Unreachable { .. } | Self::Refused(_) | Self::Other(_) => ExitCode::FAILURE,
        }
    }

    /// Output that could not be written.
    pub fn of_output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Other(format!("the output cannot be written: {error}")),
        }
    }

    /// Whether the server refused with this code.
    pub fn is_refusal(&self, code: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.problem.code == code)
    }
}

impl Refusal {
    fn text(&self) -> String {
        let Problem {
            page,
            title,
            status,
            detail,
            code,
            errors,
        } = &self.problem;
        let mut lines = vec![format!("{} ({status} {})", plain(title), plain(code))];
        match errors.as_slice() {
            [] => lines.extend((!detail.is_empty()).then(|| plain(detail))),
            errors => lines.extend(errors.iter().map(|error| {
                let pointer = match error.pointer.as_str() {
                    "" => "it",
                    pointer => pointer,
                };
                format!("{}: {}", plain(pointer), plain(&error.detail))
            })),
        }
        if let Some(seconds) = self.retry_after_s {
            lines.push(format!("Try again in {seconds} s."));
        }
        lines.extend(self.hint.clone());
        if page.starts_with("/docs/") {
            lines.push(format!("See {PAGES}{}.md", plain(page)));
        } else if page.contains("://") {
            lines.push(format!("See {}", plain(page)));
        }
        lines.join("\n  ")
    }
}
