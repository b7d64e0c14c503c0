//! `/incidents`: what went wrong at destinations, and what was done about it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use outflow_config::policy::text;
use outflow_core::runbook::{AtAccount, Evidence, Heard, Incident, Line, State as IncidentState};
use outflow_ports::registry::Kind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ask::on_disk;
use crate::auth::{May, Operate};
use crate::extract::Asked;
use crate::fields::IncidentStates;
use crate::problem::{Code, Problem};
use crate::runbook::{self, incident_of};
use crate::stamp::Stamp;
use crate::state::ApiState;

const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// Which incidents to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct IncidentQuery {
    /// In one of these states, separated by commas: `open`, `mitigating`,
    /// `recovering`, `closed`. In any unless told.
    #[param(value_type = Option<IncidentStates>)]
    state: Option<String>,
    /// At most so many; 100 unless told, at most 1,000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// What a rule had to say.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Evidence)]
pub struct EvidenceView {
    /// Which rule.
    rule: String,
    /// What was counted: `429`, `bounced`.
    counted: String,
    /// So many of them ...
    part: u64,
    /// ... among so many, when it was at its worst.
    whole: u64,
    /// Over how long: `15m`.
    window: String,
    /// Since when it speaks.
    since: Stamp,
    /// When it last spoke.
    last: Stamp,
}

/// What was counted of one account when it began.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IncidentAccount)]
pub struct AtAccountView {
    account: String,
    /// So many of what the first rule counts ...
    part: u64,
    /// ... among so many.
    whole: u64,
}

/// An answer of the far end when it began.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IncidentReply)]
pub struct HeardView {
    /// As it was said.
    text: String,
    /// How often, among at most 200 messages that were looked at.
    count: u64,
}

/// Something that was done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IncidentLine)]
pub struct LineView {
    /// When.
    at: Stamp,
    /// The state before.
    from: &'static str,
    /// The state after.
    to: &'static str,
    /// The share of its rates that the destination had, in thousandths.
    rate_permille_from: u16,
    /// The share that it has from then on.
    rate_permille_to: u16,
    /// Why.
    why: String,
}

/// An incident.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Incident)]
pub struct IncidentView {
    id: String,
    /// Where: `isp:google`.
    destination: String,
    /// `open`, `mitigating`, `recovering` or `closed`.
    state: &'static str,
    /// All of it in one sentence.
    summary: String,
    opened_at: Stamp,
    /// Null if it is not over.
    closed_at: Option<Stamp>,
    /// The share of its rates that the destination has, in thousandths.
    rate_permille: u16,
    /// Whether its rates are cut.
    slowed: bool,
    /// What was lately sent there when it began: what is cut where no policy has
    /// a rate. Null if that was nothing.
    measured: Option<String>,
    /// Whether classes that can wait are paused.
    paused: bool,
    /// Whether a share of critical messages goes another way.
    detoured: bool,
    /// No step up before this.
    cooldown_until: Option<Stamp>,
    /// Since when all rules are quiet; null if they are not.
    calm_since: Option<Stamp>,
    /// When the next step up comes, if all stays well.
    next_step_at: Option<Stamp>,
    /// Since when canaries are awaited; null if they are not.
    canary_since: Option<Stamp>,
    /// What the rules had to say.
    evidence: Vec<EvidenceView>,
    /// Through which accounts it happened when it began, the worst first.
    accounts: Vec<AtAccountView>,
    /// What the far end said when it began, the most frequent first.
    replies: Vec<HeardView>,
    /// What was done, the oldest first.
    lines: Vec<LineView>,
}

/// Incidents, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct IncidentList {
    incidents: Vec<IncidentView>,
}

impl From<Evidence> for EvidenceView {
    fn from(evidence: Evidence) -> Self {
        Self {
            rule: evidence.rule,
            counted: evidence.counted,
            part: evidence.part,
            whole: evidence.whole,
            window: evidence.window,
            since: Stamp(evidence.since),
            last: Stamp(evidence.last),
        }
    }
}

impl From<AtAccount> for AtAccountView {
    fn from(at: AtAccount) -> Self {
        let AtAccount {
            account,
            part,
            whole,
        } = at;
        Self {
            account,
            part,
            whole,
        }
    }
}

impl From<Heard> for HeardView {
    fn from(Heard { text, count }: Heard) -> Self {
        Self { text, count }
    }
}

impl From<Line> for LineView {
    fn from(line: Line) -> Self {
        Self {
            at: Stamp(line.at),
            from: line.from.as_str(),
            to: line.to.as_str(),
            rate_permille_from: line.rate_from,
            rate_permille_to: line.rate_to,
            why: line.why,
        }
    }
}

impl From<Incident> for IncidentView {
    fn from(incident: Incident) -> Self {
        let summary = incident.sentence();
        Self {
            id: incident.id.to_string(),
            destination: incident.destination,
            state: incident.state.as_str(),
            summary,
            opened_at: Stamp(incident.opened_at),
            closed_at: incident.closed_at.map(Stamp),
            rate_permille: incident.rate_permille,
            slowed: incident.measures.slowed,
            measured: incident.measured.map(text::rate),
            paused: incident.measures.paused,
            detoured: incident.measures.detoured,
            cooldown_until: incident.cooldown_until.map(Stamp),
            calm_since: incident.calm_since.map(Stamp),
            next_step_at: incident.next_step_at.map(Stamp),
            canary_since: incident.canary_at.map(Stamp),
            evidence: incident
                .evidence
                .into_iter()
                .map(EvidenceView::from)
                .collect(),
            accounts: incident
                .accounts
                .into_iter()
                .map(AtAccountView::from)
                .collect(),
            replies: incident.replies.into_iter().map(HeardView::from).collect(),
            lines: incident.lines.into_iter().map(LineView::from).collect(),
        }
    }
}

async fn incidents(state: &ApiState) -> Result<Vec<Incident>, Problem> {
    let registry = Arc::clone(&state.registry);
    let documents = on_disk(move || registry.list(Kind::Incident)).await??;
    let mut incidents: Vec<Incident> = documents.iter().filter_map(incident_of).collect();
    incidents.sort_by_key(|incident| std::cmp::Reverse(incident.id));
    Ok(incidents)
}

/// List incidents, newest first.
#[utoipa::path(
    get,
    path = "/incidents",
    tag = "incidents",
    params(IncidentQuery),
    responses((status = 200, description = "incidents", body = IncidentList)),
)]
pub async fn list(
    _may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<IncidentQuery>>,
) -> Result<Json<IncidentList>, Problem> {
    let bad = |detail: String| Problem::new(Code::InvalidQuery, detail);
    let max = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&max) {
        return Err(bad(format!("limit must be between 1 and {PAGE_MAX}")));
    }
    let all = [
        IncidentState::Open,
        IncidentState::Mitigating,
        IncidentState::Recovering,
        IncidentState::Closed,
    ];
    let words = query.state.unwrap_or_default();
    let words: Vec<&str> = words.split(',').filter(|word| !word.is_empty()).collect();
    if let Some(word) = words
        .iter()
        .find(|word| !all.iter().any(|it| it.as_str() == **word))
    {
        return Err(bad(format!(
            "state: {word:?} is none of open, mitigating, recovering, closed"
        )));
    }
    let mut found = incidents(&state).await?;
    found.retain(|it| words.is_empty() || words.contains(&it.state.as_str()));
    found.truncate(max);
    Ok(Json(IncidentList {
        incidents: found.into_iter().map(IncidentView::from).collect(),
    }))
}

/// Show an incident.
#[utoipa::path(
    get,
    path = "/incidents/{id}",
    tag = "incidents",
    params(("id" = String, Path, description = "the number of the incident")),
    responses((status = 200, description = "the incident", body = IncidentView)),
)]
pub async fn get(
    _may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<IncidentView>, Problem> {
    let mut found = incidents(&state).await?.into_iter();
    let found = found.find(|incident| incident.id.to_string() == id);
    let found = found.ok_or_else(|| Problem::not_found("incident"))?;
    Ok(Json(found.into()))
}

/// Close an incident: all that is in force because of it goes, at once. Another
/// is opened there only after all was quiet once.
#[utoipa::path(
    post,
    path = "/incidents/{id}/close",
    tag = "incidents",
    params(("id" = String, Path, description = "the number of the incident")),
    responses((status = 200, description = "it is closed", body = IncidentView)),
)]
pub async fn close(
    may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<IncidentView>, Problem> {
    let none = || Problem::not_found("incident that is not over");
    let number: u64 = id.parse().map_err(|_| none())?;
    let closed = runbook::close(&state, &may.actor, number).await?;
    Ok(Json(closed.ok_or_else(none)?.into()))
}
