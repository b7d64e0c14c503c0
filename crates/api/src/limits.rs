//! `/limits`: live tokens, waiters and the next grant of each limit.

use axum::Json;
use axum::extract::{Path, State};
use outflow_core::policy::key::LimitKey;
use outflow_ports::query::LimitView as Limit;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ask::ask;
use crate::auth::{May, Operate};
use crate::extract::Asked;
use crate::lanes::ByClass;
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// A limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limit)]
pub struct LimitView {
    /// `isp:google`, `account:ses-1#day`.
    key: String,
    /// Its numbers, as a person writes them.
    limit: String,
    /// What it would admit at once now.
    tokens: u64,
    /// What it holds at most.
    capacity: u64,
    /// Messages per second; null for a cap on what is in flight.
    rate: Option<f64>,
    /// What the rate is multiplied by for now. Rates do not adapt yet: 1.
    factor: f64,
    /// Flows that wait at it.
    waiters: ByClass,
    /// When it admits again; null if it does now, or nobody knows.
    next_grant: Option<Stamp>,
}

/// All limits.
#[derive(Debug, Serialize, ToSchema)]
pub struct LimitList {
    limits: Vec<LimitView>,
}

impl From<Limit> for LimitView {
    fn from(limit: Limit) -> Self {
        Self {
            key: limit.key.to_string(),
            limit: limit.spec,
            tokens: limit.tokens,
            capacity: limit.capacity,
            rate: limit.rate,
            factor: 1.0,
            waiters: limit.waiters.into(),
            next_grant: limit.next_grant.map(Stamp),
        }
    }
}

/// List all limits.
#[utoipa::path(
    get,
    path = "/limits",
    tag = "limits",
    responses((status = 200, description = "all limits", body = LimitList)),
)]
pub async fn list(
    _may: May<Operate>,
    State(state): State<ApiState>,
) -> Result<Json<LimitList>, Problem> {
    let limits = ask(|then| state.query.limits(then)).await?;
    Ok(Json(LimitList {
        limits: limits.into_iter().map(LimitView::from).collect(),
    }))
}

/// Show one limit.
#[utoipa::path(
    get,
    path = "/limits/{*key}",
    tag = "limits",
    params(("key" = String, Path, description = "the key of the limit; # is escaped as %23")),
    responses((status = 200, description = "the limit", body = LimitView)),
)]
pub async fn get(
    _may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(key)): Asked<Path<String>>,
) -> Result<Json<LimitView>, Problem> {
    let none = || Problem::not_found("limit");
    let key: LimitKey = key.parse().map_err(|_| none())?;
    let limits = ask(|then| state.query.limits(then)).await?;
    let found = limits.into_iter().find(|limit| *limit.key == key);
    found.map(|limit| Json(limit.into())).ok_or_else(none)
}
