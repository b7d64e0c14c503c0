//! A check of the file: what SQLite finds wrong with it, and what we do.

use std::path::Path;

use rusqlite::Connection;

use super::error::RecordError;
use super::{schema, words};

/// The most findings of SQLite's own check that are listed.
const FINDINGS_MAX: u32 = 100;

/// What must be in a record.
const PARTS: [&str; 17] = [
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
    Ok(wrong)
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
