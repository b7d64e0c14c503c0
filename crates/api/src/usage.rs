//! `GET /tenants/{id}/usage`: what a tenant occupies of what all share.
//!
//! Nobody is given a fixed part, but for flows and the memory of requests: what a
//! tenant may have besides depends on what is free (see [`outflow_core::fair`]).

use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::{Path, State};
use outflow_connections::places::Places;
use outflow_core::name::Name;
use outflow_ports::suppression::SuppressionFilter;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ask::{ask, on_disk};
use crate::auth::{May, Submit};
use crate::bounded;
use crate::extract::Asked;
use crate::pauses;
use crate::problem::Problem;
use crate::state::ApiState;

/// How much of something a tenant has.
#[derive(Debug, Serialize, ToSchema)]
pub struct Occupied {
    /// So much it has.
    used: u64,
    /// So much more it may have now.
    left: u64,
    /// So much it may have in all, as things are.
    limit: u64,
}

impl From<(u64, u64)> for Occupied {
    fn from((used, left): (u64, u64)) -> Self {
        let limit = used.saturating_add(left);
        Self { used, left, limit }
    }
}

/// What a tenant occupies.
#[derive(Debug, Serialize, ToSchema)]
pub struct Usage {
    tenant: String,
    /// Connections over HTTP on which a token of the tenant was shown.
    connections: Occupied,
    /// The same over SMTP, if that is listened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    smtp_connections: Option<Occupied>,
    /// The same over the Redis protocol, if that is listened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    throttle_connections: Option<Occupied>,
    /// Bytes of requests that are being worked on, and of long answers.
    bytes_in_flight: Occupied,
    /// Flows that live.
    flows: Occupied,
    /// Permits of the throttle that are held.
    permits: Occupied,
    /// Requests that wait at the throttle.
    waiters: Occupied,
    /// Keys of the throttle that are not idle.
    throttle_keys: Occupied,
    /// Entries of the suppression list.
    suppressions: Occupied,
    /// Pauses that speak of the tenant.
    pauses: Occupied,
    /// Open streams of events.
    listeners: Occupied,
}

/// Show what a tenant occupies of what all tenants share.
#[utoipa::path(
    get,
    path = "/tenants/{id}/usage",
    tag = "tenants",
    params(("id" = String, Path, description = "the tenant")),
    responses((status = 200, description = "what it occupies", body = Usage)),
)]
pub async fn get(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<Usage>, Problem> {
    let tenant = Name::from(id.as_str());
    if bounded::name(&id).is_err() || !may.sees(&tenant) {
        return Err(Problem::not_found("tenant"));
    }
    let pauses = pauses::documents(&state).await?;
    let list = Arc::clone(&state.suppressions);
    let filter = SuppressionFilter {
        tenant: Some(id.clone()),
        ..SuppressionFilter::default()
    };
    let suppressions = on_disk(move || {
        let used = list.count(&filter)?;
        let tenant = filter.tenant.unwrap_or_default();
        Ok::<_, Problem>((used, list.room_for(&tenant)?))
    });
    let of_tenant = tenant.clone();
    let flows = ask(|then| state.query.flows_of(of_tenant, then)).await?;
    let throttle = state.throttle.usage_of(&id);
    let beside = |listener: &OnceLock<Arc<Places>>| {
        let places = listener.get()?;
        Some(places.of_party(&id).into())
    };
    Ok(Json(Usage {
        connections: state.doors.connections_of(&id).into(),
        smtp_connections: beside(&state.listeners.smtp),
        throttle_connections: beside(&state.listeners.throttle),
        bytes_in_flight: state.body_memory.of_party(&id).into(),
        flows: flows.into(),
        permits: throttle.permits.into(),
        waiters: throttle.waiters.into(),
        throttle_keys: throttle.keys.into(),
        suppressions: suppressions.await??.into(),
        pauses: pauses::occupied(&pauses, &id).into(),
        listeners: state.events.seats_of(&tenant).into(),
        tenant: id,
    }))
}
