//! `POST /messages`: one message, a batch, or a line each.
//!
//! The answer comes when the messages are durable. A request is parsed once and
//! handed over as one batch; bodies are shared by all recipients of a message.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outflow_core::message::State as MessageState;
use outflow_core::message_id::MessageId;
use outflow_ports::intake::{Given, Taken};
use outflow_ports::letter::Envelope;
use serde::Serialize;
use utoipa::ToSchema;

use super::form::SubmitForm;
use super::plan::{Origin, Plan, Planner};
use crate::ask::{ask, on_disk};
use crate::auth::{Caller, May, Submit};
use crate::body_memory::charged;
use crate::bounded;
use crate::extract::{Held, Media, hold, media_type, unsupported};
use crate::fields::KeyText;
use crate::problem::{Code, FieldError, Problem, ProblemBody};
use crate::state::ApiState;

/// Requests larger than this are planned away from the executor, so that others
/// need not wait for them.
const LARGE_BYTES: usize = 256 << 10;
/// What the answer to a batch says of one message, at most about.
const ANSWER_BYTES: usize = 512;

/// A message that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub struct Accepted {
    /// Its id.
    id: String,
    /// `queued`, or what has become of it if its idempotency key was known.
    state: &'static str,
}

/// What became of each message of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    accepted: Vec<AcceptedOne>,
    rejected: Vec<RejectedOne>,
}

/// A message of a batch that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub struct AcceptedOne {
    /// Which message of the request.
    index: usize,
    /// Its id.
    id: String,
    /// Its recipient, if the message had several.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

/// A message of a batch that was not accepted.
#[derive(Debug, Serialize, ToSchema)]
pub struct RejectedOne {
    /// Which message of the request.
    index: usize,
    /// Why.
    error: ProblemBody,
}

/// One message, or what became of several.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SubmitAnswer {
    /// One message for one recipient.
    One(Accepted),
    /// Several messages or recipients.
    Several(BatchAnswer),
}

/// Submit messages. The answer comes when they are on the disk. Repeating a
/// request with the same idempotency key does not send anything twice.
#[utoipa::path(
    post,
    path = "/messages",
    tag = "messages",
    params(("Idempotency-Key" = Option<KeyText>, Header, description = "covers the whole request")),
    request_body(content((SubmitForm = "application/json"), (String = "application/x-ndjson"))),
    responses(
        (status = 202, description = "accepted and durable", body = SubmitAnswer),
        (status = 400, description = "not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "the idempotency key was used for other content", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "too large", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "neither JSON nor NDJSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "no message can be accepted", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "too many different values are queued at once", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn submit(
    may: May<Submit>,
    State(state): State<ApiState>,
    request: Request,
) -> Result<Response, Problem> {
    let media = media_type(request.headers()).ok_or_else(unsupported)?;
    let key = request_key(request.headers())?;
    let max = state.bounds.request_bytes_max;
    let Held { bytes, mut share } = hold(request, &state, max).await?;
    let plan = if bytes.len() > LARGE_BYTES {
        let (state, caller) = (state.clone(), (*may).clone());
        on_disk(move || plan(&state, &caller, key.as_deref(), &bytes, media)).await??
    } else {
        plan(&state, &may, key.as_deref(), &bytes, media)?
    };
    let Plan {
        submissions,
        origins,
        rejected,
        is_batch,
        list_at,
    } = plan;
    if submissions.is_empty() {
        return Err(all_rejected(rejected));
    }
    // Before anything is accepted: there must be room to say so.
    if is_batch {
        share.grow((submissions.len() + rejected.len()) * ANSWER_BYTES)?;
    }
    let taken = ask(|then| state.intake.submit(submissions, then)).await??;
    match is_batch {
        false => one(&state, &origins, &taken).await,
        true => {
            let answer = several(&state, origins, list_at, &taken, rejected).await?;
            let json = serde_json::to_vec(&answer);
            let json = json.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
            let kind = [(header::CONTENT_TYPE, "application/json")];
            Ok((StatusCode::ACCEPTED, kind, charged(json, share)).into_response())
        }
    }
}

fn plan(
    state: &ApiState,
    caller: &Caller,
    request_key: Option<&str>,
    bytes: &[u8],
    media: Media,
) -> Result<Plan, Problem> {
    let planner = Planner {
        caller,
        now: state.clock.now(),
        naming: &state.naming,
        request_key,
        message_bytes_max: state.bounds.message_bytes_max,
    };
    planner.plan(bytes, media)
}

fn request_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default();
    bounded::idempotency_key(key).map_err(|wrong| {
        let detail = format!("the Idempotency-Key header {wrong}");
        Problem::new(Code::InvalidQuery, detail)
    })?;
    Ok(Some(key.to_owned()))
}

/// Nothing of a batch can be accepted: all errors, message by message.
fn all_rejected(rejected: Vec<(usize, Problem)>) -> Problem {
    let mut errors: Vec<FieldError> = Vec::new();
    let (mut first, mut unlisted) = (None, 0);
    for (_, problem) in rejected {
        unlisted += usize::from(problem.errors().is_empty());
        errors.extend(problem.errors().iter().cloned());
        first.get_or_insert(problem);
    }
    let count = errors.len() + unlisted;
    match first {
        Some(problem) if errors.is_empty() => problem,
        _ => Problem::invalid_of(errors, count),
    }
}

async fn one(state: &ApiState, origins: &[Origin], taken: &[Taken]) -> Result<Response, Problem> {
    let (Some(origin), Some(taken)) = (origins.first(), taken.first()) else {
        return Err(Problem::new(Code::Internal, "the store lost count"));
    };
    let given = match taken {
        Ok(given) => given,
        Err(why) => return Err(Problem::too_many_flows("", *why)),
    };
    let now = match given.known {
        true => repeated(state, origin, given).await?,
        false => MessageState::Queued,
    };
    let accepted = Accepted {
        id: id_of(given),
        state: now.as_str(),
    };
    Ok((StatusCode::ACCEPTED, Json(SubmitAnswer::One(accepted))).into_response())
}

async fn several(
    state: &ApiState,
    origins: Vec<Origin>,
    list_at: Option<&str>,
    taken: &[Taken],
    rejected: Vec<(usize, Problem)>,
) -> Result<SubmitAnswer, Problem> {
    let mut accepted = Vec::with_capacity(origins.len());
    let mut rejected: Vec<RejectedOne> = rejected
        .into_iter()
        .map(|(index, problem)| refused(index, problem))
        .collect();
    let mut first = None;
    for (origin, taken) in origins.into_iter().zip(taken) {
        let given = match taken_one(state, &origin, list_at, taken).await {
            Ok(given) => given,
            Err(problem) => {
                first.get_or_insert_with(|| problem.clone());
                rejected.push(refused(origin.index, problem));
                continue;
            }
        };
        accepted.push(AcceptedOne {
            index: origin.index,
            id: id_of(given),
            to: origin.to,
        });
    }
    match first {
        Some(problem) if accepted.is_empty() => Err(problem),
        _ => {
            rejected.sort_by_key(|one| one.index);
            Ok(SubmitAnswer::Several(BatchAnswer { accepted, rejected }))
        }
    }
}

/// A message of a batch, if it was taken and is what its key stood for before.
async fn taken_one<'t>(
    state: &ApiState,
    origin: &Origin,
    list_at: Option<&str>,
    taken: &'t Taken,
) -> Result<&'t Given, Problem> {
    match taken {
        Ok(given) => {
            if given.known {
                repeated(state, origin, given).await?;
            }
            Ok(given)
        }
        Err(why) => {
            let base = list_at.map(|list| format!("{list}/{}", origin.index));
            Err(Problem::too_many_flows(&base.unwrap_or_default(), *why))
        }
    }
}

fn refused(index: usize, problem: Problem) -> RejectedOne {
    RejectedOne {
        index,
        error: problem.body(),
    }
}

fn id_of(given: &Given) -> String {
    MessageId::new(given.accepted_at, given.seq).to_string()
}

/// The state of a message whose idempotency key was known, if it had the same
/// content. What is no longer kept cannot be compared, and counts as the same.
async fn repeated(
    state: &ApiState,
    origin: &Origin,
    given: &Given,
) -> Result<MessageState, Problem> {
    let seq = given.seq;
    let live = ask(|then| state.query.message(seq, then)).await?;
    let receipts = Arc::clone(&state.receipts);
    let (now, envelope) = on_disk(move || match live {
        Some(live) => {
            let envelope = live.parcel.and_then(|parcel| parcel.read_envelope().ok());
            Ok::<_, Problem>((live.state, envelope.map(|bytes| bytes.to_vec())))
        }
        None => match receipts.get(seq)? {
            Some(receipt) => Ok((receipt.state, Some(receipt.envelope))),
            None => Ok((MessageState::Queued, None)),
        },
    })
    .await??;
    let before = envelope.and_then(|bytes| Envelope::from_bytes(&bytes).ok());
    match before {
        Some(before) if before.digest != origin.digest => Err(Problem::new(
            Code::IdempotencyConflict,
            format!("message {} has this key and other content", id_of(given)),
        )),
        _ => Ok(now),
    }
}
