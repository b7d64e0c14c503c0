//! A receipt as a row of its table.

use std::sync::Arc;

use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::retry::dead_letter::LastError;
use outflow_ports::receipts::Receipt;
use rusqlite::{Connection, Row, Statement, params};

use super::error::RecordError;
use super::{timeline, words};

/// The columns, in the order in which they are written and read.
pub const COLUMNS: &str = "seq, state, cause, accepted_at_ms, settled_at_ms, attempts, account, \
     tenant, campaign, class, channel, pool, destination, sender_domain, \
     error_class, error_code, error_enhanced, error_rule, error_text, envelope, timeline";

const VALUES: &str = "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

/// Writes receipts, each over an earlier one of the same message, if there is
/// one: a dead letter that was discarded or replayed is done with twice.
pub fn write(connection: &Connection, receipts: &[Arc<Receipt>]) -> Result<(), RecordError> {
    let insert = |or| format!("INSERT OR {or} INTO receipts ({COLUMNS}) VALUES {VALUES}");
    // Nearly all are new, and a statement that can neither replace nor fail
    // half-way spares SQLite a journal of its own.
    let mut add = connection.prepare_cached(&insert("IGNORE"))?;
    let mut replace = connection.prepare_cached(&insert("REPLACE"))?;
    for receipt in receipts {
        if put(&mut add, receipt)? == 0 {
            put(&mut replace, receipt)?;
        }
    }
    Ok(())
}

fn put(statement: &mut Statement<'_>, receipt: &Receipt) -> Result<usize, RecordError> {
    let (key, error) = (&receipt.key, receipt.error.as_ref());
    let rows = statement.execute(params![
        receipt.seq.0.cast_signed(),
        receipt.state.as_str(),
        receipt.cause.map(|cause| cause.as_str()),
        words::millis(receipt.accepted_at),
        words::millis(receipt.settled_at),
        receipt.attempts,
        receipt.account,
        key.tenant.as_str(),
        key.campaign.as_ref().map(Name::as_str),
        key.class.as_str(),
        key.channel.as_str(),
        key.pool.as_str(),
        key.destination.to_string(),
        key.sender_domain.as_ref().map(Name::as_str),
        error.map(|error| error.class.as_str()),
        error.and_then(|error| error.code),
        error
            .and_then(|error| error.enhanced)
            .map(words::enhanced_text),
        error.map(|error| error.rule.as_str()),
        error.map(|error| words::cut(&error.text)),
        receipt.envelope,
        timeline::encode(&receipt.events),
    ])?;
    Ok(rows)
}

/// Reads a receipt from a row with [`COLUMNS`].
pub fn read(row: &Row<'_>) -> Result<Receipt, RecordError> {
    let text = |column| -> Result<&str, RecordError> { str_at(row, column) };
    Ok(Receipt {
        seq: Seq(row.get::<_, i64>(0)?.cast_unsigned()),
        state: words::state(text(1)?)?,
        cause: opt_str_at(row, 2)?.map(words::cause).transpose()?,
        accepted_at: words::wall(row.get(3)?),
        settled_at: words::wall(row.get(4)?),
        attempts: row.get(5)?,
        account: row.get(6)?,
        key: FlowKey {
            tenant: Name::from(text(7)?),
            campaign: opt_str_at(row, 8)?.map(Name::from),
            class: words::class(text(9)?)?,
            channel: words::channel(text(10)?)?,
            pool: Name::from(text(11)?),
            destination: words::destination(text(12)?)?,
            sender_domain: opt_str_at(row, 13)?.map(Name::from),
        },
        error: read_error(row)?,
        envelope: row.get(19)?,
        events: timeline::decode(text(20)?)?,
    })
}

fn read_error(row: &Row<'_>) -> Result<Option<LastError>, RecordError> {
    let Some(class) = opt_str_at(row, 14)? else {
        return Ok(None);
    };
    Ok(Some(LastError {
        class: words::reply_class(class)?,
        code: row.get(15)?,
        enhanced: opt_str_at(row, 16)?.map(words::enhanced).transpose()?,
        rule: Name::from(opt_str_at(row, 17)?.unwrap_or_default()),
        text: row.get::<_, Option<String>>(18)?.unwrap_or_default(),
    }))
}

fn str_at<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, RecordError> {
    let value = row.get_ref(column)?;
    Ok(value.as_str().map_err(rusqlite::Error::from)?)
}

fn opt_str_at<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, RecordError> {
    let value = row.get_ref(column)?;
    Ok(value.as_str_or_null().map_err(rusqlite::Error::from)?)
}
