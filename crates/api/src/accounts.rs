//! `/accounts`: credentials and sending addresses. Secrets go in and never
//! come out.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use outflow_config::{RawAccount, merge};
use outflow_ports::registry::Kind;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::account_secrets;
use crate::ask::ask;
use crate::auth::{Administer, Caller, May, Operate};
use crate::book::account::AccountEntry;
use crate::book::{Origin, Snapshot};
use crate::changes::{Edit, expected};
use crate::extract::{Asked, Body};
use crate::fields::{AccountFields, AccountId};
use crate::problem::{Code, FieldError, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Accounts at a time.
const ACCOUNTS_MAX: usize = 10_000;

/// An account in force.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountView {
    /// Its fields as they were written, without secrets.
    #[serde(flatten)]
    #[schema(value_type = serde_json::Value)]
    fields: Map<String, Value>,
    /// Where it came from.
    origin: Origin,
    /// How often it was changed over the API.
    version: u64,
    /// Why this is in force.
    why: &'static str,
    /// What holds it beside its limits, if anything does.
    held: Vec<HeldView>,
}

/// What holds an account beside its limits.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Held)]
pub struct HeldView {
    /// `asked` (the far end asked for nothing until then), `breaker` (it failed
    /// again and again), `half_open` (one message asks), `refusals` (it was
    /// refused too often), `pressure` (others of its pool are blocked: it keeps to
    /// the rate of the minute before).
    by: &'static str,
    /// Where, if not everywhere.
    destination: Option<String>,
    /// Until when, if that is known.
    until: Option<Stamp>,
    /// What it may send in a minute meanwhile, if anything.
    per_minute: Option<u64>,
}

/// What holds each account.
async fn held(state: &ApiState) -> Result<BTreeMap<String, Vec<HeldView>>, Problem> {
    let mut held: BTreeMap<String, Vec<HeldView>> = BTreeMap::new();
    for it in ask(|then| state.query.standings(then)).await? {
        let of_account = held.entry(it.account.to_string()).or_default();
        of_account.push(HeldView {
            by: it.by.as_str(),
            destination: it.destination.map(|to| to.to_string()),
            until: it.until.and_then(Stamp::unless_never),
            per_minute: it.per_minute,
        });
    }
    Ok(held)
}

/// All accounts.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountList {
    accounts: Vec<AccountView>,
}

impl AccountView {
    fn of(state: &ApiState, id: &str, entry: &AccountEntry, held: Vec<HeldView>) -> Self {
        let mut fields = match entry.raw.shown() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.insert("id".to_owned(), id.into());
        let pool = entry.account.spec.pool.as_str();
        fields.entry("pool").or_insert_with(|| pool.into());
        let mut in_file = state.book.start().accounts.iter();
        let why = match entry.origin {
            Origin::File => "from the settings file; nothing was changed over the API",
            Origin::Implicit => "no account was ever configured, so the sandbox takes everything",
            Origin::Api if in_file.any(|raw| raw.id.as_deref() == Some(id)) => {
                "set over the API, which wins over the settings file"
            }
            Origin::Api | Origin::BuiltIn => "set over the API",
        };
        Self {
            fields,
            origin: entry.origin,
            version: entry.version,
            why,
            held,
        }
    }
}

/// Invalid settings in our words.
pub fn invalid(invalid: outflow_config::Invalid) -> Problem {
    let errors = invalid.errors.into_iter();
    Problem::invalid(
        errors
            .map(|error| FieldError::new(error.pointer, error.detail))
            .collect(),
    )
}

fn entry<'a>(snapshot: &'a Snapshot, id: &str) -> Result<&'a AccountEntry, Problem> {
    let found = snapshot.accounts.get(id);
    found
        .map(AsRef::as_ref)
        .ok_or_else(|| Problem::not_found("account"))
}

/// List accounts.
#[utoipa::path(
    get,
    path = "/accounts",
    tag = "accounts",
    responses((status = 200, description = "all accounts in force", body = AccountList)),
)]
pub async fn list(
    _may: May<Operate>,
    State(state): State<ApiState>,
) -> Result<Json<AccountList>, Problem> {
    let mut held = held(&state).await?;
    let snapshot = state.book.snapshot();
    let accounts = snapshot.accounts.iter().map(|(id, entry)| {
        let held = held.remove(&**id).unwrap_or_default();
        AccountView::of(&state, id, entry, held)
    });
    let accounts = accounts.collect();
    Ok(Json(AccountList { accounts }))
}

/// Show an account.
#[utoipa::path(
    get,
    path = "/accounts/{id}",
    tag = "accounts",
    params(("id" = AccountId, Path, description = "the id of the account")),
    responses((status = 200, description = "the account", body = AccountView)),
)]
pub async fn get(
    _may: May<Operate>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<AccountView>, Problem> {
    let snapshot = state.book.snapshot();
    let entry = entry(&snapshot, &id)?;
    let held = held(&state).await?.remove(&id).unwrap_or_default();
    Ok(Json(AccountView::of(&state, &id, entry, held)))
}

/// Set an account as a whole. A password that reads `(hidden)` stays as it is.
#[utoipa::path(
    put,
    path = "/accounts/{id}",
    tag = "accounts",
    params(("id" = AccountId, Path, description = "the id of the account")),
    request_body = AccountFields,
    responses((status = 200, description = "the account is in force", body = AccountView)),
)]
pub async fn put(
    may: May<Administer>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
    headers: HeaderMap,
    Body(value): Body<Value>,
) -> Result<Json<AccountView>, Problem> {
    let whole = |_: Option<&RawAccount>| value.clone();
    set(&state, &may, id, &headers, &value, whole).await
}

/// Change some fields of an account; null takes one away.
#[utoipa::path(
    patch,
    path = "/accounts/{id}",
    tag = "accounts",
    params(("id" = AccountId, Path, description = "the id of the account")),
    request_body = AccountFields,
    responses((status = 200, description = "the account is in force", body = AccountView)),
)]
pub async fn patch(
    may: May<Administer>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
    headers: HeaderMap,
    Body(value): Body<Value>,
) -> Result<Json<AccountView>, Problem> {
    let snapshot = state.book.snapshot();
    entry(&snapshot, &id)?;
    let patched = |before: Option<&RawAccount>| {
        let before = before.map(RawAccount::stored).unwrap_or_default();
        merge(&before, &value)
    };
    set(&state, &may, id, &headers, &value, patched).await
}

async fn set(
    state: &ApiState,
    caller: &Caller,
    id: String,
    headers: &HeaderMap,
    sent: &Value,
    change: impl FnOnce(Option<&RawAccount>) -> Value,
) -> Result<Json<AccountView>, Problem> {
    let _turn = state.book.write().await;
    let snapshot = state.book.snapshot();
    let before = snapshot.accounts.get(&id);
    let real = before.filter(|before| before.origin != Origin::Implicit);
    if real.is_none() && snapshot.accounts.len() >= ACCOUNTS_MAX {
        let detail = format!("there are {ACCOUNTS_MAX} accounts already");
        return Err(Problem::new(Code::Conflict, detail));
    }
    let mut raw = RawAccount::read(&change(real.map(|before| &before.raw))).map_err(invalid)?;
    if raw.id.as_ref().is_some_and(|own| *own != id) {
        return Err(Problem::field(
            "/id",
            "is not the id in the address: leave it out",
        ));
    }
    raw.id = Some(id.clone());
    match real {
        Some(before) => raw.keep_secrets(&before.raw),
        None if raw
            .password
            .as_ref()
            .is_some_and(|own| own.is_placeholder()) =>
        {
            return Err(Problem::field("/password", "was not set before: send it"));
        }
        None => {}
    }
    let account = raw.validate().map_err(invalid)?;
    let secrets_dir = &state.book.start().secrets_dir;
    account_secrets::check(&raw, real.map(|before| &before.raw), sent, secrets_dir)?;
    let edit = Edit {
        kind: Kind::Account,
        id: id.clone(),
        value: Some(raw.stored().to_string()),
        expected: expected(headers, real.map_or(0, |before| before.version))?,
        action: "account.set",
        detail: json!({ "before": real.map(|before| before.raw.shown()), "after": raw.shown() }),
    };
    let version = state.change(&caller.actor, edit).await?;
    let entry = AccountEntry {
        raw,
        account,
        origin: Origin::Api,
        version,
    };
    let held = held(state).await?.remove(&id).unwrap_or_default();
    let view = AccountView::of(state, &id, &entry, held);
    state.book.set_account(&id, Some(entry));
    Ok(Json(view))
}

/// Take an account away, also one of the settings file.
#[utoipa::path(
    delete,
    path = "/accounts/{id}",
    tag = "accounts",
    params(("id" = AccountId, Path, description = "the id of the account")),
    responses((status = 204, description = "it is gone")),
)]
pub async fn remove(
    may: May<Administer>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let _turn = state.book.write().await;
    let snapshot = state.book.snapshot();
    let before = entry(&snapshot, &id)?;
    let edit = Edit {
        kind: Kind::Account,
        id: id.clone(),
        value: None,
        expected: expected(&headers, before.version)?,
        action: "account.remove",
        detail: json!({ "before": before.raw.shown() }),
    };
    state.change(&may.actor, edit).await?;
    state.book.set_account(&id, None);
    Ok(StatusCode::NO_CONTENT)
}
