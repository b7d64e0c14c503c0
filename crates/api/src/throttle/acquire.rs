//! `POST /throttle/acquire`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outflow_core::name::Name;
use outflow_core::throttle::request::NO_PERMIT;
use outflow_core::throttle::{Ticket, Why};
use outflow_core::time::Nanos;
use outflow_ports::throttle::{Acquire, Acquired, Reply, ThrottleError, Throttling};
use serde::Serialize;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::form::{AcquireForm, ReadAcquire};
use super::headers;
use crate::auth::{May, Submit};
use crate::extract::Body;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

/// A request must be answered before its time is over, so it waits a bit less.
const ANSWER_WITHIN: Nanos = Nanos::from_secs(1);

/// All limits were taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct Granted {
    /// Always true.
    granted: bool,
    /// To be given back; `0` if nothing is held.
    permit: String,
    /// When what is held comes back by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Stamp>,
}

/// None of the limits was taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct Refused {
    /// Always false.
    granted: bool,
    /// The key of the limit that refused.
    refused_by: String,
    /// When it is worth coming back, in milliseconds.
    retry_after_ms: u64,
    /// Why: `limited`, or `too_many_waiters`.
    reason: &'static str,
}

impl From<ThrottleError> for Problem {
    fn from(error: ThrottleError) -> Self {
        let detail = error.to_string();
        match error {
            ThrottleError::UnknownLimit { .. } => Self::new(Code::UnknownLimit, detail),
            ThrottleError::NotYours { .. } | ThrottleError::OfPolicies { .. } => {
                Self::forbidden(detail)
            }
            ThrottleError::OwnKeys { .. } | ThrottleError::OwnPermits { .. } => {
                Self::later(Code::QuotaExhausted, 1, detail)
            }
            ThrottleError::Crowded => Self::later(Code::Busy, 1, detail),
            ThrottleError::Closing => Self::later(Code::Closing, 5, detail),
            ThrottleError::BadKey
            | ThrottleError::Count
            | ThrottleError::NoCost
            | ThrottleError::BadLimit(_) => Self::field("/limits", detail),
        }
    }
}

/// Cancels a request whose caller is gone.
struct Waits {
    throttle: Arc<dyn Throttling>,
    ticket: Option<Ticket>,
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.throttle.cancel(ticket);
        }
    }
}

/// Take some limits together, or wait for them, or hear when to come back.
#[utoipa::path(
    post,
    path = "/throttle/acquire",
    tag = "throttle",
    request_body = AcquireForm,
    responses(
        (status = 200, description = "all limits were taken", body = Granted),
        (status = 429, description = "none was: see Retry-After", body = Refused),
    ),
)]
pub async fn acquire(
    caller: May<Submit>,
    State(state): State<ApiState>,
    Body(form): Body<AcquireForm>,
) -> Result<Response, Problem> {
    let read = form.read()?;
    if !caller.may_class(read.class) {
        let detail = format!("this token does not cover class {}", read.class);
        return Err(Problem::forbidden(detail));
    }
    let tenant = caller.tenant.as_ref().map(Name::as_str);
    let acquired = ask(&state, &read, tenant).await?;
    let asked: Vec<_> = read.limits.iter().map(|it| it.asked()).collect();
    let looks = state.throttle.look(&request(&state, &read, tenant, &asked));
    let looks: Vec<_> = looks
        .into_iter()
        .filter_map(|(i, look)| Some((asked.get(i)?.key, look)))
        .collect();
    let mut response = match acquired {
        Acquired::Granted(permit) => {
            let now = state.clock.now();
            let granted = Granted {
                granted: true,
                expires_at: permit.map(|_| Stamp(now + read.ttl)),
                permit: permit.map_or(NO_PERMIT.to_owned(), |it| it.to_string()),
            };
            Json(granted).into_response()
        }
        Acquired::Refused {
            by,
            why,
            retry_after,
        } => {
            let key = asked.get(by).map_or("", |it| it.key);
            refused(tenant, key, why, retry_after)?
        }
    };
    headers::tell(response.headers_mut(), &looks);
    Ok(response)
}

fn request<'a>(
    state: &ApiState,
    read: &ReadAcquire,
    tenant: Option<&'a str>,
    limits: &'a [outflow_ports::throttle::Asked<'a>],
) -> Acquire<'a> {
    let longest = u64::try_from(state.bounds.request_timeout.as_nanos()).unwrap_or(u64::MAX);
    Acquire {
        tenant,
        limits,
        class: read.class,
        wait: read.wait.min(Nanos(longest).minus(ANSWER_WITHIN)),
        ttl: read.ttl,
    }
}

async fn ask(
    state: &ApiState,
    read: &ReadAcquire,
    tenant: Option<&str>,
) -> Result<Acquired, Problem> {
    let mut answer = None;
    let reply = {
        let asked: Vec<_> = read.limits.iter().map(|it| it.asked()).collect();
        let request = request(state, read, tenant, &asked);
        state.throttle.acquire(&request, &mut || {
            let (sender, receiver) = oneshot::channel();
            answer = Some(receiver);
            // Whoever is gone does not hear it.
            Box::new(move |said| drop(sender.send(said)))
        })
    };
    let (ticket, answer) = match (reply, answer) {
        (Reply::Now(said), _) => return Ok(said?),
        (Reply::Later(ticket), Some(answer)) => (ticket, answer),
        (Reply::Later(_), None) => return Err(ThrottleError::Closing.into()),
    };
    let mut waits = Waits {
        throttle: Arc::clone(&state.throttle),
        ticket: Some(ticket),
    };
    let said = answer.await;
    waits.ticket = None;
    Ok(said.unwrap_or(Err(ThrottleError::Closing))?)
}

fn refused(
    tenant: Option<&str>,
    key: &str,
    why: Why,
    retry_after: Option<Nanos>,
) -> Result<Response, Problem> {
    let reason = match why {
        Why::TooLarge { largest } => {
            let detail = format!("{key} grants at most {largest} at once, however long you wait");
            return Err(Problem::new(Code::CostTooLarge, detail));
        }
        Why::TooManyKeys => return Err(ThrottleError::Crowded.into()),
        Why::TooManyOwnKeys => {
            let tenant = tenant.unwrap_or("those without a tenant").to_owned();
            return Err(ThrottleError::OwnKeys { tenant }.into());
        }
        Why::TooManyOwnPermits => {
            let tenant = tenant.unwrap_or("those without a tenant").to_owned();
            return Err(ThrottleError::OwnPermits { tenant }.into());
        }
        Why::TooManyWaiters | Why::TooManyOwnWaiters => "too_many_waiters",
        Why::Limited => "limited",
    };
    let retry_after = retry_after.unwrap_or(Nanos::from_secs(1));
    let refused = Refused {
        granted: false,
        refused_by: key.to_owned(),
        retry_after_ms: retry_after.0.div_ceil(1_000_000),
        reason,
    };
    let mut response = (StatusCode::TOO_MANY_REQUESTS, Json(refused)).into_response();
    headers::tell_retry(response.headers_mut(), retry_after);
    Ok(response)
}
