//! Accounts that the server itself stops and lets go again, for the audit.
//!
//! The node tells of them on its own thread, which must not wait for a disk: they
//! are kept until the next turn of the chores.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use outflow_core::destination::Destination;
use outflow_core::engine::action::Alert;
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Who did it.
const ACTOR: &str = "rule:breaker";

/// More than this are not kept: the oldest go.
const KEPT_MAX: usize = 1_024;

/// What is still to be written.
#[derive(Debug, Default)]
pub struct Standstills(Mutex<VecDeque<Alert>>);

impl Standstills {
    /// Keeps an alert that is about one.
    pub fn note(&self, alert: &Alert) {
        if !matches!(alert, Alert::Broken { .. } | Alert::Restored { .. }) {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(alert.clone());
    }

    fn take(&self) -> VecDeque<Alert> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The line of the audit about one: what was done, to which account, and the
/// rest.
pub fn line(alert: &Alert) -> Option<(&'static str, String, Value)> {
    let place = |it: &Option<Destination>| it.as_ref().map(ToString::to_string);
    let (action, account, detail) = match alert {
        Alert::Broken {
            account,
            destination,
            until,
            why,
        } => {
            let detail = json!({
                "destination": place(destination),
                "until": Stamp(*until),
                "why": why.as_str(),
            });
            ("account.broken", account, detail)
        }
        Alert::Restored {
            account,
            destination,
        } => {
            let detail = json!({ "destination": place(destination) });
            ("account.restored", account, detail)
        }
        _ => return None,
    };
    Some((action, account.as_str().to_owned(), detail))
}

/// Writes all that was told of since the last time into the audit.
pub async fn write(state: &ApiState) -> Result<(), Problem> {
    for alert in state.events.standstills.take() {
        if let Some((action, target, detail)) = line(&alert) {
            state.audit(ACTOR, action, target, detail).await?;
        }
    }
    Ok(())
}
