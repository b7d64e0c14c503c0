//! What a request brings, read with bounds, and refused in our words.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use crate::body_memory::Share;
use crate::object::Object;
use crate::problem::{Code, FieldError, Problem};
use crate::state::ApiState;

/// The most bytes of a body that is not a submission.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A part of the address, whose refusal is a [`Problem`].
#[derive(Debug)]
pub struct Asked<E>(pub E);

impl<E> FromRequestParts<ApiState> for Asked<E>
where
    E: FromRequestParts<ApiState>,
    E::Rejection: Into<BadAddress>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let read = E::from_request_parts(parts, state).await;
        read.map(Self).map_err(|refused| {
            let BadAddress(detail) = refused.into();
            Problem::new(Code::InvalidQuery, detail)
        })
    }
}

/// Why a part of the address cannot be read.
#[derive(Debug)]
pub struct BadAddress(String);

impl From<QueryRejection> for BadAddress {
    fn from(refused: QueryRejection) -> Self {
        Self(refused.body_text())
    }
}

impl From<PathRejection> for BadAddress {
    fn from(refused: PathRejection) -> Self {
        Self(refused.body_text())
    }
}

/// A JSON body, which is an object.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<ApiState> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        if media_type(request.headers()) != Some(Media::Json) {
            return Err(unsupported());
        }
        let held = hold(request, state, BODY_BYTES_MAX).await?;
        let Object(read) = read(&held.bytes, "")?;
        Ok(Self(read))
    }
}

/// A JSON object, or the default if there is none, or null.
#[derive(Debug)]
pub struct Perhaps<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<ApiState> for Perhaps<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        let media = media_type(request.headers());
        let held = hold(request, state, BODY_BYTES_MAX).await?;
        match media {
            _ if held.bytes.is_empty() => Ok(Self(T::default())),
            Some(Media::Json) => {
                let read = read::<Option<Object<T>>>(&held.bytes, "")?;
                Ok(Self(read.map(|Object(read)| read).unwrap_or_default()))
            }
            _ => Err(unsupported()),
        }
    }
}

/// The media types that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// One JSON value.
    Json,
    /// One JSON value on each line.
    Lines,
}

/// A body in memory, with its share of the memory set aside for bodies.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub bytes: Bytes,
    /// What it has of that memory.
    pub share: Share,
}

/// What the headers say of the body.
pub fn media_type(headers: &HeaderMap) -> Option<Media> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Some(Media::Json),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some(Media::Lines),
        _ => None,
    }
}

/// A body of another type than is taken.
pub fn unsupported() -> Problem {
    Problem::new(
        Code::UnsupportedMediaType,
        "send Content-Type: application/json",
    )
}

/// Reads a body of at most `max` bytes, as long as there is memory for what
/// comes.
pub async fn hold(request: Request, state: &ApiState, max: usize) -> Result<Held, Problem> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > max) {
        return Err(too_large(max));
    }
    let mut share = state.body_memory.share(request.extensions().get());
    let mut body = Limited::new(request.into_body(), max);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                too_large(max)
            } else {
                Problem::new(Code::InvalidJson, "the body ended early")
            }
        })?;
        if let Some(data) = frame.data_ref() {
            share.grow(data.len())?;
            bytes.extend_from_slice(data);
        }
    }
    Ok(Held {
        bytes: bytes.into(),
        share,
    })
}

fn too_large(max: usize) -> Problem {
    Problem::new(
        Code::TooLarge,
        format!("a body has at most {max} bytes here"),
    )
}

/// Reads JSON. An error names its field, below `base`; finding it takes a
/// second look, which only those pay who err.
pub fn read<T: DeserializeOwned>(bytes: &[u8], base: &str) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| refused(bytes, base, &error, locate::<T>))
}

fn refused(
    bytes: &[u8],
    base: &str,
    error: &serde_json::Error,
    locate: fn(&[u8]) -> Option<Path>,
) -> Problem {
    match error.classify() {
        Category::Data => {
            let path = locate(bytes).map(|path| pointer(&path));
            let pointer = format!("{base}{}", path.unwrap_or_default());
            Problem::invalid(vec![FieldError::new(pointer, without_place(error))])
        }
        _ => Problem::new(Code::InvalidJson, error.to_string()),
    }
}

fn locate<T: DeserializeOwned>(bytes: &[u8]) -> Option<Path> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let error = serde_path_to_error::deserialize::<_, T>(&mut reader).err()?;
    Some(error.path().clone())
}

fn pointer(path: &Path) -> String {
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", escaped(key)),
            Segment::Enum { variant } => format!("/{}", escaped(variant)),
            Segment::Unknown => "/?".to_owned(),
        })
        .collect()
}

/// One step of a JSON pointer.
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The message of an error without "at line 1 column 30".
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}
