//! What became of messages: from memory if it waits there, else from SQLite.
//!
//! Memory is looked at first: what moves to SQLite in between is then found
//! twice, never missed. What waits in memory is newer than what SQLite has of
//! the same message.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::message::{Seq, State};
use outflow_ports::receipts::{
    CauseCount, Happening, Receipt, ReceiptFilter, Receipts, ReceiptsError,
};
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::Record;
use super::error::RecordError;
use super::filter::{Condition, Scan, matches, scans};
use super::waiting::Waiting;
use super::{row, timeline};

/// The most receipts in one answer.
const LIST_MAX: usize = 10_000;

/// The most groups of dead letters in one answer.
const CAUSES_MAX: usize = 1_000;

/// What stands for a cause or a class that nobody gave.
const UNKNOWN: &str = "unknown";

impl From<RecordError> for ReceiptsError {
    fn from(error: RecordError) -> Self {
        Self(error.to_string())
    }
}

impl Receipts for Record {
    fn get(&self, seq: Seq) -> Result<Option<Receipt>, ReceiptsError> {
        let waiting = self.waiting();
        let later = waiting.feedback(seq);
        let receipt = match waiting.receipt(seq) {
            Some(receipt) => Some(Receipt::clone(&receipt)),
            None => self.readers().ask(|connection| find(connection, seq))?,
        };
        Ok(receipt.map(|receipt| with_feedback(receipt, later)))
    }

    fn list(
        &self,
        filter: &ReceiptFilter,
        before: Option<Seq>,
        max: usize,
    ) -> Result<Vec<Receipt>, ReceiptsError> {
        let max = max.min(LIST_MAX);
        let waiting = self.waiting();
        let meant = |receipt: &Receipt| matches(filter, receipt);
        let mut found: Vec<Receipt> = waiting
            .matching(before, max, meant)
            .iter()
            .map(|receipt| Receipt::clone(receipt))
            .collect();
        self.readers().ask(|connection| {
            for scan in scans(filter) {
                found.extend(page(connection, scan, before, max, waiting)?);
            }
            Ok(())
        })?;
        found.sort_by_key(|receipt| std::cmp::Reverse(receipt.seq));
        found.dedup_by_key(|receipt| receipt.seq);
        found.truncate(max);
        let complete = |receipt: Receipt| {
            let later = waiting.feedback(receipt.seq);
            with_feedback(receipt, later)
        };
        Ok(found.into_iter().map(complete).collect())
    }

    fn events(&self, seq: Seq) -> Result<Vec<Happening>, ReceiptsError> {
        let receipt = Receipts::get(self, seq)?;
        Ok(receipt.map(|receipt| receipt.events).unwrap_or_default())
    }

    fn count(&self, filter: &ReceiptFilter) -> Result<u64, ReceiptsError> {
        let waiting = self.waiting().matching(None, usize::MAX, |_| true);
        let in_memory = waiting
            .iter()
            .filter(|receipt| matches(filter, receipt))
            .count() as u64;
        let on_disk = self.readers().ask(|connection| {
            let mut count = 0;
            for scan in scans(filter) {
                let sql = format!(
                    "SELECT count(*) FROM {} WHERE {}",
                    scan.from, scan.condition.sql
                );
                count +=
                    connection.query_row(&sql, params_from_iter(scan.condition.values), |row| {
                        row.get::<_, i64>(0)
                    })?;
            }
            each_superseded(connection, filter, &waiting, |_| count -= 1)?;
            Ok(count.cast_unsigned())
        })?;
        Ok(on_disk + in_memory)
    }

    fn causes(&self, filter: &ReceiptFilter) -> Result<Vec<CauseCount>, ReceiptsError> {
        if !filter.states.is_empty() && !filter.states.contains(&State::Dead) {
            return Ok(Vec::new());
        }
        let states = vec![State::Dead];
        let filter = ReceiptFilter {
            states,
            ..filter.clone()
        };
        let waiting = self.waiting().matching(None, usize::MAX, |_| true);
        let mut groups = self.readers().ask(|connection| {
            let mut groups = groups(connection, &filter)?;
            each_superseded(connection, &filter, &waiting, |old| {
                groups
                    .entry(Group::of(&old))
                    .and_modify(|count| *count -= 1);
            })?;
            Ok(groups)
        })?;
        for receipt in waiting.iter().filter(|receipt| matches(&filter, receipt)) {
            *groups.entry(Group::of(receipt)).or_default() += 1;
        }
        let mut causes: Vec<CauseCount> = groups
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(group, count)| group.counted(count))
            .collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        causes.truncate(CAUSES_MAX);
        Ok(causes)
    }
}

fn with_feedback(mut receipt: Receipt, later: Vec<Happening>) -> Receipt {
    for happening in later {
        timeline::add(&mut receipt.events, happening);
    }
    receipt
}

fn find(connection: &Connection, seq: Seq) -> Result<Option<Receipt>, RecordError> {
    let sql = format!("SELECT {} FROM receipts WHERE seq = ?1", row::COLUMNS);
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([seq.0.cast_signed()])?;
    rows.next()?.map(row::read).transpose()
}

/// The newest of a scan, without those of which memory knows better.
fn page(
    connection: &Connection,
    scan: Scan,
    before: Option<Seq>,
    max: usize,
    waiting: &Waiting,
) -> Result<Vec<Receipt>, RecordError> {
    let condition = match before {
        Some(before) => scan.condition.and("seq < ?", before.0.cast_signed()),
        None => scan.condition,
    };
    let (columns, from, wanted) = (row::COLUMNS, scan.from, condition.sql);
    let sql = format!("SELECT {columns} FROM {from} WHERE {wanted} ORDER BY seq DESC");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(params_from_iter(condition.values))?;
    let mut found = Vec::new();
    while found.len() < max {
        let Some(row) = rows.next()? else { break };
        let receipt = row::read(row)?;
        if waiting.receipt(receipt.seq).is_none() {
            found.push(receipt);
        }
    }
    Ok(found)
}

/// Rows on the disk that match, though memory has something newer of the same
/// message.
fn each_superseded(
    connection: &Connection,
    filter: &ReceiptFilter,
    waiting: &[Arc<Receipt>],
    mut superseded: impl FnMut(Receipt),
) -> Result<(), RecordError> {
    let condition = Condition::of(filter);
    let (columns, wanted) = (row::COLUMNS, &condition.sql);
    let sql = format!("SELECT {columns} FROM receipts NOT INDEXED WHERE {wanted} AND seq = ?");
    let mut select = connection.prepare(&sql)?;
    for receipt in waiting {
        let seq = receipt.seq.0.cast_signed();
        let values = condition.values.iter().cloned().chain([seq.into()]);
        let old = select
            .query_row(params_from_iter(values), |row| Ok(row::read(row)))
            .optional()?
            .transpose()?;
        old.into_iter().for_each(&mut superseded);
    }
    Ok(())
}

/// What dead letters are grouped by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    cause: String,
    error_class: String,
    code: Option<u16>,
    destination: String,
}

impl Group {
    fn of(receipt: &Receipt) -> Self {
        let (cause, error) = (receipt.cause, receipt.error.as_ref());
        Self {
            cause: cause.map_or(UNKNOWN, |cause| cause.as_str()).to_owned(),
            error_class: error
                .map_or(UNKNOWN, |error| error.class.as_str())
                .to_owned(),
            code: error.and_then(|error| error.code),
            destination: receipt.key.destination.to_string(),
        }
    }

    fn counted(self, count: u64) -> CauseCount {
        CauseCount {
            cause: self.cause,
            error_class: self.error_class,
            code: self.code,
            destination: self.destination,
            count,
        }
    }
}

fn groups(
    connection: &Connection,
    filter: &ReceiptFilter,
) -> Result<BTreeMap<Group, u64>, RecordError> {
    let mut groups = BTreeMap::new();
    for scan in scans(filter) {
        let sql = format!(
            "SELECT coalesce(cause, '{UNKNOWN}'), coalesce(error_class, '{UNKNOWN}'), error_code, \
             destination, count(*) FROM {} WHERE {} GROUP BY 1, 2, 3, 4",
            scan.from, scan.condition.sql
        );
        let mut select = connection.prepare(&sql)?;
        let mut rows = select.query(params_from_iter(scan.condition.values))?;
        while let Some(row) = rows.next()? {
            let group = Group {
                cause: row.get(0)?,
                error_class: row.get(1)?,
                code: row.get(2)?,
                destination: row.get(3)?,
            };
            groups.insert(group, row.get::<_, i64>(4)?.cast_unsigned());
        }
    }
    Ok(groups)
}
