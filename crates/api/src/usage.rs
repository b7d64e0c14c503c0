//! `GET /tenants/{id}/usage`: what a tenant occupies of what all share.
//!
//! Nobody is given a fixed part: what a tenant may have besides depends on what
//! is free (see [`outflow_core::fair`]).

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use outflow_core::name::Name;
use outflow_ports::suppression::SuppressionFilter;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ask::on_disk;
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
}

impl From<(u64, u64)> for Occupied {
    fn from((used, left): (u64, u64)) -> Self {
        Self { used, left }
    }
}

/// What a tenant occupies.
#[derive(Debug, Serialize, ToSchema)]
pub struct Usage {
    tenant: String,
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
    let of_tenant = SuppressionFilter {
        tenant: Some(id.clone()),
        ..SuppressionFilter::default()
    };
    let suppressions = on_disk(move || {
        let used = list.count(&of_tenant)?;
        let tenant = of_tenant.tenant.unwrap_or_default();
        Ok::<_, Problem>((used, list.room_for(&tenant)?))
    });
    Ok(Json(Usage {
        throttle_keys: state.throttle.keys_of(&id).into(),
        suppressions: suppressions.await??.into(),
        pauses: pauses::occupied(&pauses, &id).into(),
        listeners: state.events.seats_of(&tenant).into(),
        tenant: id,
    }))
}
