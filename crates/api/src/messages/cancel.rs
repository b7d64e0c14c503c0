//! `DELETE /messages/{id}` and `POST /messages/{id}/retry`.

use axum::Json;
use axum::extract::{Path, State};
use outflow_core::message_id::MessageId;
use outflow_ports::control::Touched;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::get::{FoundMessage, find};
use crate::ask::ask;
use crate::auth::{Caller, May, OperateOwn, Submit};
use crate::extract::Asked;
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// What a message is now.
#[derive(Debug, Serialize, ToSchema)]
pub struct TouchedMessage {
    id: String,
    state: &'static str,
}

/// Withdraw a message that has not been sent yet.
#[utoipa::path(
    delete,
    path = "/messages/{id}",
    tag = "messages",
    params(("id" = String, Path, description = "the id of the message")),
    responses(
        (status = 200, description = "it is withdrawn", body = TouchedMessage),
        (status = 409, description = "it is being sent, or done with", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn cancel(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<TouchedMessage>, Problem> {
    let seq = live(&state, &may, &id, "message.cancel").await?.seq();
    let touched = ask(|then| state.control.cancel(seq, then)).await?;
    answer(id, touched, "cancelled")
}

/// Try a deferred message now, not at its time.
#[utoipa::path(
    post,
    path = "/messages/{id}/retry",
    tag = "messages",
    params(("id" = String, Path, description = "the id of the message")),
    responses(
        (status = 200, description = "it is queued", body = TouchedMessage),
        (status = 409, description = "it is being sent, or done with", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn retry(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<TouchedMessage>, Problem> {
    let seq = live(&state, &may, &id, "message.retry").await?.seq();
    let touched = ask(|then| state.control.retry(seq, then)).await?;
    answer(id, touched, "queued")
}

/// A message that can still be touched; that it will be is audited first.
async fn live(
    state: &ApiState,
    caller: &Caller,
    id: &str,
    action: &'static str,
) -> Result<MessageId, Problem> {
    match find(state, caller, id).await? {
        FoundMessage::Live(live) => {
            let actor = &caller.actor;
            state
                .audit(actor, action, id.to_owned(), Value::Null)
                .await?;
            Ok(MessageId::new(live.accepted_at, live.seq))
        }
        FoundMessage::Settled(receipt) => Err(settled(receipt.state.as_str())),
    }
}

fn settled(state: &str) -> Problem {
    Problem::new(Code::AlreadySettled, format!("the message is {state}"))
}

fn answer(
    id: String,
    touched: Touched,
    state: &'static str,
) -> Result<Json<TouchedMessage>, Problem> {
    match touched {
        Touched::Done => Ok(Json(TouchedMessage { id, state })),
        Touched::Sending => Err(Problem::new(
            Code::AlreadySending,
            "the message is being sent: too late",
        )),
        Touched::Unknown => Err(settled("done with")),
    }
}
