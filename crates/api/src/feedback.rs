//! `POST /feedback/{provider}`: what others tell of messages later.
//!
//! `dsn` and `arf` take a report as it came by mail, `events` what a program
//! passes on. A token that is bound to a tenant speaks of that tenant's messages
//! only.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use outflow_core::message_id::MessageId;
use outflow_ports::hearing::{HearingError, Hearsay, Tale, Told};
use outflow_ports::suppression::DETAIL_BYTES_MAX;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ask::on_disk;
use crate::auth::{Caller, May, Submit};
use crate::bounded;
use crate::extract::{Asked, Media, hold, media_type, read, unsupported};
use crate::fields::{LineText, MailboxText, NameText};
use crate::object::objects;
use crate::problem::{Code, FieldError, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;
use crate::suppressions::view::{canonical, tenant_for};

/// Bytes of one request. A report has its words first and the message that it
/// is about last: more of it is not needed.
const BYTES_MAX: usize = 4 << 20;
/// Events of one request.
const EVENTS_MAX: usize = 10_000;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackType {
    /// It bounced for good: there is no such mailbox.
    Bounce,
    /// Somebody complained.
    Complaint,
    /// It was opened.
    Open,
    /// Something in it was clicked.
    Click,
    /// Its recipient wants no more.
    OptOut,
}

/// Something that happened to a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedbackEvent {
    /// What happened.
    #[serde(rename = "type")]
    #[schema(inline)]
    kind: FeedbackType,
    /// To which message; needed for opens and clicks.
    message_id: Option<String>,
    /// To whom, if the message is not known.
    #[schema(value_type = Option<MailboxText>)]
    recipient: Option<String>,
    /// Whose mail, if the message is not known; the token's tenant, or `default`.
    #[schema(value_type = Option<NameText>)]
    tenant: Option<String>,
    /// When; now unless told.
    at: Option<Stamp>,
    /// What was said.
    #[schema(value_type = Option<LineText>)]
    reason: Option<String>,
}

/// Events, as `events` takes them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedbackEvents {
    /// At most 10,000.
    #[serde(deserialize_with = "objects")]
    events: Vec<FeedbackEvent>,
}

/// What became of what was told.
#[derive(Debug, Serialize, ToSchema)]
pub struct FeedbackAnswer {
    /// So many things were told.
    read: u64,
    /// So many were about messages that are known here.
    matched: u64,
    /// So many recipients were put on the suppression list by it.
    suppressed: u64,
}

impl From<Hearsay> for FeedbackAnswer {
    fn from(heard: Hearsay) -> Self {
        Self {
            read: heard.read,
            matched: heard.matched,
            suppressed: heard.suppressed,
        }
    }
}

impl From<HearingError> for Problem {
    fn from(_: HearingError) -> Self {
        let detail = "what was told could not be looked up or kept now";
        Self::later(Code::Storage, 5, detail)
    }
}

/// Tell what happened to messages later. `dsn` and `arf` take a mail (RFC 5322)
/// as it came; `events` takes `{"events":[...]}`, or the list alone.
#[utoipa::path(
    post,
    path = "/feedback/{provider}",
    tag = "feedback",
    params(("provider" = String, Path, description = "`dsn`, `arf` or `events`")),
    request_body(content((FeedbackEvents = "application/json"), (String = "message/rfc822"))),
    responses((status = 200, description = "it was heard", body = FeedbackAnswer)),
)]
pub async fn tell(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Path(provider)): Asked<Path<String>>,
    request: Request,
) -> Result<Json<FeedbackAnswer>, Problem> {
    let hearing = Arc::clone(&state.hearing);
    let tenant = may.horizon().map(|tenant| tenant.as_str().to_owned());
    match provider.as_str() {
        "dsn" | "arf" => {
            let held = hold(request, &state, BYTES_MAX).await?;
            let heard =
                on_disk(move || hearing.mail(&held.bytes, None, tenant.as_deref())).await??;
            if heard.read == 0 {
                let detail = "the body is no report that can be read: send it as it came by mail";
                return Err(Problem::field("", detail));
            }
            Ok(Json(heard.into()))
        }
        "events" => {
            if media_type(request.headers()) != Some(Media::Json) {
                return Err(unsupported());
            }
            let held = hold(request, &state, BYTES_MAX).await?;
            let tales = tales(&state, &may, &held.bytes)?;
            let heard = on_disk(move || hearing.tales(&tales, tenant.as_deref())).await??;
            Ok(Json(heard.into()))
        }
        _ => Err(Problem::not_found("provider: use dsn, arf or events")),
    }
}

fn tales(state: &ApiState, caller: &Caller, bytes: &[u8]) -> Result<Vec<Tale>, Problem> {
    let is_list = bytes.trim_ascii_start().starts_with(b"[");
    let events = match is_list {
        true => {
            let mut reader = serde_json::Deserializer::from_slice(bytes);
            objects(&mut reader)
                .and_then(|events| reader.end().map(|()| events))
                .map_err(|error| Problem::field("", error.to_string()))?
        }
        false => {
            read::<crate::object::Object<FeedbackEvents>>(bytes, "")?
                .0
                .events
        }
    };
    if events.len() > EVENTS_MAX {
        let detail = format!("has too many events: at most {EVENTS_MAX}");
        return Err(Problem::field("/events", detail));
    }
    let mut wrong = Vec::new();
    let mut tales = Vec::with_capacity(events.len());
    for (at, event) in events.into_iter().enumerate() {
        match tale(state, caller, event) {
            Ok(tale) => tales.push(tale),
            Err((field, detail)) => {
                wrong.push(FieldError::new(format!("/events/{at}/{field}"), detail));
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(tales),
        false => Err(Problem::invalid(wrong)),
    }
}

type Wrong = (&'static str, String);

fn tale(state: &ApiState, caller: &Caller, event: FeedbackEvent) -> Result<Tale, Wrong> {
    let message = event.message_id.as_deref().map(str::parse::<MessageId>);
    let message = message.transpose();
    let message = message.map_err(|wrong| ("message_id", wrong.to_string()))?;
    let recipient = event.recipient.as_deref().map(canonical).transpose();
    let recipient = recipient.map_err(|wrong| ("recipient", wrong))?;
    let is_about_message = matches!(event.kind, FeedbackType::Open | FeedbackType::Click);
    if message.is_none() && (recipient.is_none() || is_about_message) {
        return Err(("message_id", "is required, or recipient".to_owned()));
    }
    let tenant = tenant_for(caller, event.tenant.as_deref());
    let tenant = tenant.map_err(|wrong| ("tenant", wrong))?;
    let reason = event.reason.unwrap_or_default();
    bounded::line(&reason, DETAIL_BYTES_MAX).map_err(|wrong| ("reason", wrong.to_string()))?;
    let now = state.clock.now();
    Ok(Tale {
        told: match event.kind {
            FeedbackType::Bounce => Told::Bounce,
            FeedbackType::Complaint => Told::Complaint,
            FeedbackType::Open => Told::Open,
            FeedbackType::Click => Told::Click,
            FeedbackType::OptOut => Told::OptOut,
        },
        message,
        recipient,
        tenant: tenant.as_str().to_owned(),
        at: event.at.map_or(now, |Stamp(at)| at.min(now)),
        reason,
    })
}
