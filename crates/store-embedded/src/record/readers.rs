//! Connections for questions: a few, each used by one question at a time, and
//! none of them waits for a writer.
//!
//! A question may have to look at many rows, so each has a time in which it
//! must be answered; a caller that asks too much is told so.

use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outflow_core::time::Nanos;
use rusqlite::{Connection, ErrorCode};

use super::error::RecordError;
use super::schema;

/// How many questions are answered at the same time.
const READERS: usize = 3;

/// How long a question may take.
const ANSWER_WITHIN: Nanos = Nanos::from_secs(10);

/// Steps of SQLite's machine between two looks at the clock: about 0.1 ms.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// Connections for questions.
pub struct Readers {
    idle: Mutex<Vec<Connection>>,
    freed: Condvar,
}

impl Readers {
    /// Connections to the record at `path`.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let idle = (0..READERS).map(|_| schema::reader(path));
        Ok(Self {
            idle: Mutex::new(idle.collect::<Result<_, _>>()?),
            freed: Condvar::new(),
        })
    }

    /// Asks a question, on one unchanging view of the record.
    pub fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        let taken = self.take();
        let connection = taken.connection();
        let until = Instant::now() + Duration::from_nanos(ANSWER_WITHIN.0);
        connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || Instant::now() > until))?;
        let view = connection.unchecked_transaction()?;
        question(&view).map_err(|error| match error {
            RecordError::Sqlite(error) if is_interrupted(&error) => {
                RecordError::TooSlow(ANSWER_WITHIN)
            }
            error => error,
        })
    }

    fn take(&self) -> Taken<'_> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(connection) = idle.pop() {
                return Taken(self, Some(connection));
            }
            idle = self
                .freed
                .wait(idle)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn is_interrupted(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

/// A connection that goes back when it is dropped.
struct Taken<'a>(&'a Readers, Option<Connection>);

impl Taken<'_> {
    fn connection(&self) -> &Connection {
        self.1
            .as_ref()
            .expect("a taken connection is there until it is dropped")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.extend(self.1.take());
        self.0.freed.notify_one();
    }
}
