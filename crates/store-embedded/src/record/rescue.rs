//! What can be read of a damaged record, in a new one.
//!
//! Rows are read from the front up to the first that cannot be, then from the
//! back. If the beginning of the file does not hold, the beginning of a new
//! record takes its place: what follows is the same in all records of a release.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::error::RecordError;
use super::schema;
use super::verify::changed_documents;
use super::words;

/// What is kept, and by what its rows are ordered; the most needed first.
const TABLES: [(&str, &str); 8] = [
    ("documents", "kind, id"),
    ("suppressions", "tenant, recipient, reason"),
    ("position", "only_row"),
    ("idempotency_keys", "hash"),
    ("receipts", "seq"),
    ("audit", "no"),
    ("history", "at_s, destination, account"),
    ("history_rates", "at_s, limit_key"),
];
/// Bytes of the head of a database, and of a page.
const HEAD: usize = 100;
const PAGE: usize = 4_096;

/// What was read.
#[derive(Debug, Default)]
pub struct Rescued {
    /// Up to where the record covered the journal, if that could be read.
    pub applied: u64,
    /// What is lost, in words.
    pub lost: Vec<String>,
}

/// Has a record cover no more of the journal than there is: what comes behind
/// that would never reach it.
pub fn cover_at_most(path: &Path, end: u64) -> Result<(), RecordError> {
    let record = schema::writer(path)?;
    let set = "UPDATE position SET journal = ?1 WHERE journal > ?1";
    record.execute(set, [end.cast_signed()])?;
    Ok(())
}

/// Copies what can be read of the record at `damaged`, a copy that may be
/// written to, into the new one.
pub fn rescue(damaged: &Path, new: &Path) -> Result<Rescued, RecordError> {
    let mut to = schema::writer(new)?;
    schema::migrate(&mut to)?;
    to.pragma_update(None, "wal_checkpoint", "TRUNCATE")?;
    let mut rescued = Rescued::default();
    // As it is; with the head of a new one; with the first page of a new one.
    for borrowed in [0, HEAD, PAGE] {
        if borrowed > 0 {
            let replaced = replace_beginning(damaged, new, borrowed);
            if replaced.is_err() {
                break;
            }
        }
        let mut problems = Vec::new();
        let mut read_any = false;
        for (table, order) in TABLES {
            match copy_table(damaged, &mut to, table, order) {
                Ok((rows, None)) => read_any |= rows > 0 || table == "position",
                Ok((rows, Some(error))) => {
                    read_any |= rows > 0;
                    problems.push(format!(
                        "record.sqlite: {table}: {rows} rows were read, others cannot be: {error}"
                    ));
                }
                Err(error) => problems.push(format!("record.sqlite: {table}: {error}")),
            }
        }
        rescued.lost = problems;
        if read_any {
            if borrowed > 0 {
                let text = "record.sqlite: its beginning; a new one was put in its place";
                rescued.lost.push(text.to_owned());
            }
            break;
        }
    }
    drop_changed(&to, &mut rescued.lost)?;
    drop_unreadable(&to, &mut rescued.lost)?;
    to.execute(
        "UPDATE history_size SET rows = (SELECT count(*) FROM history)",
        [],
    )?;
    let applied: i64 =
        to.query_row("SELECT max(journal, 0) FROM position", [], |row| row.get(0))?;
    rescued.applied = applied.cast_unsigned();
    Ok(rescued)
}

/// Takes out documents that are not what was written.
fn drop_changed(to: &Connection, lost: &mut Vec<String>) -> Result<(), RecordError> {
    for (kind, id) in changed_documents(to)? {
        lost.push(format!("record.sqlite: {kind} {id}"));
        to.execute(
            "DELETE FROM documents WHERE kind = ?1 AND id = ?2",
            [kind, id],
        )?;
    }
    Ok(())
}

/// Takes out receipts that say nothing.
fn drop_unreadable(to: &Connection, lost: &mut Vec<String>) -> Result<(), RecordError> {
    let mut select = to.prepare("SELECT DISTINCT state FROM receipts")?;
    let states = select.query_map([], |row| row.get::<_, String>(0))?;
    let states: Vec<String> = states.collect::<Result<_, _>>()?;
    let mut gone = to.execute("DELETE FROM receipts WHERE NOT json_valid(timeline)", [])?;
    for state in states.iter().filter(|state| words::state(state).is_err()) {
        gone += to.execute("DELETE FROM receipts WHERE state = ?1", [state])?;
    }
    if gone > 0 {
        lost.push(format!("record.sqlite: {gone} receipts"));
    }
    to.execute("UPDATE position SET journal = 0 WHERE journal < 0", [])?;
    Ok(())
}

/// Rows that were read, and why there are not more.
fn copy_table(
    damaged: &Path,
    to: &mut Connection,
    table: &str,
    order: &str,
) -> Result<(usize, Option<rusqlite::Error>), rusqlite::Error> {
    let from = Connection::open(damaged)?;
    // What cannot be right in one place need not keep the rest away.
    from.pragma_update(None, "cell_size_check", true)?;
    let columns = columns(to, table)?;
    let there = columns_of_file(&from, table)?;
    let columns: Vec<String> = columns
        .into_iter()
        .filter(|it| there.contains(it))
        .collect();
    let names = columns.join(", ");
    let holes = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT OR REPLACE INTO {table} ({names}) VALUES ({holes})");
    let change = to.transaction()?;
    let mut rows = 0;
    let mut failed = None;
    let backwards = order.replace(',', " DESC,") + " DESC";
    for order in [order, backwards.as_str()] {
        let select = format!("SELECT {names} FROM {table} ORDER BY {order}");
        let copied = copy_rows(&from, &change, (&select, &insert), &mut rows);
        let was_whole = copied.is_ok() && failed.is_none();
        failed = failed.or(copied.err());
        if was_whole {
            break;
        }
    }
    change.commit()?;
    // Earlier formats had no checks of rows.
    if table == "documents" && !there.iter().any(|it| it == "row_check") {
        schema::check_documents(to)?;
    }
    let count = format!("SELECT count(*) FROM {table}");
    let rows = to.query_row(&count, [], |row| row.get::<_, i64>(0))?;
    Ok((usize::try_from(rows).unwrap_or(0), failed))
}

fn copy_rows(
    from: &Connection,
    to: &Connection,
    (select, insert): (&str, &str),
    rows: &mut usize,
) -> Result<(), rusqlite::Error> {
    let mut select = from.prepare(select)?;
    let mut insert = to.prepare_cached(insert)?;
    let columns = select.column_count();
    let mut found = select.query([])?;
    while let Some(row) = found.next()? {
        let values = (0..columns).map(|column| row.get::<_, Value>(column));
        let values: Vec<Value> = values.collect::<Result<_, _>>()?;
        // A row that breaks a rule of its table is not whole.
        *rows += insert.execute(params_from_iter(values)).unwrap_or(0);
    }
    Ok(())
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, rusqlite::Error> {
    let mut names = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = names.query_map([table], |row| row.get(0))?;
    names.collect()
}

fn columns_of_file(connection: &Connection, table: &str) -> Result<Vec<String>, rusqlite::Error> {
    let found = columns(connection, table)?;
    match found.is_empty() {
        // The words of SQLite itself.
        true => Err(connection
            .prepare(&format!("SELECT 1 FROM {table}"))
            .err()
            .unwrap_or(rusqlite::Error::QueryReturnedNoRows)),
        false => Ok(found),
    }
}

/// Puts the beginning of a new record over that of a damaged one.
fn replace_beginning(damaged: &Path, new: &Path, bytes: usize) -> io::Result<()> {
    let fresh = fs::read(new)?;
    let file = fs::File::options().read(true).write(true).open(damaged)?;
    let pages = (file.metadata()?.len() / PAGE as u64) as u32;
    let Some(beginning) = fresh.get(..bytes) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let mut beginning = beginning.to_vec();
    // How many pages there are; and none of them are known to be free.
    for (at, value) in [(28, pages), (32, 0), (36, 0)] {
        if let Some(place) = beginning.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }
    file.write_all_at(&beginning, 0)?;
    file.sync_all()
}
