//! A line for every message that a sandbox takes, on the disk of this machine
//! before the sandbox answers: what the sandbox has seen survives the process,
//! so that one can count what was delivered twice over a crash.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use outflow_api::Clock as _;
use outflow_core::message_id::MessageId;
use outflow_transport_sandbox::Kept;
use serde_json::json;

use super::wiring::SystemClock;

/// Writes the lines.
#[derive(Debug)]
pub struct Deliveries {
    file: File,
}

impl Deliveries {
    /// Appends to a file, which is made if need be.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    /// Writes one line, in one call, so that a kill leaves no half of it. The
    /// sandbox takes the message also if the disk does not take the line.
    pub fn write(&mut self, kept: &Kept) -> io::Result<()> {
        let mut line = json!({
            "id": MessageId::new(kept.accepted_at, kept.seq).to_string(),
            "at_ns": kept.at.0,
            // A turn of the node has one time; this is when it came to this line.
            "written_ns": SystemClock.now().0,
            "account": kept.account.as_str(),
            "destination": kept.destination.to_string(),
            "attempt": kept.attempts + 1,
            "process": std::process::id(),
        })
        .to_string();
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}
