//! `/healthz`, `/readyz`, `/metrics`: for machines that watch.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ask::ask;
use crate::auth::{May, Scrape};
use crate::problem::Problem;
use crate::state::ApiState;

/// A node that does not answer in this time does not do its work.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Whether the process lives.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    status: &'static str,
}

/// Whether the server can do its work.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ready {
    ready: bool,
    /// Why not.
    reasons: Vec<String>,
    /// What is amiss besides: the server does its work, but some messages wait
    /// for it.
    notes: Vec<String>,
}

/// Whether the process lives.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    responses((status = 200, description = "it does", body = Health)),
)]
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the server can do its work.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = 200, description = "it can", body = Ready),
        (status = 503, description = "it cannot, and why", body = Ready),
    ),
)]
pub async fn readyz(State(state): State<ApiState>) -> Response {
    let mut reasons = state.readiness.reasons();
    let answer = tokio::time::timeout(ANSWER_MAX, ask(|then| state.query.depth(then))).await;
    if !matches!(answer, Ok(Ok(_))) {
        reasons.push("the node does not answer".to_owned());
    }
    let notes = state.readiness.notes();
    let ready = reasons.is_empty();
    let status = match ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let answer = Ready {
        ready,
        reasons,
        notes,
    };
    (status, Json(answer)).into_response()
}

/// Metrics in the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, description = "all metrics", content_type = "text/plain", body = String)),
)]
pub async fn metrics(
    _may: May<Scrape>,
    State(state): State<ApiState>,
) -> Result<Response, Problem> {
    let format = "text/plain; version=0.0.4; charset=utf-8";
    let text = ask(|then| state.metrics.render(then)).await?;
    Ok(([(header::CONTENT_TYPE, format)], text).into_response())
}
