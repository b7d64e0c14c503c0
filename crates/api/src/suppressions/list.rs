//! `GET /suppressions`: who is not sent to, in the order of tenants and
//! addresses.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outflow_ports::suppression::SuppressionKey;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::{SuppressionQuery, SuppressionView};
use crate::ask::on_disk;
use crate::auth::{May, Submit};
use crate::extract::Asked;
use crate::problem::{Code, Problem};
use crate::state::ApiState;

const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;
/// Separates the parts of a cursor; no part has it.
const BETWEEN: char = '\u{1f}';
/// No cursor of ours is longer.
const CURSOR_BYTES_MAX: usize = 1_024;

/// A page of the list.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuppressionPage {
    suppressions: Vec<SuppressionView>,
    /// Ask again with this; null at the end.
    next_cursor: Option<String>,
}

/// List suppressed recipients.
#[utoipa::path(
    get,
    path = "/suppressions",
    tag = "suppressions",
    params(SuppressionQuery),
    responses((status = 200, description = "a page of the list", body = SuppressionPage)),
)]
pub async fn list(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<SuppressionQuery>>,
) -> Result<Json<SuppressionPage>, Problem> {
    let bad = |detail: String| Problem::new(Code::InvalidQuery, detail);
    let filter = query.filter(&may)?;
    let max = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&max) {
        return Err(bad(format!("limit must be between 1 and {PAGE_MAX}")));
    }
    let after = query.cursor.as_deref().map(read_cursor);
    let after = match after {
        Some(None) => return Err(bad("cursor is not one of ours".to_owned())),
        after => after.flatten(),
    };
    let suppressions = Arc::clone(&state.suppressions);
    let entries = on_disk(move || suppressions.list(&filter, after.as_ref(), max)).await??;
    let last = entries.last().filter(|_| entries.len() >= max);
    Ok(Json(SuppressionPage {
        next_cursor: last.map(|entry| cursor(&entry.key())),
        suppressions: entries.into_iter().map(SuppressionView::from).collect(),
    }))
}

fn cursor(key: &SuppressionKey) -> String {
    let SuppressionKey {
        tenant,
        recipient,
        reason,
    } = key;
    URL_SAFE_NO_PAD.encode(format!("{tenant}{BETWEEN}{recipient}{BETWEEN}{reason}"))
}

fn read_cursor(text: &str) -> Option<SuppressionKey> {
    if text.len() > CURSOR_BYTES_MAX {
        return None;
    }
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let mut parts = text.split(BETWEEN);
    let (tenant, recipient, reason) = (parts.next()?, parts.next()?, parts.next()?);
    Some(SuppressionKey {
        tenant: tenant.to_owned(),
        recipient: recipient.to_owned(),
        reason: reason.parse().ok()?,
    })
}
