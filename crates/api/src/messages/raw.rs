//! `GET /messages/{id}/raw`: the mail itself, for administrators.

use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use outflow_core::message_id::MessageId;
use outflow_mail::{Can, compose};
use serde_json::Value;

use crate::ask::{ask, on_disk};
use crate::auth::{Administer, May};
use crate::extract::Asked;
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// Show a message as it is sent (RFC 5322), but for its signature.
#[utoipa::path(
    get,
    path = "/messages/{id}/raw",
    tag = "messages",
    params(("id" = String, Path, description = "the id of the message")),
    responses(
        (status = 200, description = "header and body", body = String, content_type = "message/rfc822"),
        (status = 410, description = "the content is no longer kept", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "no mail can be made of it", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn raw(
    may: May<Administer>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<impl IntoResponse, Problem> {
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
        .audit(&may.actor, "message.read", target, Value::Null)
        .await?;
    let parcel = on_disk(move || parcel.read()).await?.map_err(|_| gone())?;
    let opened = parcel.open();
    let (envelope, content) =
        opened.map_err(|_| Problem::new(Code::Internal, "the stored message cannot be read"))?;
    let mail = compose(&envelope, &content, Can { eight_bit: true });
    let mail = mail.map_err(|wrong| Problem::new(Code::Invalid, wrong.to_string()))?;
    Ok(([(CONTENT_TYPE, "message/rfc822")], mail.bytes))
}
