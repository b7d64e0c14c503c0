//! `GET /audit`: who changed what, newest first.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use outflow_core::time::Wall;
use outflow_ports::registry::AuditEntry;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::ask::on_disk;
use crate::auth::{May, Operate};
use crate::bounded::is_cursor;
use crate::extract::Asked;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// Which entries to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Not older than this, in RFC 3339.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Older than this, in RFC 3339.
    #[param(format = DateTime)]
    until: Option<String>,
    /// Where the last page ended.
    cursor: Option<u64>,
    /// At most so many; 100 unless told, at most 1,000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Who changed what.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditView {
    no: u64,
    at: Stamp,
    /// The name and id of the token, `ops (3f6c0d...)`, or the part of the
    /// server that did it.
    actor: String,
    /// What was done: `account.set`.
    action: String,
    /// To what.
    target: String,
    /// What it was and is now, without secrets.
    detail: Value,
}

/// A page of the audit.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditPage {
    entries: Vec<AuditView>,
    /// Ask again with this; null at the end.
    next_cursor: Option<u64>,
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            no: entry.no,
            at: Stamp(entry.at),
            actor: entry.actor,
            action: entry.action,
            target: entry.target,
            detail: serde_json::from_str(&entry.detail).unwrap_or_default(),
        }
    }
}

/// List changes, newest first.
#[utoipa::path(
    get,
    path = "/audit",
    tag = "audit",
    params(AuditQuery),
    responses((status = 200, description = "a page of the audit", body = AuditPage)),
)]
pub async fn list(
    _may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<AuditQuery>>,
) -> Result<Json<AuditPage>, Problem> {
    let bad = |detail: String| Problem::new(Code::InvalidQuery, detail);
    let time = |name: &str, text: Option<&str>| {
        let read = text.map(|text| {
            let at = Stamp::parse(text).map_err(|wrong| bad(format!("{name}: {wrong}")))?;
            Ok::<_, Problem>(at.0)
        });
        read.transpose()
    };
    let since = time("since", query.since.as_deref())?.unwrap_or(Wall(0));
    let until = time("until", query.until.as_deref())?.unwrap_or(Wall::NEVER);
    if !query.cursor.is_none_or(is_cursor) {
        return Err(bad("cursor is not one of ours".to_owned()));
    }
    let max = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&max) {
        return Err(bad(format!("limit must be between 1 and {PAGE_MAX}")));
    }
    let registry = Arc::clone(&state.registry);
    let entries =
        on_disk(move || registry.audit_entries(since..until, query.cursor, max)).await??;
    let last = entries.last().map(|entry| entry.no);
    Ok(Json(AuditPage {
        next_cursor: last.filter(|_| entries.len() >= max),
        entries: entries.into_iter().map(AuditView::from).collect(),
    }))
}
