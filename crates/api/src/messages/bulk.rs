//! `POST /messages/bulk`: cancel, retry or move everything that matches.

use axum::Json;
use axum::extract::State;
use outflow_core::name::Name;
use outflow_ports::control::Bulk;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::list::Selection;
use crate::ask::ask;
use crate::auth::{May, OperateOwn};
use crate::bounded;
use crate::extract::Body;
use crate::fields::NameText;
use crate::object::object;
use crate::problem::Problem;
use crate::state::ApiState;

/// What to do with everything that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Withdraw it.
    Cancel,
    /// Try what is deferred now.
    Retry,
    /// Hand it to another pool.
    Move,
}

/// Something to be done with many messages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkForm {
    action: BulkAction,
    /// Which messages. Must name something.
    #[serde(rename = "match", deserialize_with = "object")]
    matches: Selection,
    /// The pool to move them to.
    #[schema(value_type = Option<NameText>)]
    to_pool: Option<String>,
    /// Only count them.
    #[serde(default)]
    dry_run: bool,
}

/// How many messages it is about.
#[derive(Debug, Serialize, ToSchema)]
pub struct BulkAnswer {
    action: BulkAction,
    /// How many messages match, at most.
    matched: u64,
    /// Nothing was done.
    dry_run: bool,
}

/// Cancel, retry or move all waiting messages that match.
#[utoipa::path(
    post,
    path = "/messages/bulk",
    tag = "messages",
    request_body = BulkForm,
    responses((status = 200, description = "how many messages it is about", body = BulkAnswer)),
)]
pub async fn bulk(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Body(form): Body<BulkForm>,
) -> Result<Json<BulkAnswer>, Problem> {
    let bulk = match (form.action, form.to_pool) {
        (BulkAction::Cancel, None) => Bulk::Cancel,
        (BulkAction::Retry, None) => Bulk::Retry,
        (BulkAction::Move, Some(pool)) => {
            bounded::name(&pool).map_err(|wrong| Problem::field("/to_pool", wrong.to_string()))?;
            if !may.may_pool(&pool) {
                return Err(Problem::forbidden("this token does not cover that pool"));
            }
            Bulk::Move {
                pool: Name::from(pool),
            }
        }
        (BulkAction::Move, None) => return Err(Problem::field("/to_pool", "is required to move")),
        (_, Some(_)) => return Err(Problem::field("/to_pool", "goes with move only")),
    };
    let mut selection = form.matches;
    selection.tenant = may.tenant_or(selection.tenant)?;
    let matches = selection
        .matches()
        .map_err(|wrong| Problem::field("/match", wrong))?
        .ok_or_else(|| Problem::field("/match", "must name something"))?;
    if !form.dry_run {
        let detail = json!({ "action": form.action, "match": selection });
        state
            .audit(&may.actor, "messages.bulk", matches.to_string(), detail)
            .await?;
    }
    let matched = ask(|then| state.control.bulk(bulk, matches, form.dry_run, then)).await?;
    Ok(Json(BulkAnswer {
        action: form.action,
        matched,
        dry_run: form.dry_run,
    }))
}
