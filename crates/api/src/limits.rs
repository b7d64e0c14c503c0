//! `/limits`: live tokens, waiters and the next grant of each limit.

use axum::Json;
use axum::extract::{Path, State};
use outflow_config::written::Written;
use outflow_core::engine::command::Tune;
use outflow_core::limit::spec::Rate;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_ports::query::{LearntView as Learnt, LimitView as Limit};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::ask::ask;
use crate::auth::{May, Operate};
use crate::bounded;
use crate::extract::{Asked, Body};
use crate::fields::ReasonText;
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
    /// Of a rate that is learnt: which share that is of what it may become.
    factor: f64,
    /// What was learnt; null for a rate that is not.
    learnt: Option<LearntView>,
    /// Flows that wait at it.
    waiters: ByClass,
    /// When it admits again; null if it does now, or nobody knows.
    next_grant: Option<Stamp>,
}

/// What was learnt of a rate.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Learnt)]
pub struct LearntView {
    /// `prove`, `trial`, `cruise`, `pause`, `block` or `window`.
    mode: &'static str,
    /// No increase before this time; null if one may come at once.
    cooldown_until: Option<Stamp>,
    /// All of it in one sentence.
    sentence: String,
}

impl From<Learnt> for LearntView {
    fn from(learnt: Learnt) -> Self {
        Self {
            mode: learnt.mode.as_str(),
            cooldown_until: learnt.cooldown_until.map(Stamp),
            sentence: learnt.sentence,
        }
    }
}

/// What to do with a rate that is learnt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TuneForm {
    /// Holds the rate at this (`"5/s"`, or a number for so many a second); null
    /// lets it go its own way again.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    rate: Option<Option<Written>>,
    /// Until when it is held; for good if nothing is said.
    until: Option<Stamp>,
    /// Forgets all that was learnt: it starts anew.
    #[serde(default)]
    reset: bool,
    /// Why, for those who wonder.
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

/// Tells what is null from what is not said.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Written>>, D::Error> {
    Option::<Written>::deserialize(from).map(Some)
}

impl TuneForm {
    fn tune(&self) -> Result<Tune, Problem> {
        if let Some(reason) = &self.reason
            && let Err(error) = bounded::line(reason, bounded::REASON_BYTES_MAX)
        {
            return Err(Problem::field("/reason", error.to_string()));
        }
        match (&self.rate, self.reset) {
            (None, true) => Ok(Tune::Reset),
            (Some(None), false) => Ok(Tune::Unpin),
            (Some(Some(rate)), false) => {
                let rate = Rate::parse(&rate.text())
                    .map_err(|error| Problem::field("/rate", error.to_string()))?;
                let until = self.until.map(|until| until.0);
                Ok(Tune::Pin { rate, until })
            }
            (None, false) => {
                let detail = "write a rate to hold it, null to let it go, or reset";
                Err(Problem::field("/rate", detail))
            }
            (Some(_), true) => {
                let detail = "what is forgotten cannot be held at a rate as well";
                Err(Problem::field("/reset", detail))
            }
        }
    }
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
            factor: limit.learnt.as_ref().map_or(1.0, |it| it.factor),
            learnt: limit.learnt.map(LearntView::from),
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

/// Take a rate that is learnt in hand: hold it, let it go, or forget what was
/// learnt. Limits that policies set are changed at their policies.
#[utoipa::path(
    patch,
    path = "/limits/{*key}",
    tag = "limits",
    params(("key" = String, Path, description = "the key, which ends in %23learnt")),
    request_body = TuneForm,
    responses((status = 200, description = "the limit as it was before", body = LimitView)),
)]
pub async fn tune(
    may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(key)): Asked<Path<String>>,
    Body(form): Body<TuneForm>,
) -> Result<Json<LimitView>, Problem> {
    let none = || Problem::not_found("limit");
    let key: LimitKey = key.parse().map_err(|_| none())?;
    if *key.facet() != Facet::Learnt {
        let detail = "only rates that are learnt (#learnt) are held here: change the policy";
        return Err(Problem::field("/rate", detail));
    }
    let tune = form.tune()?;
    let limits = ask(|then| state.query.limits(then)).await?;
    let found = limits.into_iter().find(|limit| *limit.key == key);
    let before = found.ok_or_else(none)?;
    let action = match tune {
        Tune::Pin { .. } => "limit.pin",
        Tune::Unpin => "limit.unpin",
        Tune::Reset => "limit.reset",
    };
    let to = match tune {
        Tune::Pin { rate, .. } => Some(rate.in_a_second()),
        Tune::Unpin | Tune::Reset => None,
    };
    let detail = json!({
        "from": before.rate,
        "to": to,
        "until": form.until,
        "reason": form.reason,
    });
    state
        .audit(&may.actor, action, key.to_string(), detail)
        .await?;
    state.control.tune(key, tune);
    Ok(Json(before.into()))
}
