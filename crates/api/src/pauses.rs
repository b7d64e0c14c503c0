//! `/pauses`: send nothing that matches, until a time or for good.
//!
//! A pause is a document of the registry, numbered; the engine is told by that
//! number. What has run out is taken away by the chores.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outflow_core::engine::command::PauseId;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::scope::Scope;
use outflow_core::time::Wall;
use outflow_ports::registry::{Document, Kind};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::ask::on_disk;
use crate::auth::{Caller, May, OperateOwn};
use crate::bounded;
use crate::changes::Edit;
use crate::extract::{Asked, Body};
use crate::fields::{MatchTerms, ReasonText};
use crate::messages::list::matched;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Pauses at a time.
const PAUSES_MAX: usize = 10_000;
/// What a caller who is bound to a tenant can pause by, beside its tenant.
const OWN: [Scope; 6] = [
    Scope::Campaign,
    Scope::Class,
    Scope::Isp,
    Scope::Carrier,
    Scope::Push,
    Scope::Host,
];

/// A pause to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewPause)]
#[serde(deny_unknown_fields)]
pub struct PauseForm {
    /// What to pause: `{"tenant":"acme","isp":"google"}`. All must agree.
    #[serde(rename = "match")]
    #[schema(value_type = MatchTerms)]
    matches: BTreeMap<String, String>,
    /// Why.
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
    /// Until when; for good if nothing is said.
    until: Option<Stamp>,
}

/// A pause as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pause {
    /// What is paused, in the text form of a match.
    pub about: String,
    /// Why.
    pub reason: Option<String>,
    /// Until when.
    pub until: Option<Stamp>,
    /// Since when.
    pub since: Stamp,
    /// Who paused it.
    pub by: String,
}

/// A pause.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pause)]
pub struct PauseView {
    id: String,
    #[serde(rename = "match")]
    matches: BTreeMap<String, String>,
    reason: Option<String>,
    until: Option<Stamp>,
    since: Stamp,
    by: String,
}

/// All pauses.
#[derive(Debug, Serialize, ToSchema)]
pub struct PauseList {
    pauses: Vec<PauseView>,
}

impl PauseView {
    fn of(id: &str, pause: Pause) -> Self {
        let matches = pause.about.parse::<Match>();
        let terms = matches.iter().flat_map(|matches| matches.terms());
        Self {
            id: id.to_owned(),
            matches: terms
                .map(|(scope, pattern)| (scope.as_str().to_owned(), pattern.as_str().to_owned()))
                .collect(),
            reason: pause.reason,
            until: pause.until,
            since: pause.since,
            by: pause.by,
        }
    }
}

impl Pause {
    /// The pause of a document, if it is in force.
    pub fn of(document: &Document) -> Option<(PauseId, Match, Self)> {
        let id = document.id.parse().ok().map(PauseId)?;
        let pause: Self = serde_json::from_str(document.value.as_deref()?).ok()?;
        Some((id, pause.about.parse().ok()?, pause))
    }

    /// Whether it has run out.
    pub fn is_over(&self, now: Wall) -> bool {
        self.until.is_some_and(|Stamp(until)| until <= now)
    }
}

pub(crate) async fn documents(state: &ApiState) -> Result<Vec<Document>, Problem> {
    let registry = Arc::clone(&state.registry);
    Ok(on_disk(move || registry.list(Kind::Pause)).await??)
}

/// Whether a pause exists for this caller.
fn is_for(caller: &Caller, matches: &Match) -> bool {
    let Some(own) = &caller.tenant else {
        return true;
    };
    let about = matches.pattern(Scope::Tenant);
    about.is_some_and(|pattern| pattern.as_str() == own.as_str())
}

/// Pauses everything that matches, durably, then at the engine.
pub(crate) async fn pause(
    state: &ApiState,
    actor: &str,
    matches: Match,
    reason: Option<String>,
    until: Option<Stamp>,
) -> Result<PauseView, Problem> {
    if let Some(reason) = &reason {
        bounded::line(reason, bounded::REASON_BYTES_MAX)
            .map_err(|wrong| Problem::field("/reason", wrong.to_string()))?;
    }
    let now = state.clock.now();
    if until.is_some_and(|Stamp(until)| until <= now) {
        return Err(Problem::field("/until", "must be later than now"));
    }
    let documents = documents(state).await?;
    let in_force = documents.iter().filter(|document| document.value.is_some());
    if in_force.count() >= PAUSES_MAX {
        let detail = format!("there are {PAUSES_MAX} pauses already");
        return Err(Problem::new(Code::Conflict, detail));
    }
    // Numbers are never used again: those taken away are still listed.
    let numbers = documents
        .iter()
        .filter_map(|document| document.id.parse().ok());
    let number: u64 = numbers.max().unwrap_or(0) + 1;
    let pause = Pause {
        about: matches.to_string(),
        reason,
        until,
        since: Stamp(now),
        by: actor.to_owned(),
    };
    let edit = Edit {
        kind: Kind::Pause,
        id: number.to_string(),
        value: Some(json!(pause).to_string()),
        expected: Some(0),
        action: "pause.add",
        detail: json!(pause),
    };
    state.change(actor, edit).await?;
    let until = until.map(|Stamp(until)| until);
    state.control.pause(PauseId(number), matches, until);
    Ok(PauseView::of(&number.to_string(), pause))
}

/// Lifts a pause, durably, then at the engine.
pub(crate) async fn lift(
    state: &ApiState,
    actor: &str,
    document: &Document,
    action: &'static str,
) -> Result<(), Problem> {
    let Some((id, _, pause)) = Pause::of(document) else {
        return Err(Problem::not_found("pause"));
    };
    let edit = Edit {
        kind: Kind::Pause,
        id: document.id.clone(),
        value: None,
        expected: Some(document.version),
        action,
        detail: json!(pause),
    };
    state.change(actor, edit).await?;
    state.control.resume(id);
    Ok(())
}

/// List pauses.
#[utoipa::path(
    get,
    path = "/pauses",
    tag = "pauses",
    responses((status = 200, description = "all pauses", body = PauseList)),
)]
pub async fn list(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
) -> Result<Json<PauseList>, Problem> {
    let now = state.clock.now();
    let documents = documents(&state).await?;
    let pauses = documents.iter().filter_map(|document| {
        let (_, matches, pause) = Pause::of(document)?;
        let shown = is_for(&may, &matches) && !pause.is_over(now);
        shown.then(|| PauseView::of(&document.id, pause))
    });
    Ok(Json(PauseList {
        pauses: pauses.collect(),
    }))
}

/// Pause everything that matches.
#[utoipa::path(
    post,
    path = "/pauses",
    tag = "pauses",
    request_body = PauseForm,
    responses((status = 201, description = "it is paused", body = PauseView)),
)]
pub async fn add(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Body(form): Body<PauseForm>,
) -> Result<(StatusCode, Json<PauseView>), Problem> {
    let mut terms = form.matches;
    if let Some(tenant) = may.tenant_or(terms.get("tenant").cloned())? {
        terms.insert("tenant".to_owned(), tenant);
    }
    let pairs = terms
        .iter()
        .map(|(word, name)| (word.as_str(), name.as_str()));
    let matches = matched(pairs).map_err(|wrong| Problem::field("/match", wrong))?;
    let mut scopes = matches.scopes().iter();
    if may.tenant.is_some()
        && let Some(scope) = scopes.find(|scope| *scope != Scope::Tenant && !OWN.contains(scope))
    {
        let detail = format!("a token that is bound to a tenant cannot pause by {scope}");
        return Err(Problem::forbidden(detail));
    }
    let view = pause(&state, &may.name, matches, form.reason, form.until).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

/// Lift a pause.
#[utoipa::path(
    delete,
    path = "/pauses/{id}",
    tag = "pauses",
    params(("id" = String, Path, description = "the id of the pause")),
    responses((status = 204, description = "it is lifted")),
)]
pub async fn remove(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<StatusCode, Problem> {
    let documents = documents(&state).await?;
    let document = documents.iter().find(|document| {
        let is_it = document.id == id;
        is_it && Pause::of(document).is_some_and(|(_, matches, _)| is_for(&may, &matches))
    });
    let document = document.ok_or_else(|| Problem::not_found("pause"))?;
    lift(&state, &may.name, document, "pause.remove").await?;
    Ok(StatusCode::NO_CONTENT)
}
