//! Who is not sent to any more: here SQLite is the truth.
//!
//! Changes go over many rows at most [`PAGE_MAX`] at a time, so that nobody who
//! writes waits long for another.

use outflow_core::suppression::Reason;
use outflow_core::time::Wall;
use outflow_ports::registry::{Audit, RegistryError};
use outflow_ports::suppression::{
    LEARNT_FROM, PAGE_MAX, Placed, Put, Suppression, SuppressionChange, SuppressionError,
    SuppressionFilter, SuppressionKey, Suppressions,
};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};

use super::Record;
use super::registry::note;
use super::words;

const COLUMNS: &str =
    "tenant, recipient, reason, state, since_ms, source, destination, message, detail";

/// A condition of SQL and what it compares with.
struct Condition {
    sql: String,
    values: Vec<Value>,
}

impl Condition {
    fn of(filter: &SuppressionFilter) -> Self {
        let mut condition = Self {
            sql: "true".to_owned(),
            values: Vec::new(),
        };
        let texts = [
            ("tenant = ?", filter.tenant.as_deref()),
            ("recipient = ?", filter.recipient.as_deref()),
            ("reason = ?", filter.reason.map(Reason::as_str)),
            // The index covers only those that name a destination.
            (
                "destination <> '' AND destination = ?",
                filter.destination.as_deref(),
            ),
        ];
        for (sql, text) in texts {
            if let Some(text) = text {
                condition.and(sql, text.to_owned());
            }
        }
        let times = [
            ("since_ms >= ?", filter.since),
            ("since_ms < ?", filter.until),
        ];
        for (sql, at) in times {
            if let Some(at) = at {
                condition.and(sql, words::millis(at));
            }
        }
        // As words, not as a value: only then the index of those held is used.
        match filter.is_held {
            Some(true) => condition.sql.push_str(" AND state = 'held'"),
            Some(false) => condition.sql.push_str(" AND state = 'active'"),
            None => {}
        }
        if filter.is_learnt {
            let learnt = LEARNT_FROM.map(|source| format!("'{source}'")).join(", ");
            condition
                .sql
                .push_str(&format!(" AND source IN ({learnt})"));
        }
        condition
    }

    fn and(&mut self, sql: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.push(value.into());
    }
}

const fn state(is_held: bool) -> &'static str {
    match is_held {
        true => "held",
        false => "active",
    }
}

fn failed(error: impl std::fmt::Display) -> SuppressionError {
    SuppressionError::Storage(error.to_string())
}

impl Suppressions for Record {
    fn put(
        &self,
        entries: &[Suppression],
        audit: Option<Audit<'_>>,
    ) -> Result<Put, SuppressionError> {
        let put = self.write_now(|tables| {
            let put = put(tables, entries).map_err(storage)?;
            if let Some(audit) = &audit {
                note(tables, audit).map_err(storage)?;
            }
            Ok(put)
        });
        put.map_err(failed)
    }

    fn change(
        &self,
        filter: &SuppressionFilter,
        change: SuppressionChange,
    ) -> Result<Vec<(SuppressionKey, Wall)>, SuppressionError> {
        let mut condition = Condition::of(filter);
        let (verb, rest) = match change {
            SuppressionChange::Remove => ("DELETE FROM suppressions", ""),
            SuppressionChange::Hold => {
                condition.sql.push_str(" AND state = 'active'");
                ("UPDATE suppressions SET", "state = 'held' ")
            }
            SuppressionChange::Approve => {
                condition.sql.push_str(" AND state = 'held'");
                ("UPDATE suppressions SET", "state = 'active' ")
            }
        };
        let sql = format!(
            "{verb} {rest}WHERE (tenant, recipient, reason) IN \
             (SELECT tenant, recipient, reason FROM suppressions WHERE {} LIMIT {PAGE_MAX}) \
             RETURNING tenant, recipient, reason, since_ms",
            condition.sql
        );
        let changed = self.write_now(|tables| {
            let mut change = tables.prepare_cached(&sql).map_err(storage)?;
            let rows = change.query_map(params_from_iter(condition.values), key);
            rows.and_then(Iterator::collect).map_err(storage)
        });
        changed.map_err(failed)
    }

    fn list(
        &self,
        filter: &SuppressionFilter,
        after: Option<&SuppressionKey>,
        max: usize,
    ) -> Result<Vec<Suppression>, SuppressionError> {
        let mut condition = Condition::of(filter);
        if let Some(after) = after {
            condition
                .sql
                .push_str(" AND (tenant, recipient, reason) > (?, ?, ?)");
            let (tenant, recipient) = (after.tenant.clone(), after.recipient.clone());
            let reason = after.reason.as_str().to_owned();
            condition
                .values
                .extend([tenant, recipient, reason].map(Value::from));
        }
        let max = max.min(PAGE_MAX);
        let sql = format!(
            "SELECT {COLUMNS} FROM suppressions WHERE {} \
             ORDER BY tenant, recipient, reason LIMIT {max}",
            condition.sql
        );
        self.look(|connection| {
            let mut select = connection.prepare_cached(&sql)?;
            let rows = select.query_map(params_from_iter(&condition.values), entry)?;
            rows.collect()
        })
    }

    fn count(&self, filter: &SuppressionFilter) -> Result<u64, SuppressionError> {
        let condition = Condition::of(filter);
        let sql = format!("SELECT count(*) FROM suppressions WHERE {}", condition.sql);
        self.look(|connection| {
            let mut count = connection.prepare_cached(&sql)?;
            let count = count.query_row(params_from_iter(&condition.values), |row| {
                row.get::<_, i64>(0)
            });
            Ok(count?.cast_unsigned())
        })
    }

    fn load(&self, each: &mut dyn FnMut(&str, &str, Reason, Wall)) -> Result<(), SuppressionError> {
        self.look_long(|connection| {
            let mut select = connection.prepare(
                "SELECT tenant, recipient, reason, since_ms FROM suppressions \
                 WHERE state = 'active'",
            )?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let (tenant, recipient) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
                let reason = reason(row.get_ref(2)?.as_str()?)?;
                each(tenant, recipient, reason, words::wall(row.get(3)?));
            }
            Ok(())
        })
    }
}

impl Record {
    /// Looks at the list, within the time that an answer may take.
    fn look<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, SuppressionError> {
        let answer = self.readers().ask(|connection| Ok(question(connection)?));
        answer.map_err(failed)
    }

    /// Looks at all of it, once, at the start.
    fn look_long<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, SuppressionError> {
        question(&self.registry_reader()).map_err(failed)
    }
}

fn storage(error: rusqlite::Error) -> RegistryError {
    RegistryError::Storage(error.to_string())
}

fn put(tables: &Transaction<'_>, entries: &[Suppression]) -> rusqlite::Result<Put> {
    let mut insert = tables.prepare_cached(
        "INSERT INTO suppressions \
         (tenant, recipient, reason, state, since_ms, source, destination, message, detail) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
    )?;
    let mut settle = tables.prepare_cached(
        "UPDATE suppressions SET state = 'active' \
         WHERE tenant = ?1 AND recipient = ?2 AND reason = ?3 AND state = 'held'",
    )?;
    let mut look = tables.prepare_cached(
        "SELECT state = 'held' FROM suppressions \
         WHERE tenant = ?1 AND recipient = ?2 AND reason = ?3",
    )?;
    let mut put = Put::default();
    for entry in entries {
        let reason = entry.reason.as_str();
        let added = insert.execute(params![
            entry.tenant,
            entry.recipient,
            reason,
            state(entry.is_held),
            words::millis(entry.since),
            entry.source,
            entry.destination,
            entry.message,
            words::cut(&entry.detail),
        ])?;
        let key = params![entry.tenant, entry.recipient, reason];
        let is_sure = !entry.is_held && !entry.is_learnt();
        put.push(if added > 0 {
            Placed::New
        } else if is_sure && settle.execute(key)? > 0 {
            Placed::Approved
        } else if look.query_row(key, |row| row.get(0))? {
            Placed::Held
        } else {
            Placed::Known
        });
    }
    Ok(put)
}

fn reason(word: &str) -> rusqlite::Result<Reason> {
    let unknown = |error| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(2, kind, Box::new(error))
    };
    word.parse::<Reason>().map_err(unknown)
}

fn key(row: &Row<'_>) -> rusqlite::Result<(SuppressionKey, Wall)> {
    let key = SuppressionKey {
        tenant: row.get(0)?,
        recipient: row.get(1)?,
        reason: reason(row.get_ref(2)?.as_str()?)?,
    };
    Ok((key, words::wall(row.get(3)?)))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Suppression> {
    Ok(Suppression {
        tenant: row.get(0)?,
        recipient: row.get(1)?,
        reason: reason(row.get_ref(2)?.as_str()?)?,
        is_held: row.get_ref(3)?.as_str()? == "held",
        since: words::wall(row.get(4)?),
        source: row.get(5)?,
        destination: row.get(6)?,
        message: row.get(7)?,
        detail: row.get(8)?,
    })
}
