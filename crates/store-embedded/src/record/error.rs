//! Why a record cannot be opened or used.

use rusqlite::ErrorCode;

/// Why a record cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A later release wrote it.
    #[error(
        "the record has format {found}, this release knows formats up to {known}: use the release that wrote it, or a later one"
    )]
    Newer {
        /// Its format.
        found: i64,
        /// The latest format known here.
        known: i64,
    },
    /// It is a database of something else.
    #[error("the file is a database, but not a record of Outflow")]
    Foreign,
    /// A word in a table that this release does not know.
    #[error("the record holds an unknown {what}: {word:?}")]
    UnknownWord {
        /// What it should be.
        what: &'static str,
        /// What stands there.
        word: String,
    },
    /// A timeline that is not one.
    #[error("the record holds a timeline that cannot be read: {0}")]
    Timeline(#[from] serde_json::Error),
    /// A question that would take too long.
    #[error("the answer took longer than {0}: narrow the filter")]
    TooSlow(outflow_core::time::Nanos),
    /// The thread that writes could not be started.
    #[error("the record's thread cannot be started: {0}")]
    Thread(std::io::Error),
    /// Others on the machine could read it, and that cannot be changed.
    #[error("it cannot be made private: {0}")]
    NotPrivate(std::io::Error),
    /// The disk, or SQLite.
    #[error("the record cannot be read or written: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl RecordError {
    /// Whether the file is damaged, or not a record at all.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => {
                matches!(
                    error.sqlite_error_code(),
                    Some(
                        ErrorCode::DatabaseCorrupt
                            | ErrorCode::NotADatabase
                            | ErrorCode::SystemIoFailure
                    )
                ) || matches!(error, rusqlite::Error::SqliteFailure(error, Some(said)) if error.code == ErrorCode::Unknown && said.contains("no such table"))
                    || matches!(error, rusqlite::Error::QueryReturnedNoRows)
            }
            Self::Foreign | Self::UnknownWord { .. } | Self::Timeline(_) => true,
            Self::Newer { .. } | Self::TooSlow(_) | Self::Thread(_) | Self::NotPrivate(_) => false,
        }
    }
}
