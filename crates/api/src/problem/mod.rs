//! What a refused request is answered with: `application/problem+json`
//! (RFC 9457), with a code that stays and a page that explains it.
//!
//! Nothing here carries a secret: details are written by us, or quote names
//! that the caller sent.

pub mod codes;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outflow_core::engine::admission::TooManyFlows;
use outflow_ports::history::HistoryError;
use outflow_ports::intake::Refused;
use outflow_ports::receipts::ReceiptsError;
use outflow_ports::registry::RegistryError;
use serde::Serialize;
use utoipa::ToSchema;

pub use codes::Code;

/// Where a code is explained.
const PAGES: &str = "/docs/errors/";
/// The most field errors that one answer lists, also of a batch.
pub const ERRORS_MAX: usize = 100;
/// When a message for which there was no room may be sent again: flows go as
/// their messages do.
const ROOM_AFTER_S: u32 = 5;
/// The longest detail that is sent back, in bytes.
const DETAIL_BYTES_MAX: usize = 1_000;
/// The same for each message of a batch beyond those that are told in full.
const TERSE_BYTES_MAX: usize = 120;
/// The longest pointer that is sent back, in bytes: names in it are the
/// caller's.
const POINTER_BYTES_MAX: usize = 500;

fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        let end = (0..=max).rfind(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.shrink_to_fit();
    }
    text
}

/// One field that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// Where it is, as a JSON pointer.
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

impl FieldError {
    /// Something wrong at `pointer`.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            pointer: cut(pointer.into(), POINTER_BYTES_MAX),
            detail: cut(detail.into(), DETAIL_BYTES_MAX),
        }
    }
}

/// Why a request, or one message of a batch, was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    retry_after_s: Option<u32>,
}

/// A problem as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// The page that explains the code.
    #[serde(rename = "type")]
    pub page: String,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request.
    pub detail: String,
    /// The word that programs rely on.
    pub code: &'static str,
    /// The fields at fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: cut(detail.into(), DETAIL_BYTES_MAX),
            errors: Vec::new(),
            retry_after_s: None,
        }
    }

    /// Fields that cannot be accepted; the first of them is the detail.
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let count = errors.len();
        Self::invalid_of(errors, count)
    }

    /// The first of `count` fields that cannot be accepted.
    pub fn invalid_of(mut errors: Vec<FieldError>, count: usize) -> Self {
        let detail = match (errors.first(), count) {
            (Some(first), 0 | 1) => format!("{}: {}", first.pointer, first.detail),
            (Some(first), count) => {
                let (pointer, detail, more) = (&first.pointer, &first.detail, count - 1);
                format!("{pointer}: {detail} (and {more} more)")
            }
            (None, _) => Code::Invalid.entry().title.to_owned(),
        };
        errors.truncate(ERRORS_MAX);
        Self {
            errors,
            ..Self::new(Code::Invalid, detail)
        }
    }

    /// One field that cannot be accepted.
    pub fn field(pointer: &str, detail: impl Into<String>) -> Self {
        Self::invalid(vec![FieldError::new(pointer, detail)])
    }

    /// Nothing of this name, or not for this caller.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {what}"))
    }

    /// A token that may not do this.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, detail)
    }

    /// Something to be tried again after so many seconds.
    pub fn later(code: Code, seconds: u32, detail: impl Into<String>) -> Self {
        Self {
            retry_after_s: Some(seconds),
            ..Self::new(code, detail)
        }
    }

    /// A message, found at `base`, that would open another flow.
    pub fn too_many_flows(base: &str, why: TooManyFlows) -> Self {
        let detail = why.to_string();
        let pointer = format!("{base}/{}", why.field.as_str());
        let values = why.field.values();
        let error = FieldError::new(pointer, format!("too many different {values}"));
        Self {
            errors: vec![error],
            ..Self::later(Code::TooManyFlows, ROOM_AFTER_S, detail)
        }
    }

    /// What a batch says of one message, if it may list so many field errors
    /// still: the answer must not be many times as large as the request.
    #[must_use]
    pub fn within(mut self, left: &mut usize) -> Self {
        if *left == 0 {
            self.errors = Vec::new();
            self.detail = cut(self.detail, TERSE_BYTES_MAX);
        }
        self.errors.truncate((*left).max(1));
        *left = left.saturating_sub(self.errors.len().max(1));
        self
    }

    /// What kind of problem it is.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The fields at fault.
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }

    /// As it is sent.
    pub fn body(self) -> ProblemBody {
        let entry = self.code.entry();
        ProblemBody {
            page: format!("{PAGES}{}", entry.code),
            title: entry.title,
            status: entry.status,
            detail: self.detail,
            code: entry.code,
            errors: self.errors,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let retry_after_s = self.retry_after_s;
        let is_challenge = self.code == Code::Unauthorized;
        let body = self.body();
        let status = StatusCode::from_u16(body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if is_challenge {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"outflow\""),
            );
        }
        response
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let (code, seconds) = match refused {
            Refused::Busy => (Code::Busy, 1),
            Refused::Closing => (Code::Closing, 5),
            Refused::NotStored => (Code::NotStored, 5),
        };
        Self::later(code, seconds, refused.to_string())
    }
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Conflict { .. } => Self::new(Code::Conflict, error.to_string()),
            // What the database says may hold paths and values: that is for the log.
            RegistryError::Storage(_) => Self::later(
                Code::Storage,
                5,
                "the registry cannot be read or written now",
            ),
        }
    }
}

impl From<ReceiptsError> for Problem {
    fn from(_: ReceiptsError) -> Self {
        Self::later(Code::Storage, 5, "receipts cannot be read now")
    }
}

impl From<HistoryError> for Problem {
    fn from(_: HistoryError) -> Self {
        Self::later(Code::Storage, 5, "the history cannot be read now")
    }
}
