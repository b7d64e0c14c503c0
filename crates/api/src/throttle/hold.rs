//! `POST /throttle/release` and `POST /throttle/pause`.

use axum::Json;
use axum::extract::State;
use outflow_core::name::Name;
use outflow_core::throttle::request::NO_PERMIT;
use outflow_core::time::Nanos;
use outflow_ports::throttle::ReleasedBy;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::form::check_key;
use crate::auth::{May, Operate, OperateOwn, Permission, Submit};
use crate::extract::Body;
use crate::fields::ThrottleKey;
use crate::pauses;
use crate::problem::Problem;
use crate::state::ApiState;

/// The longest pause: a day.
const PAUSE_MS_MAX: u64 = 86_400_000;

/// A permit to be given back.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Release)]
#[serde(deny_unknown_fields)]
pub struct ReleaseForm {
    /// As it was given.
    #[schema(pattern = "^(0|[0-9a-f]{1,8}-[0-9a-f]{1,8})$")]
    permit: String,
}

/// What became of a permit.
#[derive(Debug, Serialize, ToSchema)]
pub struct Released {
    /// Whether anything was held by it still.
    released: bool,
}

/// A key that is to grant nothing for a while.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ThrottlePause)]
#[serde(deny_unknown_fields)]
pub struct PauseForm {
    /// Which.
    #[schema(value_type = ThrottleKey)]
    key: String,
    /// For how long, in milliseconds: what a provider said in `Retry-After`.
    #[schema(minimum = 1, maximum = 86_400_000)]
    retry_after_ms: u64,
}

/// A pause is in force.
#[derive(Debug, Serialize, ToSchema)]
pub struct ThrottlePaused {
    /// Always true.
    paused: bool,
    /// The id under which `/pauses` lists it and lifts it; null for a key of
    /// one's own.
    pause: Option<String>,
}

/// Give slots back.
///
/// One's own; an operator that is not bound to a tenant may give back anybody's.
#[utoipa::path(
    post,
    path = "/throttle/release",
    tag = "throttle",
    request_body = ReleaseForm,
    responses((status = 200, description = "nothing is held by it now", body = Released)),
)]
pub async fn release(
    caller: May<Submit>,
    State(state): State<ApiState>,
    Body(form): Body<ReleaseForm>,
) -> Result<Json<Released>, Problem> {
    if form.permit == NO_PERMIT {
        return Ok(Json(Released { released: false }));
    }
    let permit = form.permit.parse();
    let permit = permit.map_err(|error: outflow_core::throttle::request::NotAPermit| {
        Problem::field("/permit", error.to_string())
    })?;
    let by = match Operate::allows(&caller) {
        true => ReleasedBy::Operator,
        false => ReleasedBy::Holder(caller.tenant.as_ref().map(Name::as_str)),
    };
    let released = state.throttle.release(by, permit);
    Ok(Json(Released { released }))
}

/// Grant nothing of a key for a while: its provider asked for it. A key that
/// policies limit is everybody's: that needs the scope `operator`, holds the mail
/// that the limit governs too, and is listed among the pauses.
#[utoipa::path(
    post,
    path = "/throttle/pause",
    tag = "throttle",
    request_body = PauseForm,
    responses((status = 200, description = "it is paused", body = ThrottlePaused)),
)]
pub async fn pause(
    caller: May<Submit>,
    State(state): State<ApiState>,
    Body(form): Body<PauseForm>,
) -> Result<Json<ThrottlePaused>, Problem> {
    check_key(&form.key).map_err(|detail| Problem::field("/key", detail))?;
    if form.retry_after_ms == 0 || form.retry_after_ms > PAUSE_MS_MAX {
        let detail = format!("pause for 1 to {PAUSE_MS_MAX} ms");
        return Err(Problem::field("/retry_after_ms", detail));
    }
    let tenant = caller.tenant.as_ref().map(Name::as_str);
    let lasts = Nanos::from_millis(form.retry_after_ms);
    let pause = match state.throttle.of_policies(tenant, &form.key) {
        Some(limit) if OperateOwn::allows(&caller) => {
            pauses::may_add(&state, &caller).await?;
            let until = state.clock.now() + lasts;
            let view = pauses::pause_limit(&state, &caller.actor, &limit, until).await?;
            Some(view.id().to_owned())
        }
        // What a policy owns is refused there.
        _ => {
            state.throttle.pause(tenant, &form.key, lasts)?;
            None
        }
    };
    Ok(Json(ThrottlePaused {
        paused: true,
        pause,
    }))
}
