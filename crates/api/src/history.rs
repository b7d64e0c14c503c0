//! `GET /history`: what was sent where, by ten seconds or longer steps, and
//! the rates in force; what a post-mortem is drawn from.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::history::{self, RateInForce, SLICE_S, STEP_S_MAX, Slice, Span};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ask::on_disk;
use crate::auth::{May, Operate};
use crate::extract::Asked;
use crate::messages::list::matched;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

const ROWS: usize = 10_000;
const ROWS_MAX: usize = 50_000;
/// What is shown unless told.
const LATELY: Nanos = Nanos::from_secs(3_600);
const DESTINATION_BYTES_MAX: usize = 300;

/// What to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// Not older than this, in RFC 3339; an hour before `until` unless told.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Older than this, in RFC 3339; now unless told.
    #[param(format = DateTime)]
    until: Option<String>,
    /// Of this destination only: `isp:google`.
    #[param(max_length = 300)]
    destination: Option<String>,
    /// So many seconds are added up: a multiple of 10; 10 unless told.
    #[param(minimum = 10, maximum = 86400, multiple_of = 10)]
    step: Option<u32>,
    /// No further step once there are so many rows; 10,000 unless told, at most
    /// 50,000.
    #[param(minimum = 1, maximum = 50000)]
    limit: Option<usize>,
}

/// A refusal, as an example.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HistoryRefusal)]
pub struct RefusalView {
    at: Stamp,
    /// `rate` or `reputation`.
    class: String,
    /// The SMTP or HTTP status, where there was one.
    code: Option<u16>,
    /// What the far end said, without addresses; empty if it is not known.
    said: String,
}

/// What happened at a destination in one step.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HistorySlice)]
pub struct SliceView {
    /// When the step begins.
    at: Stamp,
    /// As `isp:google`; `other` beyond the bound on destinations.
    destination: String,
    /// Null for all accounts together; single ones are there only where they
    /// were refused, with nothing but that count.
    account: Option<String>,
    attempts: u64,
    accepted: u64,
    /// Refused for now because of our rate or our standing.
    refused: u64,
    /// Refused for now for other reasons, or nobody knows.
    deferred: u64,
    /// Refused for good.
    bounced: u64,
    /// The most attempts in ten seconds.
    peak: u64,
    /// The first refusal.
    refusal: Option<RefusalView>,
}

/// A rate that is in force from a time on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HistoryRate)]
pub struct RateView {
    at: Stamp,
    /// Of which limit.
    limit: String,
    /// Which destination it is about.
    destination: String,
    /// Messages per second; 0 if it stands still, null if the limit is gone.
    rate: Option<f64>,
}

/// A part of the history.
#[derive(Debug, Serialize, ToSchema)]
pub struct HistoryPage {
    /// The length of a step in seconds.
    step: u32,
    /// By time. Steps in which nothing was tried are not there.
    slices: Vec<SliceView>,
    /// By time, of each limit the last of each step: a rate holds until the next
    /// of the same limit. The last of a quarter of an hour before come with it.
    rates: Vec<RateView>,
    /// Ask again with this as `since`; null at the end.
    next_since: Option<Stamp>,
}

impl From<Slice> for SliceView {
    fn from(slice: Slice) -> Self {
        let counts = slice.attempts;
        Self {
            at: Stamp(slice.at),
            destination: slice.destination,
            account: slice.account,
            attempts: counts.attempts,
            accepted: counts.accepted,
            refused: counts.refused,
            deferred: counts.deferred,
            bounced: counts.bounced,
            peak: slice.peak,
            refusal: slice.refusal.map(|refusal| RefusalView {
                at: Stamp(refusal.at),
                class: refusal.class,
                code: refusal.code,
                said: refusal.said,
            }),
        }
    }
}

impl From<RateInForce> for RateView {
    fn from(rate: RateInForce) -> Self {
        Self {
            at: Stamp(rate.at),
            limit: rate.limit,
            destination: rate.destination,
            rate: rate.rate,
        }
    }
}

impl HistoryQuery {
    fn span(&self, now: Wall) -> Result<Span, Problem> {
        let bad = |detail: String| Problem::new(Code::InvalidQuery, detail);
        let time = |name: &str, text: &Option<String>| match text.as_deref() {
            Some(text) => Stamp::parse(text)
                .map(|stamp| Some(stamp.0))
                .map_err(|wrong| bad(format!("{name}: {wrong}"))),
            None => Ok(None),
        };
        let until = time("until", &self.until)?.unwrap_or(now);
        let lately = Wall(until.0.saturating_sub_unsigned(LATELY.0));
        let since = time("since", &self.since)?.unwrap_or(lately);
        if since > until {
            return Err(bad("since is after until".to_owned()));
        }
        let step_s = self.step.unwrap_or(SLICE_S);
        if !(SLICE_S..=STEP_S_MAX).contains(&step_s) || !step_s.is_multiple_of(SLICE_S) {
            let detail = format!("step must be a multiple of {SLICE_S}, at most {STEP_S_MAX}");
            return Err(bad(detail));
        }
        let rows_max = self.limit.unwrap_or(ROWS);
        if !(1..=ROWS_MAX).contains(&rows_max) {
            return Err(bad(format!("limit must be between 1 and {ROWS_MAX}")));
        }
        let destination = self.destination.as_deref().map(canonical);
        let destination = destination.transpose().map_err(bad)?;
        Ok(Span {
            since: history::beginning(since, step_s),
            until,
            destination,
            step_s,
            rows_max,
        })
    }
}

/// The name of a destination: `isp:ATT` is `isp:att`, `isp:gmail` is
/// `isp:google`. `other` is what is beyond the bound on destinations.
fn canonical(text: &str) -> Result<String, String> {
    if text.len() > DESTINATION_BYTES_MAX {
        return Err("destination is too long".to_owned());
    }
    if text == "other" {
        return Ok(text.to_owned());
    }
    let matches = matched([("destination", text)].into_iter())?;
    let mut terms = matches.terms().iter();
    let found = terms.find(|(scope, _)| ScopeSet::DESTINATIONS.has(*scope));
    let (kind, name) = found.ok_or("destination is written as isp:google")?;
    Ok(format!("{kind}:{}", name.as_str()))
}

/// Show what was sent where.
#[utoipa::path(
    get,
    path = "/history",
    tag = "audit",
    params(HistoryQuery),
    responses((status = 200, description = "what was sent where", body = HistoryPage)),
)]
pub async fn list(
    _may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<HistoryQuery>>,
) -> Result<Json<HistoryPage>, Problem> {
    let span = query.span(state.clock.now())?;
    let step = span.step_s;
    let history = Arc::clone(&state.history);
    let page = on_disk(move || history.read(&span)).await??;
    Ok(Json(HistoryPage {
        step,
        slices: page.slices.into_iter().map(SliceView::from).collect(),
        rates: page.rates.into_iter().map(RateView::from).collect(),
        next_since: page.next.map(Stamp),
    }))
}
