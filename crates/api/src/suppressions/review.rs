//! Many entries at once: undone by time and destination, or decided upon after
//! they were held.
//!
//! The line of audit is written first, with what is meant and how many that
//! are; then entries are changed some thousands at a time. Whoever is cut off
//! in the middle can ask again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use outflow_core::suppression::Reason;
use outflow_ports::suppression::{
    PAGE_MAX, SuppressionChange, SuppressionError, SuppressionFilter, Suppressions,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::edit::SuppressionsChanged;
use super::view::{SuppressionReason, wrong_choice};
use crate::ask::on_disk;
use crate::auth::{Caller, May, OperateOwn};
use crate::extract::Body;
use crate::fields::{DestinationText, NameText};
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// What to undo.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UndoSuppressions)]
#[serde(deny_unknown_fields)]
pub struct UndoForm {
    /// Entries that are not older than this.
    since: Option<Stamp>,
    /// Entries that are older than this.
    until: Option<Stamp>,
    /// Entries that this destination taught.
    #[schema(value_type = Option<DestinationText>)]
    destination: Option<String>,
    /// Entries of this tenant.
    #[schema(value_type = Option<NameText>)]
    tenant: Option<String>,
    /// Entries for this reason; `hard_bounce` unless told.
    #[schema(inline)]
    reason: Option<SuppressionReason>,
    /// Only count them.
    #[serde(default)]
    dry_run: bool,
}

/// What becomes of held entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SuppressionDecision)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// They are in force.
    Approve,
    /// They are taken away.
    Discard,
}

/// A decision about held entries.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ReviewSuppressions)]
#[serde(deny_unknown_fields)]
pub struct ReviewForm {
    /// What becomes of them.
    decision: Decision,
    /// Entries that this destination taught; all of them unless told.
    #[schema(value_type = Option<DestinationText>)]
    destination: Option<String>,
    /// Entries of this tenant.
    #[schema(value_type = Option<NameText>)]
    tenant: Option<String>,
    /// Entries that are not older than this.
    since: Option<Stamp>,
    /// Entries that are older than this.
    until: Option<Stamp>,
    /// Only count them.
    #[serde(default)]
    dry_run: bool,
}

/// Undo what was learnt in a time or from a destination: entries that the server
/// put on the list by itself are taken away.
#[utoipa::path(
    post,
    path = "/suppressions/undo",
    tag = "suppressions",
    request_body = UndoForm,
    responses((status = 200, description = "they are off the list", body = SuppressionsChanged)),
)]
pub async fn undo(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Body(form): Body<UndoForm>,
) -> Result<Json<SuppressionsChanged>, Problem> {
    if form.since.is_none() && form.destination.is_none() {
        let detail = "name a time, or a destination: all of the list is never undone at once";
        return Err(Problem::field("/since", detail));
    }
    check(form.tenant.as_deref(), form.destination.as_deref())?;
    let filter = SuppressionFilter {
        tenant: may.tenant_or(form.tenant)?,
        reason: Some(form.reason.map_or(Reason::HardBounce, Reason::from)),
        destination: form.destination,
        since: form.since.map(|Stamp(since)| since),
        until: form.until.map(|Stamp(until)| until),
        is_learnt: true,
        ..SuppressionFilter::default()
    };
    let what = Bulk {
        action: "suppressions.undo",
        filter,
        change: SuppressionChange::Remove,
        dry_run: form.dry_run,
    };
    what.carry_out(&state, &may).await.map(Json)
}

/// Decide about entries that were held: they are in force, or taken away.
#[utoipa::path(
    post,
    path = "/suppressions/review",
    tag = "suppressions",
    request_body = ReviewForm,
    responses((status = 200, description = "it is decided", body = SuppressionsChanged)),
)]
pub async fn review(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Body(form): Body<ReviewForm>,
) -> Result<Json<SuppressionsChanged>, Problem> {
    check(form.tenant.as_deref(), form.destination.as_deref())?;
    let filter = SuppressionFilter {
        tenant: may.tenant_or(form.tenant)?,
        is_held: Some(true),
        destination: form.destination,
        since: form.since.map(|Stamp(since)| since),
        until: form.until.map(|Stamp(until)| until),
        ..SuppressionFilter::default()
    };
    let (action, change) = match form.decision {
        Decision::Approve => ("suppressions.approve", SuppressionChange::Approve),
        Decision::Discard => ("suppressions.discard", SuppressionChange::Remove),
    };
    let what = Bulk {
        action,
        filter,
        change,
        dry_run: form.dry_run,
    };
    what.carry_out(&state, &may).await.map(Json)
}

fn check(tenant: Option<&str>, destination: Option<&str>) -> Result<(), Problem> {
    match wrong_choice(tenant, destination) {
        Some((field, wrong)) => Err(Problem::field(&format!("/{field}"), wrong)),
        None => Ok(()),
    }
}

/// A change to all entries that match.
struct Bulk {
    action: &'static str,
    filter: SuppressionFilter,
    change: SuppressionChange,
    dry_run: bool,
}

impl Bulk {
    async fn carry_out(
        self,
        state: &ApiState,
        caller: &Caller,
    ) -> Result<SuppressionsChanged, Problem> {
        let Self {
            action,
            filter,
            change,
            dry_run,
        } = self;
        let (list, counted) = (Arc::clone(&state.suppressions), filter.clone());
        let count = on_disk(move || list.count(&counted)).await??;
        if dry_run || count == 0 {
            return Ok(SuppressionsChanged { changed: count });
        }
        let detail = meant(&filter, count);
        let target = filter.tenant.clone().unwrap_or_else(|| "*".to_owned());
        state.audit(&caller.actor, action, target, detail).await?;
        let list = Arc::clone(&state.suppressions);
        let changed = on_disk(move || change_all(&*list, &filter, change)).await??;
        Ok(SuppressionsChanged { changed })
    }
}

fn change_all(
    list: &dyn Suppressions,
    filter: &SuppressionFilter,
    change: SuppressionChange,
) -> Result<u64, SuppressionError> {
    let mut changed = 0;
    loop {
        let part = list.change(filter, change)?.len();
        changed += part as u64;
        if part < PAGE_MAX {
            return Ok(changed);
        }
    }
}

/// What the audit says of a filter.
fn meant(filter: &SuppressionFilter, count: u64) -> Value {
    json!({
        "count": count,
        "destination": filter.destination,
        "reason": filter.reason.map(Reason::as_str),
        "since": filter.since.map(Stamp),
        "until": filter.until.map(Stamp),
    })
}
