//! What the header of a message says to us: `X-Outflow-Tenant`, `-Class`,
//! `-Campaign`, `-Pool`, `-Not-Before`, `-Expires-At`, `-Idempotency-Key`.
//!
//! Each goes once. A name that is not known is refused rather than ignored: a
//! misspelt `X-Outflow-Not-Before` must not send a message at once.

use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_core::time::Wall;
use outflow_ports::bounded;
use outflow_ports::draft;

/// How the names of these fields begin.
pub const PREFIX: &str = "X-Outflow-";

/// What a message says about its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Whose it is.
    pub tenant: Option<Name>,
    /// How urgent it is.
    pub class: Option<Class>,
    /// What it belongs to.
    pub campaign: Option<Name>,
    /// Which accounts may send it.
    pub pool: Option<Name>,
    /// Not to be sent before this.
    pub not_before: Option<Wall>,
    /// Of no use from this on.
    pub expires_at: Option<Wall>,
    /// The same key twice is one message.
    pub idempotency_key: Option<String>,
}

/// A field that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{PREFIX}{0} {1}")]
pub struct WrongMark(&'static str, String);

impl Marks {
    /// Reads the fields, by their names behind the prefix in lower case.
    pub fn read(told: &[(String, String)]) -> Result<Self, WrongMark> {
        let mut marks = Self::default();
        for (field, text) in told {
            match field.as_str() {
                "tenant" => once("Tenant", &mut marks.tenant, name(text)),
                "class" => once("Class", &mut marks.class, class(text)),
                "campaign" => once("Campaign", &mut marks.campaign, name(text)),
                "pool" => once("Pool", &mut marks.pool, name(text)),
                "not-before" => once("Not-Before", &mut marks.not_before, time(text)),
                "expires-at" => once("Expires-At", &mut marks.expires_at, time(text)),
                "idempotency-key" => once("Idempotency-Key", &mut marks.idempotency_key, key(text)),
                _ => Err(WrongMark("*", format!("has no field {field:?}: {KNOWN}"))),
            }?;
        }
        Ok(marks)
    }

    /// The times, as they count from `now`.
    pub fn times(&self, now: Wall) -> Result<(Option<Wall>, Wall), WrongMark> {
        let wrong = |field| move |error: draft::TimeError| WrongMark(field, error.to_string());
        let not_before = draft::not_before(self.not_before, now).map_err(wrong("Not-Before"))?;
        let expires_at = draft::expires_at(self.expires_at, not_before, now);
        Ok((not_before, expires_at.map_err(wrong("Expires-At"))?))
    }
}

const KNOWN: &str =
    "there are Tenant, Class, Campaign, Pool, Not-Before, Expires-At and Idempotency-Key";

fn once<T>(
    field: &'static str,
    place: &mut Option<T>,
    read: Result<T, String>,
) -> Result<(), WrongMark> {
    let value = read.map_err(|wrong| WrongMark(field, wrong))?;
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(WrongMark(field, "is there twice".to_owned())),
    }
}

fn name(text: &str) -> Result<Name, String> {
    let fits = bounded::name(text).map_err(|wrong| wrong.to_string());
    fits.map(|()| Name::from(text))
}

fn class(text: &str) -> Result<Class, String> {
    text.parse().map_err(|wrong| format!("says: {wrong}"))
}

fn time(text: &str) -> Result<Wall, String> {
    bounded::time(text).map_err(|wrong| format!("is no time: {wrong}"))
}

fn key(text: &str) -> Result<String, String> {
    let fits = bounded::idempotency_key(text).map_err(|wrong| wrong.to_string());
    fits.map(|()| text.to_owned())
}
