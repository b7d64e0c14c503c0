//! Which receipts are meant: in memory, and in SQL.
//!
//! A filter becomes one scan, or one per state if it asks for failures only:
//! those are few and have an index of their own. Each scan yields receipts
//! newest first without sorting, so a page costs what it looks at.

use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_ports::receipts::{Receipt, ReceiptFilter};
use rusqlite::types::Value;

use super::words;

/// Whether a receipt is meant.
pub fn matches(filter: &ReceiptFilter, receipt: &Receipt) -> bool {
    let key = &receipt.key;
    let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|one| one == has);
    let settled_ms = words::millis(receipt.settled_at);
    (filter.states.is_empty() || filter.states.contains(&receipt.state))
        && is(&filter.tenant, key.tenant.as_str())
        && is(&filter.class, key.class.as_str())
        && is(&filter.pool, key.pool.as_str())
        && (filter.campaign.is_none()
            || filter.campaign.as_deref() == key.campaign.as_ref().map(Name::as_str))
        && (filter.destination.is_none() || is(&filter.destination, &key.destination.to_string()))
        && filter
            .settled_since
            .is_none_or(|since| settled_ms >= words::millis(since))
        && filter
            .settled_before
            .is_none_or(|before| settled_ms < words::millis(before))
}

/// A condition of SQL and what it compares with.
#[derive(Clone, Debug)]
pub struct Condition {
    /// `tenant = ? AND state = ?`; true if all are meant.
    pub sql: String,
    /// In the order of the marks.
    pub values: Vec<Value>,
}

impl Condition {
    /// All receipts.
    fn all() -> Self {
        Self {
            sql: "true".to_owned(),
            values: Vec::new(),
        }
    }

    /// Those of them for which this holds as well.
    pub fn and(mut self, sql: &str, value: impl Into<Value>) -> Self {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.push(value.into());
        self
    }

    /// What a filter means.
    pub fn of(filter: &ReceiptFilter) -> Self {
        let mut condition = Self::without_states(filter);
        if !filter.states.is_empty() {
            let marks = vec!["?"; filter.states.len()].join(", ");
            condition.sql.push_str(&format!(" AND state IN ({marks})"));
            let words = filter.states.iter().map(|state| state.as_str().to_owned());
            condition.values.extend(words.map(Value::from));
        }
        condition
    }

    fn without_states(filter: &ReceiptFilter) -> Self {
        let texts = [
            ("tenant = ?", &filter.tenant),
            ("campaign = ?", &filter.campaign),
            ("class = ?", &filter.class),
            ("destination = ?", &filter.destination),
            ("pool = ?", &filter.pool),
        ];
        let mut condition = Self::all();
        for (sql, text) in texts {
            if let Some(text) = text {
                condition = condition.and(sql, text.clone());
            }
        }
        if let Some(since) = filter.settled_since {
            condition = condition.and("settled_at_ms >= ?", words::millis(since));
        }
        if let Some(before) = filter.settled_before {
            condition = condition.and("settled_at_ms < ?", words::millis(before));
        }
        condition
    }
}

/// One way through the table.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table, and by what it is read.
    pub from: &'static str,
    /// Which of its rows are meant.
    pub condition: Condition,
}

/// The scans that together yield what a filter means, each receipt once.
pub fn scans(filter: &ReceiptFilter) -> Vec<Scan> {
    let mut states: Vec<State> = filter.states.clone();
    states.sort_unstable();
    states.dedup();
    if !states.is_empty() && !states.contains(&State::Delivered) {
        let scan = |state: State| Scan {
            from: "receipts INDEXED BY receipts_not_delivered",
            condition: Condition::without_states(filter).and(
                "state <> 'delivered' AND state = ?",
                state.as_str().to_owned(),
            ),
        };
        return states
            .into_iter()
            .filter(|state| state.is_final())
            .map(scan)
            .collect();
    }
    let from = match filter.tenant {
        Some(_) => "receipts INDEXED BY receipts_by_tenant",
        None => "receipts NOT INDEXED",
    };
    let condition = Condition::of(filter);
    vec![Scan { from, condition }]
}
