//! `/policies`: what operators write about rates and limits.
//!
//! A `PATCH` with `mitigation_reason` is a temporary override: the base stays
//! as it is, and when `cooldown_until` has come the rate ramps back up to it (see
//! [`crate::mitigations`]).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use outflow_config::{RawPolicy, match_of_path, merge, path_of_match};
use outflow_core::policy::matcher::Match;
use outflow_core::time::Wall;
use outflow_ports::registry::Kind;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::accounts::invalid;
use crate::auth::{May, Operate};
use crate::book::Origin;
use crate::book::policy::{PolicyEntry, StoredPolicy, below};
use crate::bounded;
use crate::changes::{Edit, expected};
use crate::extract::{Asked, Body};
use crate::fields::{PolicyFields, PolicyPath};
use crate::governed::{self, Governed};
use crate::mitigations::RampView;
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// Policies at a time.
const POLICIES_MAX: usize = 50_000;

/// Bytes of a name in an address; a lane is two names.
const NAMES_BYTES_MAX: usize = 300;

/// A policy in force.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Policy)]
pub struct PolicyView {
    /// What it is called: `isp/google`.
    path: String,
    /// The fields in force.
    #[serde(flatten)]
    #[schema(value_type = serde_json::Value)]
    fields: Map<String, Value>,
    /// Where the base came from.
    origin: Origin,
    /// How often it was changed over the API.
    version: u64,
    /// Why this is in force.
    why: String,
    /// What holds again when the mitigation is over; null without one.
    #[schema(value_type = Option<serde_json::Value>)]
    base: Option<Value>,
    /// How it is being taken back; null while it holds, or without one.
    ramp: Option<RampView>,
    /// What it governs now; only in answers about one policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<Governed>,
}

/// All policies.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyList {
    policies: Vec<PolicyView>,
}

impl PolicyView {
    fn of(matches: &Match, entry: &PolicyEntry, now: Wall) -> Option<Self> {
        let raw = entry.raw_at(matches, now)?.about(matches);
        let Value::Object(fields) = raw.shown() else {
            return None;
        };
        let mitigated = raw.mitigation_reason.is_some();
        let base = match entry.origin {
            Origin::File => "from the settings file",
            Origin::BuiltIn => "built in, as a start; what is written takes its place",
            Origin::Api | Origin::Implicit => "set over the API",
        };
        let ramp = RampView::of(matches, entry, now);
        let why = match (mitigated, &raw.cooldown_until) {
            (true, _) if let Some(ramp) = &ramp => ramp.sentence(base),
            (true, Some(until)) => format!("overridden until {until}; the base is {base}"),
            (true, None) => format!("overridden until it is lifted; the base is {base}"),
            (false, _) => base.to_owned(),
        };
        Some(Self {
            path: path_of_match(matches),
            fields,
            origin: entry.origin,
            version: entry.version,
            why,
            base: entry
                .base
                .as_ref()
                .filter(|_| mitigated)
                .map(RawPolicy::shown),
            ramp,
            matches: None,
        })
    }
}

fn about(path: &str) -> Result<Match, Problem> {
    let matches = match_of_path(path);
    let matches = matches.map_err(|wrong| Problem::new(Code::NotFound, wrong.to_string()))?;
    let mut names = matches.terms().iter().map(|(_, pattern)| pattern.as_str());
    match names.find_map(|name| bounded::line(name, NAMES_BYTES_MAX).err()) {
        Some(wrong) => Err(Problem::new(
            Code::NotFound,
            format!("a name in the address {wrong}"),
        )),
        None => Ok(matches),
    }
}

async fn shown(
    state: &ApiState,
    matches: &Match,
    entry: &PolicyEntry,
) -> Result<Json<PolicyView>, Problem> {
    let view = PolicyView::of(matches, entry, state.clock.now());
    let mut view = view.ok_or_else(|| Problem::not_found("policy"))?;
    view.matches = Some(governed::by(state, matches).await?);
    Ok(Json(view))
}

/// List policies.
#[utoipa::path(
    get,
    path = "/policies",
    tag = "policies",
    responses((status = 200, description = "all policies in force", body = PolicyList)),
)]
pub async fn list(_may: May<Operate>, State(state): State<ApiState>) -> Json<PolicyList> {
    let (snapshot, now) = (state.book.snapshot(), state.clock.now());
    let policies = snapshot.policies.iter();
    Json(PolicyList {
        policies: policies
            .filter_map(|(matches, entry)| PolicyView::of(matches, entry, now))
            .collect(),
    })
}

/// Show a policy, and what it governs now.
#[utoipa::path(
    get,
    path = "/policies/{*path}",
    tag = "policies",
    params(("path" = PolicyPath, Path, description = "kind and id: isp/google, account/ses-1/isp/google")),
    responses((status = 200, description = "the policy", body = PolicyView)),
)]
pub async fn get(
    _may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(path)): Asked<Path<String>>,
) -> Result<Json<PolicyView>, Problem> {
    let matches = about(&path)?;
    let snapshot = state.book.snapshot();
    let entry = snapshot.policies.get(&matches);
    let entry = entry.ok_or_else(|| Problem::not_found("policy"))?;
    shown(&state, &matches, entry).await
}

/// Set a policy as a whole.
#[utoipa::path(
    put,
    path = "/policies/{*path}",
    tag = "policies",
    params(("path" = PolicyPath, Path, description = "kind and id: isp/google, account/ses-1/isp/google")),
    request_body = PolicyFields,
    responses((status = 200, description = "the policy is in force", body = PolicyView)),
)]
pub async fn put(
    may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(path)): Asked<Path<String>>,
    headers: HeaderMap,
    Body(value): Body<Value>,
) -> Result<Json<PolicyView>, Problem> {
    let matches = about(&path)?;
    let raw = RawPolicy::read(&value).map_err(invalid)?;
    if raw.mitigation_reason.is_some() || raw.cooldown_until.is_some() {
        let detail = "is for PATCH: a mitigation overrides a policy for a while";
        return Err(Problem::field("/mitigation_reason", detail));
    }
    let entry = set(&state, &may.actor, &matches, &headers, |before| {
        let kept = before.map(PolicyEntry::stored).unwrap_or_default();
        let base = Some(raw);
        Ok(StoredPolicy { base, ..kept })
    })
    .await?;
    shown(&state, &matches, &entry).await
}

/// Change some fields of a policy, which is made if there is none; null takes a
/// field away. With `mitigation_reason` the change is a temporary override,
/// until `cooldown_until`; `"mitigation_reason": null` lifts it.
#[utoipa::path(
    patch,
    path = "/policies/{*path}",
    tag = "policies",
    params(("path" = PolicyPath, Path, description = "kind and id: isp/google, account/ses-1/isp/google")),
    request_body = PolicyFields,
    responses((status = 200, description = "the policy is in force", body = PolicyView)),
)]
pub async fn patch(
    may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(path)): Asked<Path<String>>,
    headers: HeaderMap,
    Body(value): Body<Value>,
) -> Result<Json<PolicyView>, Problem> {
    let matches = about(&path)?;
    let Value::Object(patch) = value else {
        return Err(Problem::field("", "must be an object"));
    };
    let entry = set(&state, &may.actor, &matches, &headers, |before| {
        patched(before, patch)
    })
    .await?;
    shown(&state, &matches, &entry).await
}

/// What a patch makes of a policy, or of none.
pub(crate) fn patched(
    before: Option<&PolicyEntry>,
    mut patch: Map<String, Value>,
) -> Result<StoredPolicy, Problem> {
    let merged = |part: Option<&RawPolicy>, patch: Map<String, Value>| {
        let part = part.map(RawPolicy::shown).unwrap_or_default();
        let merged = RawPolicy::read(&merge(&part, &Value::Object(patch)));
        merged.map(Some).map_err(invalid)
    };
    let base = before.and_then(|before| before.base.as_ref());
    let kept = before.map(PolicyEntry::stored).unwrap_or_default();
    match patch.get("mitigation_reason") {
        Some(Value::Null) => {
            patch.remove("mitigation_reason");
            patch.remove("cooldown_until");
            let base = match patch.is_empty() {
                true => kept.base,
                false => merged(base, patch)?,
            };
            Ok(StoredPolicy {
                base,
                ..StoredPolicy::default()
            })
        }
        Some(_) => {
            let mut over = kept.over;
            if patch.contains_key("rate")
                && let Some(over) = &mut over
            {
                // It belongs to the rate that it was written for.
                over.max_rate = None;
            }
            Ok(StoredPolicy {
                over: merged(over.as_ref(), patch)?,
                base: kept.base,
                step: 0,
            })
        }
        None => Ok(StoredPolicy {
            base: merged(base, patch)?,
            ..kept
        }),
    }
}

/// Changes a policy durably, then at the engine: the one way for people, and
/// for what acts in their place.
pub(crate) async fn set(
    state: &ApiState,
    actor: &str,
    matches: &Match,
    headers: &HeaderMap,
    change: impl FnOnce(Option<&PolicyEntry>) -> Result<StoredPolicy, Problem>,
) -> Result<PolicyEntry, Problem> {
    let _turn = state.book.write().await;
    let now = state.clock.now();
    let snapshot = state.book.snapshot();
    let before = snapshot.policies.get(matches);
    let before = before.map(|before| before.without_ended(matches, now));
    let before = before.as_ref();
    if before.is_none() && snapshot.policies.len() >= POLICIES_MAX {
        let detail = format!("there are {POLICIES_MAX} policies already");
        return Err(Problem::new(Code::Conflict, detail));
    }
    let mut stored = change(before)?;
    let below = below(state.book.start(), matches);
    if before.is_none() && below.is_some() {
        // What was taken away does not come back below an override.
        stored.base.get_or_insert_default();
    }
    let entry = PolicyEntry::of(state.book.start(), matches, stored.clone(), 0);
    let mut entry = entry.ok_or_else(|| Problem::field("", "says nothing"))?;
    check(&entry, matches)?;
    let is_new = before.is_none_or(|before| before.over != entry.over);
    if is_new && entry.has_cooled(matches, now) {
        return Err(Problem::field("/cooldown_until", "must be later than now"));
    }
    let edit = Edit {
        kind: Kind::Policy,
        id: matches.to_string(),
        value: Some(json!(stored).to_string()),
        expected: expected(headers, before.map_or(0, |before| before.version))?,
        action: "policy.set",
        detail: json!({
            "before": before.and_then(|before| before.raw_at(matches, now)),
            "after": entry.raw_at(matches, now),
        }),
    };
    // All nodes hear of it before it is in force here.
    state.share(&edit.id, edit.value.as_deref()).await?;
    entry.version = state.change(actor, edit).await?;
    state.book.set_policy(matches, Some(entry.clone()), now);
    Ok(entry)
}

/// Whether base and override can both be honoured.
fn check(entry: &PolicyEntry, matches: &Match) -> Result<(), Problem> {
    if let Some(base) = &entry.base {
        base.validate_about(matches).map_err(invalid)?;
    }
    let Some(over) = &entry.over else {
        return Ok(());
    };
    let base = entry.base.clone().unwrap_or_default();
    let merged = base.overridden_by(over).validate_about(matches);
    merged.map(drop).map_err(invalid)
}

/// Take a policy away, also one of the settings file.
#[utoipa::path(
    delete,
    path = "/policies/{*path}",
    tag = "policies",
    params(("path" = PolicyPath, Path, description = "kind and id: isp/google, account/ses-1/isp/google")),
    responses((status = 204, description = "it is gone")),
)]
pub async fn remove(
    may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(path)): Asked<Path<String>>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    take_away(&state, &may.actor, &about(&path)?, &headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a policy away durably, then at the engine.
pub(crate) async fn take_away(
    state: &ApiState,
    actor: &str,
    matches: &Match,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let _turn = state.book.write().await;
    let (snapshot, now) = (state.book.snapshot(), state.clock.now());
    let before = snapshot.policies.get(matches);
    let before = before.ok_or_else(|| Problem::not_found("policy"))?;
    let edit = Edit {
        kind: Kind::Policy,
        id: matches.to_string(),
        value: None,
        expected: expected(headers, before.version)?,
        action: "policy.remove",
        detail: json!({ "before": before.raw_at(matches, now) }),
    };
    state.share(&edit.id, None).await?;
    state.change(actor, edit).await?;
    state.book.set_policy(matches, None, now);
    Ok(())
}
