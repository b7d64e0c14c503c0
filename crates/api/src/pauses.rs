//! `/pauses`: send nothing that matches, until a time or for good.
//!
//! A pause is a document of the registry, numbered; the engine is told by that
//! number. What has run out is taken away by the chores. The pause of a limit
//! (`POST /throttle/pause`) is one of these, of which the throttle is told too.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outflow_core::engine::command::PauseId;
use outflow_core::fair;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::scope::Scope;
use outflow_core::time::Wall;
use outflow_ports::registry::{Document, Kind};
use outflow_ports::throttle::{ThrottleError, Throttling};
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
/// How many of them tenants may have together: the others are kept for those who
/// speak for all.
const PAUSES_OF_TENANTS_MAX: u64 = 9_000;
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
    /// The limit whose pause this is: nothing of it is granted to those who ask
    /// the throttle either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
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
    /// The limit that was paused by its name; null for other pauses.
    limit: Option<String>,
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
            limit: pause.limit,
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Pause {
    /// The pause of a document, if it is in force.
    pub fn of(document: &Document) -> Option<(PauseId, Match, Self)> {
        let id = document.id.parse().ok().map(PauseId)?;
        let pause: Self = serde_json::from_str(document.value.as_deref()?).ok()?;
        Some((id, pause.about.parse().ok()?, pause))
    }

    /// The limit whose pause this is.
    fn of_limit(&self) -> Option<LimitKey> {
        self.limit.as_deref()?.parse().ok()
    }

    /// Has the throttle grant nothing of the limit for as long as is left.
    pub(crate) fn tell_throttle(
        &self,
        throttle: &dyn Throttling,
        now: Wall,
    ) -> Result<(), ThrottleError> {
        match (self.of_limit(), self.until) {
            (Some(limit), Some(Stamp(until))) => throttle.pause_limit(&limit, until.since(now)),
            _ => Ok(()),
        }
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

fn in_force(documents: &[Document]) -> impl Iterator<Item = &Document> {
    documents.iter().filter(|document| document.value.is_some())
}

/// How many pauses speak of a tenant, and how many more its operators may make.
pub(crate) fn occupied(documents: &[Document], tenant: &str) -> (u64, u64) {
    let pauses = in_force(documents).filter_map(Pause::of);
    let tenants = pauses.filter_map(|(_, matches, _)| matches.pattern(Scope::Tenant).cloned());
    let (mut own, mut all) = (0, 0);
    for about in tenants {
        all += 1;
        own += u64::from(about.as_str() == tenant);
    }
    (own, fair::room(own, all, PAUSES_OF_TENANTS_MAX))
}

/// Whether this caller may make another pause.
pub(crate) async fn may_add(state: &ApiState, caller: &Caller) -> Result<(), Problem> {
    let Some(tenant) = &caller.tenant else {
        return Ok(());
    };
    match occupied(&documents(state).await?, tenant.as_str()) {
        (_, 0) => {
            let detail = format!("{tenant} has as many pauses as one tenant may have");
            Err(Problem::later(Code::QuotaExhausted, 60, detail))
        }
        _ => Ok(()),
    }
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
    let pause = Pause {
        about: matches.to_string(),
        reason,
        until,
        since: Stamp(now),
        by: actor.to_owned(),
        limit: None,
    };
    let documents = documents(state).await?;
    add_one(state, actor, &documents, matches, pause).await
}

/// Pauses a limit until a time: mail that it governs, and those who ask the
/// throttle for it. If it is paused already, the later time holds.
pub(crate) async fn pause_limit(
    state: &ApiState,
    actor: &str,
    limit: &LimitKey,
    until: Wall,
) -> Result<PauseView, Problem> {
    let terms = limit.parts().iter();
    let terms = terms.map(|(scope, name)| (scope.as_str(), name.as_str()));
    let matches = matched(terms).map_err(|wrong| Problem::field("/key", wrong))?;
    let documents = documents(state).await?;
    let known = documents.iter().find_map(|document| {
        let (id, _, pause) = Pause::of(document)?;
        (pause.of_limit().as_ref() == Some(limit)).then_some((document, id, pause))
    });
    let now = state.clock.now();
    let Some((document, id, known)) = known else {
        let pause = Pause {
            about: matches.to_string(),
            reason: None,
            until: Some(Stamp(until)),
            since: Stamp(now),
            by: actor.to_owned(),
            limit: Some(limit.to_string()),
        };
        return add_one(state, actor, &documents, matches, pause).await;
    };
    if known.until.is_none_or(|Stamp(known)| known >= until) {
        return Ok(PauseView::of(&document.id, known));
    }
    let longer = Pause {
        until: Some(Stamp(until)),
        ..known
    };
    let edit = Edit {
        kind: Kind::Pause,
        id: document.id.clone(),
        value: Some(json!(longer).to_string()),
        expected: Some(document.version),
        action: "pause.extend",
        detail: json!(longer),
    };
    state.change(actor, edit).await?;
    state.control.pause(id, matches, Some(until));
    longer.tell_throttle(&*state.throttle, now)?;
    Ok(PauseView::of(&document.id, longer))
}

/// A new pause, with the number after those of `documents`.
async fn add_one(
    state: &ApiState,
    actor: &str,
    documents: &[Document],
    matches: Match,
    pause: Pause,
) -> Result<PauseView, Problem> {
    if in_force(documents).count() >= PAUSES_MAX {
        let detail = format!("there are {PAUSES_MAX} pauses already");
        return Err(Problem::new(Code::Conflict, detail));
    }
    // Numbers are never used again: those taken away are still listed.
    let numbers = documents
        .iter()
        .filter_map(|document| document.id.parse().ok());
    let number: u64 = numbers.max().unwrap_or(0) + 1;
    let edit = Edit {
        kind: Kind::Pause,
        id: number.to_string(),
        value: Some(json!(pause).to_string()),
        expected: Some(0),
        action: "pause.add",
        detail: json!(pause),
    };
    state.change(actor, edit).await?;
    let until = pause.until.map(|Stamp(until)| until);
    state.control.pause(PauseId(number), matches, until);
    pause.tell_throttle(&*state.throttle, state.clock.now())?;
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
    // One that ran out has ended by itself, and another node's may go on.
    if let Some(limit) = pause.of_limit()
        && !pause.is_over(state.clock.now())
    {
        state.throttle.resume_limit(&limit);
    }
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
    may_add(&state, &may).await?;
    let view = pause(&state, &may.actor, matches, form.reason, form.until).await?;
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
    lift(&state, &may.actor, document, "pause.remove").await?;
    Ok(StatusCode::NO_CONTENT)
}
