//! A line of JSON for every limit that was granted, for whoever checks or
//! charges. Written by a thread of its own: no decision waits for a disk.

use std::io;
use std::io::Write as _;
use std::path::Path;

use jiff::Timestamp;
use outflow_core::class::Class;
use outflow_core::time::Now;
use outflow_telemetry::writer::Writer;

/// The log of what was granted.
#[derive(Debug)]
pub struct GrantsLog(Writer);

impl GrantsLog {
    /// Appends to a file, which is made if need be.
    pub fn open(path: &Path) -> io::Result<Self> {
        Writer::to_file("grants-log", path).map(Self)
    }

    /// So much of a key was granted.
    pub fn granted(&self, now: &Now, key: &str, cost: u32, class: Class) {
        self.0.line(|out| {
            let stamp = Timestamp::from_nanosecond(i128::from(now.wall.0)).unwrap_or_default();
            // A vector takes everything.
            let _ = write!(
                out,
                "{{\"at_ns\":{},\"wall\":\"{stamp}\",\"key\":",
                now.mono.0
            );
            let _ = serde_json::to_writer(&mut *out, key);
            let _ = write!(out, ",\"cost\":{cost},\"class\":\"{class}\"}}");
        });
    }

    /// Lines that were dropped because the disk did not keep up.
    pub fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}
