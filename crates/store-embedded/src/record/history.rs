//! What was sent where, in slices of ten seconds, and the rates in force.
//!
//! Rows lie in the order of time, so that a span is one run over the table and
//! what runs out lies at its beginning. Steps longer than a slice are added up
//! while the rows go by; of rates the last of a step counts. A limit that is gone
//! has an infinite rate in the table. A counter beside the tables knows how many rows there
//! are, since counting them would read them all.

use std::collections::BTreeMap;

use outflow_core::time::{NANOS_PER_SECOND, Wall};
use outflow_ports::history::{
    Attempts, History, HistoryError, Page, RateInForce, Refusal, SLICE_S, STEP_S_MAX, Slice, Span,
};
use outflow_ports::registry::RegistryError;
use rusqlite::{Connection, Row, Transaction, params};

use super::error::RecordError;
use super::{Record, words};

/// Rates of so long before a span are part of its answer, in seconds.
const BEFORE_S: i64 = 900;
/// The most rates in one answer.
const RATES_MAX: usize = 100_000;
/// Texts are cut here, in bytes.
const TEXT_BYTES_MAX: usize = 300;

const PUT_SLICE: &str = "INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
     ?11, ?12) ON CONFLICT DO UPDATE SET \
     attempts = attempts + excluded.attempts, accepted = accepted + excluded.accepted, \
     refused = refused + excluded.refused, deferred = deferred + excluded.deferred, \
     bounced = bounced + excluded.bounced, \
     refused_class = iif(refused_at_ms IS NULL, excluded.refused_class, refused_class), \
     refused_code = iif(refused_at_ms IS NULL, excluded.refused_code, refused_code), \
     refused_text = iif(refused_at_ms IS NULL, excluded.refused_text, refused_text), \
     refused_at_ms = coalesce(refused_at_ms, excluded.refused_at_ms)";

const PUT_RATE: &str = "INSERT OR REPLACE INTO history_rates VALUES (?1, ?2, ?3, ?4)";

const SLICES: &str = "SELECT * FROM history WHERE at_s >= ?1 AND at_s < ?2 \
     AND (?3 IS NULL OR destination = ?3) ORDER BY at_s, destination, account";

/// The last of each limit in each step (`?4` seconds long).
const RATES: &str = "SELECT max(at_s) AS last_s, limit_key, destination, rate FROM history_rates \
     WHERE at_s >= ?1 AND at_s < ?2 AND (?3 IS NULL OR destination = ?3) \
     GROUP BY at_s / ?4, limit_key ORDER BY last_s, limit_key LIMIT ?5";

fn failed(error: impl std::fmt::Display) -> HistoryError {
    HistoryError(error.to_string())
}

impl History for Record {
    fn write(&self, slices: &[Slice], rates: &[RateInForce]) -> Result<(), HistoryError> {
        if slices.is_empty() && rates.is_empty() {
            return Ok(());
        }
        let storage = |error: rusqlite::Error| RegistryError::Storage(error.to_string());
        self.write_now(|tables| put(tables, slices, rates).map_err(storage))
            .map_err(failed)
    }

    fn read(&self, span: &Span) -> Result<Page, HistoryError> {
        self.readers().ask(|view| read(view, span)).map_err(failed)
    }
}

fn put(tables: &Transaction<'_>, slices: &[Slice], rates: &[RateInForce]) -> rusqlite::Result<()> {
    let mut put = tables.prepare_cached(PUT_SLICE)?;
    for slice in slices {
        let counts = &slice.attempts;
        let refusal = slice.refusal.as_ref();
        put.execute(params![
            seconds(slice.at),
            slice.destination,
            slice.account.as_deref().unwrap_or_default(),
            counts.attempts.cast_signed(),
            counts.accepted.cast_signed(),
            counts.refused.cast_signed(),
            counts.deferred.cast_signed(),
            counts.bounced.cast_signed(),
            refusal.map(|it| words::millis(it.at)),
            refusal.map(|it| it.class.as_str()),
            refusal.and_then(|it| it.code),
            refusal.map(|it| cut(&it.said)),
        ])?;
    }
    let mut put = tables.prepare_cached(PUT_RATE)?;
    for rate in rates {
        let RateInForce {
            at,
            limit,
            destination,
            rate,
        } = rate;
        let rate = rate.unwrap_or(f64::INFINITY);
        put.execute(params![seconds(*at), limit, destination, rate])?;
    }
    let more = (slices.len() + rates.len()) as i64;
    tables.execute("UPDATE history_size SET rows = rows + ?1", [more])?;
    Ok(())
}

fn read(view: &Connection, span: &Span) -> Result<Page, RecordError> {
    let step = i64::from(span.step_s.clamp(SLICE_S, STEP_S_MAX));
    let (since, until) = (seconds(span.since), seconds_after(span.until));
    let mut page = Page::default();
    let mut now = i64::MIN;
    let mut adding: BTreeMap<(String, String), Slice> = BTreeMap::new();
    let mut select = view.prepare_cached(SLICES)?;
    let mut rows = select.query(params![since, until, span.destination])?;
    while let Some(row) = rows.next()? {
        let at_s: i64 = row.get(0)?;
        let begins = at_s.div_euclid(step).saturating_mul(step);
        if begins != now {
            page.slices
                .extend(std::mem::take(&mut adding).into_values());
            now = begins;
            if page.slices.len() >= span.rows_max {
                page.next = Some(wall(begins));
                break;
            }
        }
        let slice = slice(row, begins)?;
        let key = (
            slice.destination.clone(),
            slice.account.clone().unwrap_or_default(),
        );
        match adding.get_mut(&key) {
            Some(together) => join(together, slice),
            None => {
                adding.insert(key, slice);
            }
        }
    }
    page.slices.extend(adding.into_values());
    let until = page.next.map_or(until, seconds);
    // What was in force when it began, then what changed.
    page.rates = rates(view, span, (since - BEFORE_S, since), i64::MAX)?;
    page.rates.retain(|rate| rate.rate.is_some());
    let mut within = rates(view, span, (since, until), step)?;
    if let Some(over) = within.get(RATES_MAX) {
        // It goes on where the step begins that is too much, but never where it
        // began: a step cannot be divided.
        let begins = |at: i64| at.div_euclid(step).saturating_mul(step);
        let cut = begins(seconds(over.at)).max(begins(since).saturating_add(step));
        let cut = wall(cut);
        within.truncate(RATES_MAX);
        within.retain(|rate| rate.at < cut);
        page.slices.retain(|slice| slice.at < cut);
        page.next = Some(cut);
    }
    page.rates.append(&mut within);
    Ok(page)
}

/// The last rates of each step in a time, and one more than are wanted if there
/// are more.
fn rates(
    view: &Connection,
    span: &Span,
    (from, to): (i64, i64),
    step: i64,
) -> Result<Vec<RateInForce>, RecordError> {
    let mut select = view.prepare_cached(RATES)?;
    let asked = params![from, to, span.destination, step, RATES_MAX as i64 + 1];
    let rates = select.query_map(asked, |row| {
        Ok(RateInForce {
            at: wall(row.get(0)?),
            limit: row.get(1)?,
            destination: row.get(2)?,
            rate: Some(row.get(3)?).filter(|rate: &f64| rate.is_finite()),
        })
    })?;
    Ok(rates.collect::<Result<_, _>>()?)
}

/// Takes a later slice of the same thing into an earlier one.
fn join(into: &mut Slice, later: Slice) {
    into.attempts.add(&later.attempts);
    into.peak = into.peak.max(later.peak);
    into.refusal = into.refusal.take().or(later.refusal);
}

fn slice(row: &Row<'_>, begins_s: i64) -> rusqlite::Result<Slice> {
    let count =
        |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.cast_unsigned());
    let account: String = row.get(2)?;
    let refused_at: Option<i64> = row.get(8)?;
    let refusal = match refused_at {
        Some(at) => Some(Refusal {
            at: words::wall(at),
            class: row.get::<_, Option<String>>(9)?.unwrap_or_default(),
            code: row.get(10)?,
            said: row.get::<_, Option<String>>(11)?.unwrap_or_default(),
        }),
        None => None,
    };
    Ok(Slice {
        at: wall(begins_s),
        destination: row.get(1)?,
        account: (!account.is_empty()).then_some(account),
        attempts: Attempts {
            attempts: count(3)?,
            accepted: count(4)?,
            refused: count(5)?,
            deferred: count(6)?,
            bounced: count(7)?,
        },
        peak: count(3)?,
        refusal,
    })
}

/// Deletes what is older than `cutoff`, and the oldest of what is too much, at
/// most about `max` rows. Whether there may be more.
pub fn forget(
    change: &Transaction<'_>,
    cutoff: Wall,
    rows_max: u64,
    max: usize,
) -> rusqlite::Result<bool> {
    let known: i64 = change.query_row("SELECT rows FROM history_size", [], |row| row.get(0))?;
    let over = known.saturating_sub(i64::try_from(rows_max).unwrap_or(i64::MAX));
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    // The time of the last of so many of the oldest.
    let reach = |table: &str, before: i64, count: i64| {
        let sql = format!(
            "SELECT max(at_s) FROM \
             (SELECT at_s FROM {table} WHERE at_s < ?1 ORDER BY at_s LIMIT ?2)"
        );
        change.query_row(&sql, [before, count], |row| row.get::<_, Option<i64>>(0))
    };
    let surplus = reach("history", i64::MAX, over.clamp(0, max))?;
    let (mut deleted, mut more) = (0, false);
    for table in ["history", "history_rates"] {
        let old = reach(table, seconds(cutoff), max)?;
        let Some(until) = old.max(surplus) else {
            continue;
        };
        let gone = change.execute(&format!("DELETE FROM {table} WHERE at_s <= ?1"), [until])?;
        deleted += gone as i64;
        more |= gone as i64 >= max;
    }
    if deleted > 0 {
        let sql = "UPDATE history_size SET rows = max(0, rows - ?1)";
        change.execute(sql, [deleted])?;
    }
    Ok(more)
}

fn seconds(at: Wall) -> i64 {
    at.0.div_euclid(NANOS_PER_SECOND.cast_signed())
}

/// So that a part of a second is not left out.
fn seconds_after(at: Wall) -> i64 {
    seconds(Wall(
        at.0.saturating_add(NANOS_PER_SECOND.cast_signed() - 1),
    ))
}

fn wall(seconds: i64) -> Wall {
    Wall(seconds.saturating_mul(NANOS_PER_SECOND.cast_signed()))
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX))
        .unwrap_or_default()
}
