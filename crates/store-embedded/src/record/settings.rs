//! How a record behaves: how long it collects, what it keeps, and for how long.

use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::runbook::CANARY;
use outflow_core::time::Nanos;

const DAY: Nanos = Nanos::from_secs(86_400);

/// Of which messages a receipt is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptReceipts {
    /// Of all.
    #[default]
    All,
    /// Of all that were not delivered.
    Failures,
    /// Of none.
    None,
}

impl KeptReceipts {
    /// Whether a receipt of a message of this tenant that ended like this is
    /// kept. Those of canaries always are: a step up waits for them.
    pub fn keeps(self, tenant: &Name, state: State) -> bool {
        let is_wanted = match self {
            Self::All => true,
            Self::Failures => state != State::Delivered,
            Self::None => false,
        };
        is_wanted || tenant.as_str() == CANARY
    }
}

/// How a record behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSettings {
    /// How long receipts are collected before they are written, at most.
    pub batch_time: Nanos,
    /// How many rows one transaction has, at most.
    pub batch_rows: usize,
    /// Of which messages a receipt is kept.
    pub receipts: KeptReceipts,
    /// How long a receipt is kept after its message was done with.
    pub receipts_for: Nanos,
    /// How long the receipt of a dead letter is kept.
    pub dead_letters_for: Nanos,
    /// How long history is kept.
    pub history_for: Nanos,
    /// About how many rows of it at most; the oldest go first.
    pub history_rows_max: u64,
    /// How long the audit is kept.
    pub audit_for: Nanos,
    /// About how many lines of it at most; the oldest go first.
    pub audit_rows_max: u64,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            // The journal has them until then. A transaction writes whole
            // pages and the log of the file system, however little is in it.
            batch_time: Nanos::from_secs(5),
            batch_rows: 10_000,
            receipts: KeptReceipts::All,
            receipts_for: DAY.times(30),
            dead_letters_for: DAY.times(14),
            history_for: DAY.times(14),
            history_rows_max: 2_000_000,
            audit_for: DAY.times(365),
            audit_rows_max: 1_000_000,
        }
    }
}
