//! A check of the file: what SQLite finds wrong with it, and what we do.

use std::path::Path;

use outflow_core::message::Seq;
use outflow_core::retry::schedule::DeathCause;
use rusqlite::{Connection, params};

use super::error::RecordError;
use super::registry::row_check;
use super::{schema, words};

/// The most findings of SQLite's own check that are listed.
const FINDINGS_MAX: u32 = 100;

/// What must be in a record.
const PARTS: [&str; 18] = [
    "receipts",
    "receipts_by_tenant",
    "receipts_not_delivered",
    "receipts_readable",
    "position",
    "idempotency_keys",
    "idempotency_keys_by_end",
    "documents",
    "audit",
    "audit_by_time",
    "history",
    "history_rates",
    "history_size",
    "sqlite_sequence",
    "store",
    "suppressions",
    "suppressions_by_destination",
    "suppressions_held",
];

/// Rows that must not be, and what to say of them.
const RULES: [(&str, &str); 5] = [
    (
        "SELECT count(*) FROM receipts WHERE NOT json_valid(timeline)",
        "receipts have a timeline that is not JSON",
    ),
    (
        "SELECT count(*) FROM documents WHERE version < 1",
        "documents have no version",
    ),
    (
        "SELECT count(*) FROM documents WHERE value IS NOT NULL AND NOT json_valid(value)",
        "documents are not JSON",
    ),
    (
        "SELECT count(*) FROM position WHERE journal < 0",
        "positions are before the beginning of the journal",
    ),
    (
        "SELECT abs(count(*) - 1) FROM position",
        "positions too many or too few",
    ),
];

/// Checks a record, best while nothing writes to it: what is wrong, in words;
/// nothing if all is well.
pub fn verify(path: &Path) -> Result<Vec<String>, RecordError> {
    let connection = schema::reader(path)?;
    let format = schema::format_of(&connection)?;
    let mut wrong = integrity(&connection)?;
    if format < schema::FORMAT {
        // The tables of an earlier format are checked once it is brought up.
        return Ok(wrong);
    }
    let missing = missing(&connection)?;
    if !missing.is_empty() {
        wrong.extend(missing);
        return Ok(wrong);
    }
    for (sql, words) in RULES {
        let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        if count > 0 {
            wrong.push(format!("{count} {words}"));
        }
    }
    wrong.extend(unknown_states(&connection)?);
    let changed = changed_documents(&connection)?.into_iter();
    wrong.extend(changed.map(|(kind, id)| format!("the {kind} {id} is not what was written")));
    Ok(wrong)
}

/// Which store a record is of, 0 if it was not told, and up to where it covers
/// the journal.
pub fn store_and_position(path: &Path) -> Result<(u64, u64), RecordError> {
    let connection = schema::reader(path)?;
    let known: bool = connection
        .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'store'")?
        .exists([])?;
    let id = match known {
        true => schema::store_id(&connection)?,
        false => 0,
    };
    let position = connection.query_row("SELECT journal FROM position", [], |row| {
        row.get::<_, i64>(0)
    })?;
    Ok((id, position.cast_unsigned()))
}

/// Whether a message ended because what was stored of it is damaged.
pub fn ended_by_damage(path: &Path, seq: Seq) -> Result<bool, RecordError> {
    let connection = schema::reader(path)?;
    let cause = DeathCause::StorageDamaged.as_str();
    let mut find = connection.prepare("SELECT 1 FROM receipts WHERE seq = ?1 AND cause = ?2")?;
    Ok(find.exists(params![seq.0.cast_signed(), cause])?)
}

fn integrity(connection: &Connection) -> Result<Vec<String>, RecordError> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({FINDINGS_MAX})"))?;
    let findings: Vec<String> = check
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(findings.into_iter().filter(|found| found != "ok").collect())
}

fn missing(connection: &Connection) -> Result<Vec<String>, RecordError> {
    let mut find = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?;
    let mut missing = Vec::new();
    for part in PARTS {
        if !find.exists([part])? {
            missing.push(format!("{part} is missing"));
        }
    }
    Ok(missing)
}

/// Documents that are not what was written.
pub(super) fn changed_documents(
    connection: &Connection,
) -> Result<Vec<(String, String)>, RecordError> {
    let mut select = connection
        .prepare("SELECT kind, id, value, version, changed_at_ms, row_check FROM documents")?;
    let rows = select.query_map([], |row| {
        let (kind, id): (String, String) = (row.get(0)?, row.get(1)?);
        let value: Option<String> = row.get(2)?;
        let check = row_check(&kind, &id, value.as_deref(), row.get(3)?, row.get(4)?);
        let is_it = row.get::<_, Option<i64>>(5)? == Some(check);
        Ok((!is_it).then_some((kind, id)))
    })?;
    let changed: Vec<Option<(String, String)>> = rows.collect::<Result<_, _>>()?;
    Ok(changed.into_iter().flatten().collect())
}

fn unknown_states(connection: &Connection) -> Result<Vec<String>, RecordError> {
    let mut select = connection.prepare("SELECT state, count(*) FROM receipts GROUP BY state")?;
    let states: Vec<(String, i64)> = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let unknown = states
        .into_iter()
        .filter(|(word, _)| words::state(word).is_err());
    Ok(unknown
        .map(|(word, count)| format!("{count} receipts have the unknown state {word:?}"))
        .collect())
}
