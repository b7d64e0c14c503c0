//! Writes lines without making anybody wait.
//!
//! Whoever has a line adds it to a bounded buffer; a thread of its own empties
//! it. Lines that find the buffer full, or that the disk does not take, are
//! dropped and counted: a slow terminal or a full disk must not slow the node.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::log_file::LogFile;

/// Bytes that wait to be written, at most, give or take one line.
const WAITING_MAX: usize = 4 << 20;
/// How long the end of a program waits for its last lines.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    lines: u64,
    closed: bool,
    ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    dropped: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes lines on a thread of its own. What waits is written when it is
/// dropped.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
}

impl Writer {
    /// Writes to `out`, on a thread called `name`.
    pub fn new(name: &str, out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || write_all(&of_thread, out))?;
        Ok(Self { shared })
    }

    /// Writes to the end of a file, which is made if need be, also when it was
    /// moved away.
    pub fn to_file(name: &str, path: &Path) -> io::Result<Self> {
        Self::new(name, LogFile::open(path)?)
    }

    /// Adds a line, without its end, if there is room.
    pub fn line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut waiting = self.shared.lock();
        if waiting.bytes.len() >= WAITING_MAX {
            self.shared.dropped.fetch_add(1, Relaxed);
            return;
        }
        write(&mut waiting.bytes);
        waiting.bytes.push(b'\n');
        waiting.lines += 1;
        if waiting.lines == 1 {
            self.shared.changed.notify_all();
        }
    }

    /// Lines that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.closed = true;
        self.shared.changed.notify_all();
        // A reader that has stopped reading must not keep the program alive.
        let ended = self
            .shared
            .changed
            .wait_timeout_while(waiting, FAREWELL, |waiting| !waiting.ended);
        drop(ended);
    }
}

fn write_all(shared: &Shared, mut out: impl Write) {
    let mut bytes = Vec::new();
    loop {
        let mut waiting = shared.lock();
        while waiting.bytes.is_empty() && !waiting.closed {
            waiting = shared
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.bytes.is_empty() {
            waiting.ended = true;
            shared.changed.notify_all();
            return;
        }
        std::mem::swap(&mut bytes, &mut waiting.bytes);
        let lines = std::mem::take(&mut waiting.lines);
        drop(waiting);
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            shared.dropped.fetch_add(lines, Relaxed);
        }
        bytes.clear();
    }
}
