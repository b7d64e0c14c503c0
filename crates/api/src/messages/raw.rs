//! `GET /messages/{id}/raw`: the content, for administrators.

use axum::Json;
use axum::extract::{Path, State};
use outflow_core::message_id::MessageId;
use serde_json::Value;

use crate::ask::{ask, on_disk};
use crate::auth::{Administer, May};
use crate::extract::Asked;
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// Show the content of a message as it is stored: envelope and body.
#[utoipa::path(
    get,
    path = "/messages/{id}/raw",
    tag = "messages",
    params(("id" = String, Path, description = "the id of the message")),
    responses(
        (status = 200, description = "envelope and content", body = serde_json::Value),
        (status = 410, description = "the content is no longer kept", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn raw(
    may: May<Administer>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<Value>, Problem> {
    let none = || Problem::not_found("message");
    let id: MessageId = id.parse().map_err(|_| none())?;
    let gone = || Problem::new(Code::BodyGone, "the content of this message was freed");
    let live = ask(|then| state.query.message(id.seq(), then)).await?;
    let Some(live) = live.filter(|live| MessageId::new(live.accepted_at, live.seq) == id) else {
        super::get::find(&state, &may, &id.to_string()).await?;
        return Err(gone());
    };
    let parcel = live.parcel.ok_or_else(gone)?;
    let target = id.to_string();
    state
        .audit(&may.name, "message.read", target, Value::Null)
        .await?;
    let parcel = on_disk(move || parcel.read()).await?.map_err(|_| gone())?;
    let opened = parcel.open();
    let (envelope, content) =
        opened.map_err(|_| Problem::new(Code::Internal, "the stored message cannot be read"))?;
    Ok(Json(serde_json::json!({
        "envelope": envelope,
        "content": content,
    })))
}
