//! `GET /messages/{id}/explain`: why it waits, on which limit, until when.

use axum::Json;
use axum::extract::{Path, State};
use outflow_core::message::State as MessageState;
use outflow_ports::query::LiveMessage;
use serde::Serialize;
use utoipa::ToSchema;

use super::get::{FoundMessage, find};
use super::view::{WaitingOn, id_of, waits_until};
use crate::ask::ask;
use crate::auth::{May, Submit};
use crate::extract::Asked;
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Why a message has not been sent yet.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct Explained {
    id: String,
    state: &'static str,
    /// The answer in a sentence.
    summary: String,
    /// Everything that stands before it now.
    waiting_on: Vec<WaitingOn>,
    /// Messages of the same flow before it; an upper bound after cancels.
    ahead_in_flow: u64,
    /// Flows that wait for the same limit before this one, at the worst of them.
    flows_waiting: u64,
    /// It cannot go before this; null if nobody knows, or it does not wait.
    eta: Option<Stamp>,
    /// A waiting message is not sent before this.
    deferred_until: Option<Stamp>,
    /// The same in seconds since the Unix epoch.
    deferred_ts: Option<i64>,
}

/// Explain why a message has not been sent yet, and when it can be.
#[utoipa::path(
    get,
    path = "/messages/{id}/explain",
    tag = "messages",
    params(("id" = String, Path, description = "the id of the message")),
    responses((status = 200, description = "why it waits", body = Explained)),
)]
pub async fn explain(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<Explained>, Problem> {
    let explained = match find(&state, &may, &id).await? {
        FoundMessage::Live(live) => of_live(&state, *live).await?,
        FoundMessage::Settled(receipt) => Explained {
            id,
            state: receipt.state.as_str(),
            summary: format!(
                "It does not wait: it is {} since {}.",
                receipt.state,
                Stamp(receipt.settled_at)
            ),
            ..Explained::default()
        },
    };
    Ok(Json(explained))
}

async fn of_live(state: &ApiState, live: LiveMessage) -> Result<Explained, Problem> {
    let mut answer = Explained {
        id: id_of(live.accepted_at, live.seq),
        state: live.state.as_str(),
        ..Explained::default()
    };
    match live.state {
        MessageState::Sending => "It is being sent right now.".clone_into(&mut answer.summary),
        MessageState::Deferred => {
            answer.eta = live.due_at.map(Stamp);
            answer.deferred_until = answer.eta;
            answer
                .waiting_on
                .push(WaitingOn::plain("due_time", answer.eta));
            answer.summary = match answer.eta {
                Some(until) => format!("It waits for its time: {until}."),
                None => "It waits for its time.".to_owned(),
            };
        }
        _ => queued(state, &live, &mut answer).await?,
    }
    answer.deferred_ts = answer.deferred_until.map(Stamp::unix_seconds);
    Ok(answer)
}

async fn queued(
    state: &ApiState,
    live: &LiveMessage,
    answer: &mut Explained,
) -> Result<(), Problem> {
    let explained = ask(|then| state.query.explain(live.seq, then)).await?;
    let Some((_, explanation)) = explained else {
        "It does not wait any more.".clone_into(&mut answer.summary);
        return Ok(());
    };
    answer.waiting_on = explanation.waiting_on.iter().map(WaitingOn::of).collect();
    answer.ahead_in_flow = explanation.ahead_in_flow;
    answer.flows_waiting = explanation.flows_waiting;
    answer.eta = explanation.earliest.map(Stamp);
    answer.deferred_until = waits_until(&explanation, state.clock.now()).map(Stamp);
    answer.summary = summary(answer);
    Ok(())
}

fn summary(answer: &Explained) -> String {
    let mut reasons: Vec<String> = answer.waiting_on.iter().map(reason).collect();
    if answer.ahead_in_flow > 0 {
        reasons.push(format!("{} messages ahead of it", answer.ahead_in_flow));
    }
    if reasons.is_empty() {
        return "Nothing holds it: it goes next.".to_owned();
    }
    let when = match answer.eta {
        Some(eta) => format!(" It can go at {eta} at the earliest."),
        None => String::new(),
    };
    format!("It waits on {}.{when}", reasons.join(", "))
}

fn reason(waiting: &WaitingOn) -> String {
    let until = match waiting.until {
        Some(until) => format!(" until {until}"),
        None => String::new(),
    };
    match (&waiting.limit, waiting.reason) {
        (Some(limit), _) => format!("the limit {limit}{until}"),
        (None, "no_account") => "an account: its pool has none".to_owned(),
        (None, "no_account_ready") => {
            "an account: all of its pool are busy, blocked or at their limits".to_owned()
        }
        (None, "no_session") => {
            let account = waiting.account.as_deref().unwrap_or_default();
            let detail = waiting.detail.as_deref().unwrap_or_default();
            format!("a session, which account {account} cannot open: {detail}")
        }
        (None, "unresolved") => "an answer to who hosts the domain".to_owned(),
        (None, "paused") => "a pause to be lifted".to_owned(),
        (None, "store_failing") => "the disk, which does not take records".to_owned(),
        (None, "draining") => "a new start: the server is shutting down".to_owned(),
        (None, other) => other.to_owned(),
    }
}
