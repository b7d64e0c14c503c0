//! Idempotency keys of messages that are done with.

use outflow_core::message::Seq;
use outflow_core::time::Wall;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::RecordError;
use super::waiting::Key;
use super::words;

/// Writes keys; one that was there stands for the later message.
pub fn write(connection: &Connection, keys: &[Key]) -> Result<(), RecordError> {
    let mut write = connection.prepare_cached(
        "INSERT OR REPLACE INTO idempotency_keys (hash, seq, accepted_at_ms, forget_at_ms) \
         VALUES (?1, ?2, ?3, ?4)",
    )?;
    for key in keys {
        write.execute(params![
            key.hash.cast_signed(),
            key.seq.0.cast_signed(),
            words::millis(key.accepted_at),
            words::millis(key.forget_at),
        ])?;
    }
    Ok(())
}

/// A key that is not to be forgotten yet.
pub fn find(
    connection: &Connection,
    hash: u64,
    now: Wall,
) -> Result<Option<(Seq, Wall)>, RecordError> {
    let found = connection
        .prepare_cached(
            "SELECT seq, accepted_at_ms FROM idempotency_keys \
             WHERE hash = ?1 AND forget_at_ms > ?2",
        )?
        .query_row(params![hash.cast_signed(), words::millis(now)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
        .optional()?;
    Ok(found.map(|(seq, accepted_ms)| (Seq(seq.cast_unsigned()), words::wall(accepted_ms))))
}

/// Whether there are any keys at all.
pub fn any(connection: &Connection) -> Result<bool, RecordError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM idempotency_keys)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Deletes up to `max` keys whose time has passed; how many.
pub fn forget(connection: &Connection, now: Wall, max: usize) -> Result<usize, RecordError> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM idempotency_keys WHERE hash IN (SELECT hash FROM idempotency_keys \
         WHERE forget_at_ms <= ?1 ORDER BY forget_at_ms LIMIT ?2)",
    )?;
    Ok(delete.execute(params![words::millis(now), max as i64])?)
}
