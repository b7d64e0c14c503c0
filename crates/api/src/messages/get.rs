//! `GET /messages/{id}`: one message, live or done with.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use outflow_core::message::State as MessageState;
use outflow_core::message_id::MessageId;
use outflow_ports::query::LiveMessage;
use outflow_ports::receipts::Receipt;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::{EventView, MessageView, WaitingOn, waits_until};
use crate::ask::{ask, on_disk};
use crate::auth::{Caller, May, Submit};
use crate::extract::Asked;
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// A message with all that is known of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageDetail {
    #[serde(flatten)]
    message: MessageView,
    /// What stands before it, if it waits.
    waiting_on: Vec<WaitingOn>,
    /// It cannot go before this; null if nobody knows, or it does not wait.
    eta: Option<Stamp>,
    /// What happened to it, oldest first.
    events: Vec<EventView>,
}

/// Where a message was found.
#[derive(Debug)]
pub enum FoundMessage {
    /// It is not done with, or is a dead letter.
    Live(Box<LiveMessage>),
    /// It is done with.
    Settled(Box<Receipt>),
}

/// The message of this id, if it exists for this caller.
pub async fn find(state: &ApiState, caller: &Caller, id: &str) -> Result<FoundMessage, Problem> {
    let none = || Problem::not_found("message");
    let id: MessageId = id.parse().map_err(|_| none())?;
    let seq = id.seq();
    let live = ask(|then| state.query.message(seq, then)).await?;
    let live = match live {
        Some(live) if MessageId::new(live.accepted_at, seq) != id => return Err(none()),
        Some(live) if !caller.sees(&live.key.tenant) => return Err(none()),
        live => live.map(|live| FoundMessage::Live(Box::new(live))),
    };
    if let Some(FoundMessage::Live(message)) = &live
        && message.state != MessageState::Dead
    {
        return live.ok_or_else(none);
    }
    let receipts = Arc::clone(&state.receipts);
    let receipt = on_disk(move || receipts.get(seq)).await??;
    receipt
        .filter(|receipt| MessageId::new(receipt.accepted_at, seq) == id)
        .filter(|receipt| caller.sees(&receipt.key.tenant))
        .map(|receipt| FoundMessage::Settled(Box::new(receipt)))
        // A dead letter of which no receipt is kept.
        .or(live)
        .ok_or_else(none)
}

/// Show a message: its state, what it waits on, what happened to it.
#[utoipa::path(
    get,
    path = "/messages/{id}",
    tag = "messages",
    params(("id" = String, Path, description = "the id of the message")),
    responses((status = 200, description = "the message", body = MessageDetail)),
)]
pub async fn get(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<MessageDetail>, Problem> {
    let detail = match find(&state, &may, &id).await? {
        FoundMessage::Live(live) => of_live(&state, *live).await?,
        FoundMessage::Settled(receipt) => of_receipt(*receipt),
    };
    Ok(Json(detail))
}

async fn of_live(state: &ApiState, live: LiveMessage) -> Result<MessageDetail, Problem> {
    let seq = live.seq;
    let mut view = MessageView::of_live(&live);
    let mut waiting_on = Vec::new();
    let mut eta = None;
    match live.state {
        MessageState::Deferred => {
            waiting_on.push(WaitingOn::plain("due_time", live.due_at.map(Stamp)));
            eta = live.due_at.map(Stamp);
        }
        MessageState::Queued => {
            let explained = ask(|then| state.query.explain(seq, then)).await?;
            if let Some((_, explanation)) = explained {
                view.defer(waits_until(&explanation, state.clock.now()));
                eta = explanation.earliest.map(Stamp);
                waiting_on.extend(explanation.waiting_on.iter().map(WaitingOn::of));
            }
        }
        _ => {}
    }
    let receipts = Arc::clone(&state.receipts);
    let (envelope, events) = on_disk(move || {
        let envelope = live.parcel.and_then(|parcel| parcel.read_envelope().ok());
        receipts.events(seq).map(|events| (envelope, events))
    })
    .await??;
    if let Some(envelope) = envelope {
        view.address(&envelope);
    }
    view.happened(&events);
    Ok(MessageDetail {
        message: view,
        waiting_on,
        eta,
        events: events.into_iter().map(EventView::of).collect(),
    })
}

fn of_receipt(mut receipt: Receipt) -> MessageDetail {
    let events = std::mem::take(&mut receipt.events);
    MessageDetail {
        message: MessageView::of_receipt(receipt),
        waiting_on: Vec::new(),
        eta: None,
        events: events.into_iter().map(EventView::of).collect(),
    }
}
