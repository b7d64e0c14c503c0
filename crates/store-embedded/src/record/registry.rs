//! What operators set, and who set it: here SQLite is the truth.
//!
//! A change and its line of audit are one transaction, on the disk before the
//! call returns. A document that was taken away leaves a row without a value
//! and keeps counting versions, so that an old version never fits by chance.

use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use outflow_core::time::Wall;
use outflow_ports::registry::{Audit, AuditEntry, Change, Document, Kind, Registry, RegistryError};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use xxhash_rust::xxh3::xxh3_64;

use super::Record;
use super::words;
use crate::journal::codec::Out;

/// The most entries of the audit in one answer.
const ENTRIES_MAX: usize = 10_000;

const COLUMNS: &str = "id, value, version, changed_at_ms";

fn storage(error: rusqlite::Error) -> RegistryError {
    RegistryError::Storage(error.to_string())
}

impl Registry for Record {
    fn list(&self, kind: Kind) -> Result<Vec<Document>, RegistryError> {
        let sql = format!("SELECT {COLUMNS} FROM documents WHERE kind = ?1 ORDER BY id");
        let connection = self.registry_reader();
        let mut select = connection.prepare_cached(&sql).map_err(storage)?;
        let rows = select.query_map([kind.as_str()], |row| document(kind, row));
        rows.and_then(Iterator::collect).map_err(storage)
    }

    fn get(&self, kind: Kind, id: &str) -> Result<Option<Document>, RegistryError> {
        let sql = format!("SELECT {COLUMNS} FROM documents WHERE kind = ?1 AND id = ?2");
        let connection = self.registry_reader();
        let mut select = connection.prepare_cached(&sql).map_err(storage)?;
        select
            .query_row([kind.as_str(), id], |row| document(kind, row))
            .optional()
            .map_err(storage)
    }

    fn change(&self, change: Change<'_>, audit: Audit<'_>) -> Result<u64, RegistryError> {
        let version = self.write_now(|tables| {
            let version = replace(tables, &change, audit.at)?;
            note(tables, &audit).map_err(storage)?;
            Ok(version)
        })?;
        self.fold_log_in();
        Ok(version)
    }

    fn keep(&self, change: Change<'_>, at: Wall) -> Result<u64, RegistryError> {
        let version = self.write_now(|tables| replace(tables, &change, at))?;
        self.fold_log_in();
        Ok(version)
    }

    fn audit(&self, audit: Audit<'_>) -> Result<(), RegistryError> {
        self.write_now(|tables| note(tables, &audit).map_err(storage))
    }

    fn audit_entries(
        &self,
        times: Range<Wall>,
        before: Option<u64>,
        max: usize,
    ) -> Result<Vec<AuditEntry>, RegistryError> {
        let connection = self.registry_reader();
        let mut select = connection
            .prepare_cached(
                "SELECT no, at_ms, actor, action, target, detail FROM audit \
                 WHERE at_ms >= ?1 AND at_ms < ?2 AND no < ?3 ORDER BY no DESC LIMIT ?4",
            )
            .map_err(storage)?;
        let before = before.map_or(i64::MAX, |no| i64::try_from(no).unwrap_or(i64::MAX));
        let max = max.min(ENTRIES_MAX) as i64;
        let (since, until) = (words::millis(times.start), words::millis(times.end));
        let rows = select.query_map(params![since, until, before, max], entry);
        rows.and_then(Iterator::collect).map_err(storage)
    }
}

impl Record {
    pub(super) fn registry_reader(&self) -> MutexGuard<'_, Connection> {
        let reader = self.shared.registry_reader.lock();
        reader.unwrap_or_else(PoisonError::into_inner)
    }

    /// Empties the log of SQLite into the file: a log that is cut or deleted
    /// says nothing of what it had, and must not take along what operators set.
    fn fold_log_in(&self) {
        let _turn = self.shared.turns.take();
        let writer = self.shared.registry_writer.lock();
        let writer = writer.unwrap_or_else(PoisonError::into_inner);
        // Whoever reads may keep it from that; the next change does it too.
        let _ = writer.pragma_update(None, "wal_checkpoint", "TRUNCATE");
    }

    /// Writes, all or nothing.
    pub(super) fn write_now<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        let _turn = self.shared.turns.take();
        let writer = self.shared.registry_writer.lock();
        let mut writer = writer.unwrap_or_else(PoisonError::into_inner);
        let tables = writer
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(storage)?;
        let done = change(&tables)?;
        tables.commit().map_err(storage)?;
        Ok(done)
    }
}

/// Puts a document in place of what is there, if that is what was expected. Its
/// version.
fn replace(tables: &Transaction<'_>, change: &Change<'_>, at: Wall) -> Result<u64, RegistryError> {
    let known = tables
        .query_row(
            "SELECT version, value IS NOT NULL FROM documents WHERE kind = ?1 AND id = ?2",
            [change.kind.as_str(), change.id],
            |row| Ok((number(row, 0)?, row.get::<_, bool>(1)?)),
        )
        .optional()
        .map_err(storage)?;
    let (version, is_there) = known.unwrap_or((0, false));
    let fits = match change.expected {
        None => true,
        Some(0) => !is_there,
        Some(expected) => expected == version,
    };
    if !fits {
        return Err(RegistryError::Conflict {
            kind: change.kind.as_str(),
            id: change.id.to_owned(),
            version,
        });
    }
    put(tables, change, version + 1, at).map_err(storage)?;
    Ok(version + 1)
}

fn put(
    tables: &Transaction<'_>,
    change: &Change<'_>,
    version: u64,
    at: Wall,
) -> rusqlite::Result<()> {
    let mut put = tables.prepare_cached(
        "INSERT OR REPLACE INTO documents (kind, id, value, version, changed_at_ms, row_check) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let kind = change.kind.as_str();
    let (version, at) = (version.cast_signed(), words::millis(at));
    let check = row_check(kind, change.id, change.value, version, at);
    put.execute(params![kind, change.id, change.value, version, at, check])?;
    Ok(())
}

/// What tells a row that was damaged: SQLite itself looks at how rows are kept,
/// and not at what is in them.
pub(super) fn row_check(
    kind: &str,
    id: &str,
    value: Option<&str>,
    version: i64,
    changed_at_ms: i64,
) -> i64 {
    let mut bytes = Vec::new();
    let mut out = Out(&mut bytes);
    out.text(kind).text(id).maybe_text(value);
    out.i64(version).i64(changed_at_ms);
    xxh3_64(&bytes).cast_signed()
}

pub(super) fn note(tables: &Transaction<'_>, audit: &Audit<'_>) -> rusqlite::Result<()> {
    let mut note = tables.prepare_cached(
        "INSERT INTO audit (at_ms, actor, action, target, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    note.execute(params![
        words::millis(audit.at),
        audit.actor,
        audit.action,
        audit.target,
        audit.detail,
    ])?;
    Ok(())
}

/// Deletes what is older than `cutoff`, and the oldest of what is too much, at
/// most about `max` lines. Whether there may be more.
pub(super) fn forget(
    change: &Transaction<'_>,
    cutoff: Wall,
    rows_max: u64,
    max: usize,
) -> rusqlite::Result<bool> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let old = change.execute(
        "DELETE FROM audit WHERE no IN \
         (SELECT no FROM audit WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
        [words::millis(cutoff), max],
    )?;
    // Numbers are given one after the other: the last tells how many there are.
    let rows_max = i64::try_from(rows_max).unwrap_or(i64::MAX);
    let surplus = change.execute(
        "DELETE FROM audit WHERE no IN \
         (SELECT no FROM audit WHERE no <= (SELECT max(no) FROM audit) - ?1 \
          ORDER BY no LIMIT ?2)",
        [rows_max, max],
    )?;
    Ok(old.max(surplus) as i64 >= max)
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

fn document(kind: Kind, row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        kind,
        id: row.get(0)?,
        value: row.get(1)?,
        version: number(row, 2)?,
        changed_at: words::wall(row.get(3)?),
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        no: number(row, 0)?,
        at: words::wall(row.get(1)?),
        actor: row.get(2)?,
        action: row.get(3)?,
        target: row.get(4)?,
        detail: row.get(5)?,
    })
}
