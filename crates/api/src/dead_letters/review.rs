//! A review of dead letters: what it selects, what was decided, how far it is.

use outflow_core::message::{Seq, State as MessageState};
use outflow_core::name::Name;
use outflow_ports::receipts::{Receipt, ReceiptFilter};
use outflow_ports::registry::Document;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::CauseView;
use crate::auth::Caller;
use crate::messages::list::Selection;
use crate::messages::view::MessageView;
use crate::stamp::Stamp;

/// Messages per second that are replayed, if nobody says.
pub const PACE: f64 = 10.0;

/// What has been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Nothing yet.
    Open,
    /// They re-enter, at a pace.
    Replaying,
    /// They are being discarded.
    Discarding,
    /// All have re-entered.
    Replayed,
    /// All are discarded.
    Discarded,
}

/// A review as it is stored. It says how far it is, so that a new start goes on
/// where the last one was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// Which dead letters.
    pub select: Selection,
    /// Only those that were given up for this: `attempts`, `age`, ...
    pub cause: Option<String>,
    /// Given up at this time or later.
    pub since: Option<Stamp>,
    /// Given up before this time: at most when the review was made, so that
    /// what is shown is what is decided on.
    pub before: Stamp,
    /// Messages per second.
    pub pace: f64,
    /// What was decided.
    pub state: Decision,
    /// How many there were when the review was made.
    pub selected: u64,
    /// Where it goes on: below this number.
    pub below: Option<u64>,
    /// How many were done.
    pub done: u64,
    /// How many were no longer there.
    pub skipped: u64,
    /// Who made it.
    pub by: String,
    /// When.
    pub created_at: Stamp,
}

/// A review.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Review)]
pub struct ReviewView {
    id: String,
    #[serde(rename = "match")]
    select: Selection,
    cause: Option<String>,
    since: Option<Stamp>,
    before: Stamp,
    /// Messages per second at which they re-enter.
    pace: f64,
    state: Decision,
    /// How many there were when the review was made.
    selected: u64,
    /// How many were replayed or discarded.
    done: u64,
    /// How many were no longer there.
    skipped: u64,
    by: String,
    created_at: Stamp,
    /// Some of them; only when the review is made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    samples: Vec<MessageView>,
    /// What they have in common; only when the review is made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    causes: Vec<CauseView>,
}

impl Review {
    /// The review of a document.
    pub fn of(document: &Document) -> Option<Self> {
        serde_json::from_str(document.value.as_deref()?).ok()
    }

    /// Which receipts it is about, but for the cause.
    pub fn filter(&self) -> ReceiptFilter {
        ReceiptFilter {
            settled_since: self.since.map(|Stamp(wall)| wall),
            settled_before: Some(self.before.0),
            ..self.select.receipts(vec![MessageState::Dead])
        }
    }

    /// Whether it is about this dead letter.
    pub fn selects(&self, receipt: &Receipt) -> bool {
        let cause = receipt.cause.map(|cause| cause.as_str());
        self.cause.is_none() || self.cause.as_deref() == cause
    }

    /// Where it goes on.
    pub fn below(&self) -> Option<Seq> {
        self.below.map(Seq)
    }

    /// Whether it exists for this caller.
    pub fn is_for(&self, caller: &Caller) -> bool {
        match &self.select.tenant {
            Some(tenant) => caller.sees(&Name::from(tenant.as_str())),
            None => caller.tenant.is_none(),
        }
    }
}

impl ReviewView {
    /// What is shown of it.
    pub fn of(id: &str, review: Review) -> Self {
        Self {
            id: id.to_owned(),
            select: review.select,
            cause: review.cause,
            since: review.since,
            before: review.before,
            pace: review.pace,
            state: review.state,
            selected: review.selected,
            done: review.done,
            skipped: review.skipped,
            by: review.by,
            created_at: review.created_at,
            samples: Vec::new(),
            causes: Vec::new(),
        }
    }

    /// With a preview.
    #[must_use]
    pub fn with_preview(mut self, samples: Vec<MessageView>, causes: Vec<CauseView>) -> Self {
        self.samples = samples;
        self.causes = causes;
        self
    }
}
