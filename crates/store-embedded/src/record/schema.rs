//! The tables, and the connections to them.
//!
//! A person with `sqlite3` can read them: states and classes are words, a
//! destination is `isp:google`, times are milliseconds since 1970 and say so,
//! and the view `receipts_readable` has them as text. The last twelve digits of
//! a message's id are its `seq` in hexadecimal.
//!
//! `receipts` has two indexes, both cheap to keep: one by tenant, whose pages
//! are few and hot, and one over the few messages that were not delivered.
//! Retention needs none, since `seq` follows the time of acceptance.
//!
//! `user_version` is the format. A later one is refused, an earlier one is
//! brought up step by step, each step in its own transaction.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::error::RecordError;
use super::registry::row_check;

/// Marks the file as a record: "OFrc".
const APPLICATION_ID: i64 = 0x4f46_7263;

/// How long a writer waits for another process, such as a person's `sqlite3`.
const BUSY: Duration = Duration::from_secs(2);

/// What brings format N to format N + 1, at place N.
const STEPS: [&str; 4] = [FIRST, SUPPRESSIONS, HISTORY, STORE];

const FIRST: &str = "
CREATE TABLE receipts (
    seq             INTEGER PRIMARY KEY,
    state           TEXT    NOT NULL,
    cause           TEXT,
    accepted_at_ms  INTEGER NOT NULL,
    settled_at_ms   INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    account         TEXT,
    tenant          TEXT    NOT NULL,
    campaign        TEXT,
    class           TEXT    NOT NULL,
    channel         TEXT    NOT NULL,
    pool            TEXT    NOT NULL,
    destination     TEXT    NOT NULL,
    sender_domain   TEXT,
    error_class     TEXT,
    error_code      INTEGER,
    error_enhanced  TEXT,
    error_rule      TEXT,
    error_text      TEXT,
    envelope        BLOB    NOT NULL,
    timeline        TEXT    NOT NULL
);
CREATE INDEX receipts_by_tenant ON receipts (tenant, seq);
CREATE INDEX receipts_not_delivered ON receipts (state, seq) WHERE state <> 'delivered';

CREATE VIEW receipts_readable AS SELECT
    printf('%012x', seq) AS id_ends_with, state, cause,
    strftime('%Y-%m-%dT%H:%M:%fZ', accepted_at_ms / 1000.0, 'unixepoch') AS accepted_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', settled_at_ms / 1000.0, 'unixepoch') AS settled_at,
    attempts, account, tenant, campaign, class, channel, pool, destination,
    error_class, error_code, error_enhanced, error_text, timeline
FROM receipts;

CREATE TABLE position (
    only_row        INTEGER PRIMARY KEY CHECK (only_row = 1),
    journal         INTEGER NOT NULL
);
INSERT INTO position (only_row, journal) VALUES (1, 0);

CREATE TABLE idempotency_keys (
    hash            INTEGER PRIMARY KEY,
    seq             INTEGER NOT NULL,
    accepted_at_ms  INTEGER NOT NULL,
    forget_at_ms    INTEGER NOT NULL
);
CREATE INDEX idempotency_keys_by_end ON idempotency_keys (forget_at_ms);

CREATE TABLE documents (
    kind            TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    value           TEXT,
    version         INTEGER NOT NULL,
    changed_at_ms   INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;

CREATE TABLE audit (
    no              INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms           INTEGER NOT NULL,
    actor           TEXT    NOT NULL,
    action          TEXT    NOT NULL,
    target          TEXT    NOT NULL,
    detail          TEXT    NOT NULL
);
CREATE INDEX audit_by_time ON audit (at_ms);
";

/// One index finds what came from a destination in an hour, one the few that
/// wait for a person.
const SUPPRESSIONS: &str = "
CREATE TABLE suppressions (
    tenant          TEXT    NOT NULL,
    recipient       TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    since_ms        INTEGER NOT NULL,
    source          TEXT    NOT NULL,
    destination     TEXT    NOT NULL,
    message         TEXT    NOT NULL,
    detail          TEXT    NOT NULL,
    PRIMARY KEY (tenant, recipient, reason)
) WITHOUT ROWID;
CREATE INDEX suppressions_by_destination ON suppressions (destination, since_ms)
    WHERE destination <> '';
CREATE INDEX suppressions_held ON suppressions (tenant, recipient, reason) WHERE state = 'held';
";

/// What was sent where, by slices of ten seconds.
const HISTORY: &str = "
CREATE TABLE history (
    at_s            INTEGER NOT NULL,
    destination     TEXT    NOT NULL,
    account         TEXT    NOT NULL,
    attempts        INTEGER NOT NULL,
    accepted        INTEGER NOT NULL,
    refused         INTEGER NOT NULL,
    deferred        INTEGER NOT NULL,
    bounced         INTEGER NOT NULL,
    refused_at_ms   INTEGER,
    refused_class   TEXT,
    refused_code    INTEGER,
    refused_text    TEXT,
    PRIMARY KEY (at_s, destination, account)
) WITHOUT ROWID;

CREATE TABLE history_rates (
    at_s            INTEGER NOT NULL,
    limit_key       TEXT    NOT NULL,
    destination     TEXT    NOT NULL,
    rate            REAL    NOT NULL,
    PRIMARY KEY (at_s, limit_key)
) WITHOUT ROWID;

CREATE TABLE history_size (
    only_row        INTEGER PRIMARY KEY CHECK (only_row = 1),
    rows            INTEGER NOT NULL
);
INSERT INTO history_size (only_row, rows) VALUES (1, 0);
";

/// Which store this is the record of; the list of segments says the same. None
/// until there is a list. Documents have checks of their own.
const STORE: &str = "
CREATE TABLE store (
    only_row        INTEGER PRIMARY KEY CHECK (only_row = 1),
    id              INTEGER NOT NULL
);
ALTER TABLE documents ADD COLUMN row_check INTEGER;
";

/// The format this release writes.
pub const FORMAT: i64 = STEPS.len() as i64;

/// A connection that writes, durably at each commit. A file that is not ours
/// to write is left as it is.
pub fn writer(path: &Path) -> Result<Connection, RecordError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    format_of(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    Ok(connection)
}

/// The same for what is written now and then: it keeps few pages in memory.
pub fn rare_writer(path: &Path) -> Result<Connection, RecordError> {
    let connection = writer(path)?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    Ok(connection)
}

/// A connection that only reads; it never waits for one that writes.
pub fn reader(path: &Path) -> Result<Connection, RecordError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    Ok(connection)
}

/// The format of a record, or why it cannot be used here.
pub fn format_of(connection: &Connection) -> Result<i64, RecordError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (format, application) = (pragma("user_version")?, pragma("application_id")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_empty = format == 0 && application == 0 && tables == 0;
    if !is_empty && application != APPLICATION_ID {
        return Err(RecordError::Foreign);
    }
    if format > FORMAT {
        let known = FORMAT;
        return Err(RecordError::Newer {
            found: format,
            known,
        });
    }
    Ok(format)
}

/// Gives all documents their checks.
pub fn check_documents(change: &Connection) -> rusqlite::Result<()> {
    let mut rows =
        change.prepare("SELECT kind, id, value, version, changed_at_ms FROM documents")?;
    let checks = rows.query_map([], |row| {
        let (kind, id): (String, String) = (row.get(0)?, row.get(1)?);
        let value: Option<String> = row.get(2)?;
        let check = row_check(&kind, &id, value.as_deref(), row.get(3)?, row.get(4)?);
        Ok((kind, id, check))
    })?;
    let checks: Vec<(String, String, i64)> = checks.collect::<Result<_, _>>()?;
    for row in checks {
        let set = "UPDATE documents SET row_check = ?3 WHERE kind = ?1 AND id = ?2";
        change.execute(set, row)?;
    }
    Ok(())
}

/// Which store a record is of; 0 if it was not told.
pub fn store_id(connection: &Connection) -> rusqlite::Result<u64> {
    let id = connection.query_row("SELECT id FROM store", [], |row| row.get::<_, i64>(0));
    Ok(id.optional()?.unwrap_or(0).cast_unsigned())
}

/// Brings a record to the format of this release.
pub fn migrate(connection: &mut Connection) -> Result<(), RecordError> {
    let format = format_of(connection)?;
    for (step, to) in STEPS.iter().zip(1..).filter(|(_, to)| *to > format) {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute_batch(step)?;
        if *step == STORE {
            check_documents(&change)?;
        }
        change.pragma_update(None, "application_id", APPLICATION_ID)?;
        change.pragma_update(None, "user_version", to)?;
        change.commit()?;
    }
    Ok(())
}
