//! `/lanes`: pool x destination, as they are now; each can be paused.

use axum::Json;
use axum::extract::{Path, State};
use outflow_core::class::Class;
use outflow_core::policy::matcher::Match;
use outflow_ports::query::LaneView as Lane;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ask::ask;
use crate::auth::{May, Operate};
use crate::bounded;
use crate::extract::{Asked, Perhaps};
use crate::fields::{LaneText, ReasonText};
use crate::messages::view::WaitingOn;
use crate::pauses::{self, Pause, PauseView};
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Counts by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ByClass {
    critical: u64,
    high: u64,
    normal: u64,
    low: u64,
}

impl From<[u64; Class::COUNT]> for ByClass {
    fn from([critical, high, normal, low]: [u64; Class::COUNT]) -> Self {
        Self {
            critical,
            high,
            normal,
            low,
        }
    }
}

/// A lane.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lane)]
pub struct LaneView {
    /// `POOL/KIND:NAME`.
    lane: String,
    pool: String,
    /// Messages that wait in it.
    waiting: ByClass,
    in_flight: u64,
    sessions: u32,
    /// Deliveries since the node started.
    sent: u64,
    waiting_on: Vec<WaitingOn>,
    paused: bool,
    /// How long the oldest message that is ready has waited, in seconds.
    oldest_age_s: Option<f64>,
    /// Accounts that are left alone here: they failed again and again, or were
    /// refused too often.
    broken: u32,
    /// Accounts of which one message is let through to see whether they are
    /// back.
    half_open: u32,
    /// How many sessions its accounts may hold here, where the far end was found
    /// to welcome fewer than they could.
    sessions_welcome: Option<u32>,
}

/// All lanes.
#[derive(Debug, Serialize, ToSchema)]
pub struct LaneList {
    lanes: Vec<LaneView>,
}

impl From<Lane> for LaneView {
    fn from(lane: Lane) -> Self {
        Self {
            lane: lane.name,
            pool: lane.pool.as_str().to_owned(),
            waiting: lane.waiting.into(),
            in_flight: lane.in_flight,
            sessions: lane.sessions,
            sent: lane.sent,
            waiting_on: lane.waiting_on.iter().map(WaitingOn::of).collect(),
            paused: lane.paused,
            oldest_age_s: lane.oldest_age.map(|age| age.as_secs_f64()),
            broken: lane.broken,
            half_open: lane.half_open,
            sessions_welcome: lane.sessions_welcome,
        }
    }
}

/// Why and for how long a lane is paused.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LanePauseForm {
    /// Why.
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
    /// Until when; for good if nothing is said.
    until: Option<Stamp>,
}

/// What became of the pauses of a lane.
#[derive(Debug, Serialize, ToSchema)]
pub struct Resumed {
    lane: String,
    /// Pauses of exactly this lane that were lifted.
    lifted: usize,
}

/// A lane is two names.
const NAME_BYTES_MAX: usize = 300;

fn about(lane: &str) -> Result<Match, Problem> {
    match bounded::line(lane, NAME_BYTES_MAX) {
        Ok(()) => Match::from_pairs([("lane", lane)]).map_err(|_| Problem::not_found("lane")),
        Err(_) => Err(Problem::not_found("lane")),
    }
}

/// List all lanes that have messages, sessions or a pause.
#[utoipa::path(
    get,
    path = "/lanes",
    tag = "lanes",
    responses((status = 200, description = "all lanes", body = LaneList)),
)]
pub async fn list(
    _may: May<Operate>,
    State(state): State<ApiState>,
) -> Result<Json<LaneList>, Problem> {
    let lanes = ask(|then| state.query.lanes(then)).await?;
    Ok(Json(LaneList {
        lanes: lanes.into_iter().map(LaneView::from).collect(),
    }))
}

/// Pause a lane. Its name has a slash in it: `default%2Fisp:google`.
#[utoipa::path(
    post,
    path = "/lanes/{lane}/pause",
    tag = "lanes",
    params(("lane" = LaneText, Path, description = "the lane, its slash escaped as %2F")),
    request_body(content = Option<LanePauseForm>),
    responses((status = 200, description = "it is paused", body = PauseView)),
)]
pub async fn pause(
    may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(lane)): Asked<Path<String>>,
    Perhaps(form): Perhaps<LanePauseForm>,
) -> Result<Json<PauseView>, Problem> {
    let matches = about(&lane)?;
    let view = pauses::pause(&state, &may.actor, matches, form.reason, form.until).await?;
    Ok(Json(view))
}

/// Lift all pauses of exactly this lane.
#[utoipa::path(
    post,
    path = "/lanes/{lane}/resume",
    tag = "lanes",
    params(("lane" = LaneText, Path, description = "the lane, its slash escaped as %2F")),
    responses((status = 200, description = "its pauses are lifted", body = Resumed)),
)]
pub async fn resume(
    may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(lane)): Asked<Path<String>>,
) -> Result<Json<Resumed>, Problem> {
    let wanted = about(&lane)?;
    let mut lifted = 0;
    for document in pauses::documents(&state).await? {
        if Pause::of(&document).is_some_and(|(_, matches, _)| matches == wanted) {
            pauses::lift(&state, &may.actor, &document, "pause.remove").await?;
            lifted += 1;
        }
    }
    Ok(Json(Resumed { lane, lifted }))
}
