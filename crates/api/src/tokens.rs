//! `/tokens`: who may do what.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outflow_core::class::Class;
use outflow_core::time::Wall;
use outflow_mail::address::domain_to_ascii;
use outflow_ports::registry::{Audit, Change, Document, Kind, Registry};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::ask::on_disk;
use crate::auth::{Administer, May};
use crate::bounded;
use crate::changes::Edit;
use crate::extract::{Asked, Body};
use crate::fields::{ClassWord, DomainText, NameText};
use crate::grant::{Grant, Scope, Tokens, mint};
use crate::problem::{Code, FieldError, Problem};
use crate::stamp::Stamp;
use crate::state::{ApiState, StartError};

/// Entries of each list of a token.
const LIST_MAX: usize = 100;
/// Tokens in force.
const TOKENS_MAX: usize = 10_000;

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewToken)]
#[serde(deny_unknown_fields)]
pub struct TokenForm {
    /// What people call it; the audit names it.
    #[schema(value_type = NameText)]
    name: String,
    scope: Scope,
    /// The only tenant it speaks for. A token that only submits and has none
    /// submits for any, and sees the messages that name no tenant.
    #[schema(value_type = Option<NameText>)]
    tenant: Option<String>,
    /// The only classes it may submit.
    #[serde(default)]
    #[schema(value_type = Vec<ClassWord>, max_items = 100)]
    classes: Vec<String>,
    /// The only pools it may submit to.
    #[serde(default)]
    #[schema(value_type = Vec<NameText>, max_items = 100)]
    pools: Vec<String>,
    /// The only domains it may send from.
    #[serde(default)]
    #[schema(value_type = Vec<DomainText>, max_items = 100)]
    from_domains: Vec<String>,
}

/// A token, without the token itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    id: String,
    name: String,
    scope: Scope,
    tenant: Option<String>,
    classes: Vec<String>,
    pools: Vec<String>,
    from_domains: Vec<String>,
    created_at: Stamp,
}

/// A new token. It is shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub struct IssuedToken {
    #[serde(flatten)]
    about: TokenView,
    /// The token itself.
    token: String,
}

/// All tokens.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenList {
    tokens: Vec<TokenView>,
}

impl TokenView {
    fn of(id: &str, grant: Grant) -> Self {
        Self {
            id: id.to_owned(),
            name: grant.name,
            scope: grant.scope,
            tenant: grant.tenant,
            classes: grant.classes,
            pools: grant.pools,
            from_domains: grant.from_domains,
            created_at: grant.created_at,
        }
    }
}

impl TokenForm {
    fn check(&mut self) -> Result<(), Problem> {
        let mut errors = Vec::new();
        let mut wrong = |pointer: String, detail: String| {
            errors.push(FieldError::new(pointer, detail));
        };
        if let Err(error) = bounded::name(&self.name) {
            wrong("/name".to_owned(), error.to_string());
        }
        if let Some(tenant) = &self.tenant {
            if let Err(error) = bounded::name(tenant) {
                wrong("/tenant".to_owned(), error.to_string());
            }
            if matches!(self.scope, Scope::Admin | Scope::Metrics) {
                let detail = "goes with the scopes submit and operator only".to_owned();
                wrong("/tenant".to_owned(), detail);
            }
        }
        let lists = [
            ("classes", self.classes.len()),
            ("pools", self.pools.len()),
            ("from_domains", self.from_domains.len()),
        ];
        for (field, _) in lists.iter().filter(|(_, count)| *count > LIST_MAX) {
            wrong(
                format!("/{field}"),
                format!("has more than {LIST_MAX} entries"),
            );
        }
        for (at, class) in self.classes.iter().enumerate() {
            if let Err(error) = class.parse::<Class>() {
                wrong(format!("/classes/{at}"), error.to_string());
            }
        }
        for (at, pool) in self.pools.iter().enumerate() {
            if let Err(error) = bounded::name(pool) {
                wrong(format!("/pools/{at}"), error.to_string());
            }
        }
        for (at, domain) in self.from_domains.iter_mut().enumerate() {
            match domain_to_ascii(domain) {
                Some(ascii) => *domain = ascii,
                None => wrong(format!("/from_domains/{at}"), "is not a domain".to_owned()),
            }
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Problem::invalid(errors)),
        }
    }

    fn grant(self, created_at: Wall, sha256: String) -> Grant {
        Grant {
            name: self.name,
            scope: self.scope,
            tenant: self.tenant,
            classes: self.classes,
            pools: self.pools,
            from_domains: self.from_domains,
            created_at: Stamp(created_at),
            sha256,
        }
    }
}

/// Makes an administrator's token if there is none: the token, which is shown
/// this once. Waits for the disk.
pub fn first_admin(registry: &dyn Registry, now: Wall) -> Result<Option<String>, StartError> {
    if Tokens::of(&registry.list(Kind::Token)?).admins() > 0 {
        return Ok(None);
    }
    issue_admin(registry, now).map(Some)
}

/// Makes a further administrator's token, for whoever holds the data directory
/// and has lost the first one. Waits for the disk.
pub fn issue_admin(registry: &dyn Registry, now: Wall) -> Result<String, StartError> {
    let minted = mint()?;
    let form = TokenForm {
        name: "admin".to_owned(),
        scope: Scope::Admin,
        tenant: None,
        classes: Vec::new(),
        pools: Vec::new(),
        from_domains: Vec::new(),
    };
    let value = json!(form.grant(now, minted.sha256)).to_string();
    registry.change(
        Change {
            kind: Kind::Token,
            id: &minted.id,
            value: Some(&value),
            expected: Some(0),
        },
        Audit {
            at: now,
            actor: "server",
            action: "token.add",
            target: &minted.id,
            detail: r#"{"name":"admin","scope":"admin"}"#,
        },
    )?;
    Ok(minted.token)
}

async fn documents(state: &ApiState) -> Result<Vec<Document>, Problem> {
    let registry = Arc::clone(&state.registry);
    Ok(on_disk(move || registry.list(Kind::Token)).await??)
}

async fn reload(state: &ApiState) -> Result<(), Problem> {
    let tokens = Arc::new(Tokens::of(&documents(state).await?));
    state.tokens.store(Arc::clone(&tokens));
    state.events.review(tokens);
    Ok(())
}

/// List tokens.
#[utoipa::path(
    get,
    path = "/tokens",
    tag = "tokens",
    responses((status = 200, description = "all tokens, without the tokens themselves", body = TokenList)),
)]
pub async fn list(
    _may: May<Administer>,
    State(state): State<ApiState>,
) -> Result<Json<TokenList>, Problem> {
    let documents = documents(&state).await?;
    let views = documents.iter().filter_map(|document| {
        let grant = serde_json::from_str(document.value.as_deref()?).ok()?;
        Some(TokenView::of(&document.id, grant))
    });
    Ok(Json(TokenList {
        tokens: views.collect(),
    }))
}

/// Make a token. The answer is the only place where it is shown.
#[utoipa::path(
    post,
    path = "/tokens",
    tag = "tokens",
    request_body = TokenForm,
    responses((status = 201, description = "the token, shown this once", body = IssuedToken)),
)]
pub async fn add(
    may: May<Administer>,
    State(state): State<ApiState>,
    Body(mut form): Body<TokenForm>,
) -> Result<(StatusCode, Json<IssuedToken>), Problem> {
    form.check()?;
    let in_force = documents(&state).await?;
    let in_force = in_force.iter().filter(|document| document.value.is_some());
    if in_force.count() >= TOKENS_MAX {
        return Err(Problem::new(
            Code::Conflict,
            format!("there are {TOKENS_MAX} tokens already"),
        ));
    }
    let minted = mint().map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let grant = form.grant(state.clock.now(), minted.sha256);
    let edit = Edit {
        kind: Kind::Token,
        id: minted.id.clone(),
        value: Some(json!(grant).to_string()),
        expected: Some(0),
        action: "token.add",
        detail: json!({ "name": grant.name, "scope": grant.scope, "tenant": grant.tenant }),
    };
    state.change(&may.actor, edit).await?;
    reload(&state).await?;
    let issued = IssuedToken {
        about: TokenView::of(&minted.id, grant),
        token: minted.token,
    };
    Ok((StatusCode::CREATED, Json(issued)))
}

/// Take a token away. It stops working at once.
#[utoipa::path(
    delete,
    path = "/tokens/{id}",
    tag = "tokens",
    params(("id" = String, Path, description = "the id of the token")),
    responses(
        (status = 204, description = "it is gone"),
        (status = 409, description = "it is the last administrator's token", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn remove(
    may: May<Administer>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<StatusCode, Problem> {
    let documents = documents(&state).await?;
    let document = documents.iter().find(|document| document.id == id);
    let grant = document.and_then(|document| document.value.as_deref());
    let grant: Option<Grant> = grant.and_then(|value| serde_json::from_str(value).ok());
    let grant = grant.ok_or_else(|| Problem::not_found("token"))?;
    if grant.scope == Scope::Admin && Tokens::of(&documents).admins() < 2 {
        return Err(Problem::new(
            Code::Conflict,
            "this is the last administrator's token: make another one first",
        ));
    }
    let edit = Edit {
        kind: Kind::Token,
        id,
        value: None,
        expected: document.map(|document| document.version),
        action: "token.remove",
        detail: json!({ "name": grant.name, "scope": grant.scope }),
    };
    state.change(&may.actor, edit).await?;
    reload(&state).await?;
    Ok(StatusCode::NO_CONTENT)
}
