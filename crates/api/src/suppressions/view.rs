//! An entry as it is shown, and how entries are chosen.

use outflow_core::name::Name;
use outflow_core::suppression::Reason;
use outflow_mail::Address;
use outflow_ports::draft::DEFAULT;
use outflow_ports::suppression::{Suppression, SuppressionError, SuppressionFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::bounded;
use crate::fields::{DestinationText, NameText};
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;

/// Why a recipient is not sent to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suppression)]
pub struct SuppressionView {
    tenant: String,
    /// The address, in lower case.
    recipient: String,
    /// `hard_bounce`, `complaint`, `opt_out` or `manual`.
    reason: &'static str,
    /// `active`; or `held`, not in force until somebody has looked.
    state: &'static str,
    since: Stamp,
    /// Where it comes from: `reply`, `dsn`, `arf`, `events`, `api`, `import`.
    source: String,
    /// Who judged, as `isp:google`; empty if nobody knows.
    destination: String,
    /// The message that taught it; empty if none did.
    message_id: String,
    /// What was said.
    detail: String,
}

impl From<Suppression> for SuppressionView {
    fn from(entry: Suppression) -> Self {
        Self {
            tenant: entry.tenant,
            recipient: entry.recipient,
            reason: entry.reason.as_str(),
            state: match entry.is_held {
                true => "held",
                false => "active",
            },
            since: Stamp(entry.since),
            source: entry.source,
            destination: entry.destination,
            message_id: entry.message,
            detail: entry.detail,
        }
    }
}

/// Why a recipient is suppressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuppressionReason {
    /// There is no such mailbox.
    HardBounce,
    /// Somebody complained. Critical and high messages are sent all the same.
    Complaint,
    /// The recipient wants no more.
    OptOut,
    /// Somebody put him on the list.
    Manual,
}

impl From<SuppressionReason> for Reason {
    fn from(reason: SuppressionReason) -> Self {
        match reason {
            SuppressionReason::HardBounce => Self::HardBounce,
            SuppressionReason::Complaint => Self::Complaint,
            SuppressionReason::OptOut => Self::OptOut,
            SuppressionReason::Manual => Self::Manual,
        }
    }
}

/// Whether an entry is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuppressionState {
    /// In force.
    Active,
    /// Not in force until somebody has looked.
    Held,
}

impl SuppressionState {
    /// Whether it is not in force.
    pub fn is_held(self) -> bool {
        self == Self::Held
    }
}

/// Which entries are meant; a field that says nothing matches all.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SuppressionQuery {
    /// Of this tenant.
    #[param(value_type = Option<NameText>)]
    pub tenant: Option<String>,
    /// Of this recipient.
    pub recipient: Option<String>,
    /// For this reason.
    #[param(inline)]
    pub reason: Option<SuppressionReason>,
    /// In this state.
    #[param(inline)]
    pub state: Option<SuppressionState>,
    /// Where this destination judged.
    #[param(value_type = Option<DestinationText>)]
    pub destination: Option<String>,
    /// Not older than this, in RFC 3339.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Older than this, in RFC 3339.
    #[param(format = DateTime)]
    pub until: Option<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most so many; 100 unless told, at most 1,000.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

impl SuppressionQuery {
    /// What is meant, of what exists for this caller.
    pub fn filter(&self, caller: &Caller) -> Result<SuppressionFilter, Problem> {
        let bad = |detail: String| Problem::new(Code::InvalidQuery, detail);
        let time = |name: &str, text: &Option<String>| match text.as_deref().map(Stamp::parse) {
            Some(Err(wrong)) => Err(bad(format!("{name}: {wrong}"))),
            Some(Ok(Stamp(at))) => Ok(Some(at)),
            None => Ok(None),
        };
        let (tenant, destination) = (self.tenant.as_deref(), self.destination.as_deref());
        if let Some((field, wrong)) = wrong_choice(tenant, destination) {
            return Err(bad(format!("{field}: {wrong}")));
        }
        let recipient = self.recipient.as_deref().map(canonical).transpose();
        Ok(SuppressionFilter {
            tenant: caller.tenant_or(self.tenant.clone())?,
            recipient: recipient.map_err(|wrong| bad(format!("recipient: {wrong}")))?,
            reason: self.reason.map(Reason::from),
            is_held: self.state.map(SuppressionState::is_held),
            destination: self.destination.clone(),
            since: time("since", &self.since)?,
            until: time("until", &self.until)?,
            is_learnt: false,
        })
    }
}

/// An address as the list has it; or why it is none.
pub fn canonical(text: &str) -> Result<String, String> {
    let address = Address::parse(text.trim()).map_err(|wrong| wrong.to_string())?;
    Ok(address.as_str().to_ascii_lowercase())
}

/// Why nobody can be chosen by this tenant and this destination: which field is
/// wrong, and how.
pub fn wrong_choice(
    tenant: Option<&str>,
    destination: Option<&str>,
) -> Option<(&'static str, String)> {
    if let Some(Err(wrong)) = tenant.map(bounded::name) {
        return Some(("tenant", wrong.to_string()));
    }
    let is_kind = |kind: &str| ["isp", "carrier", "push", "host", "domain"].contains(&kind);
    let is_sound = |text: &str| {
        text.split_once(':').is_some_and(|(kind, name)| {
            is_kind(kind) && bounded::name(name).is_ok() && !name.contains(char::is_whitespace)
        })
    };
    let detail = "a destination is written KIND:NAME, as in isp:google";
    let wrong = destination.filter(|text| !is_sound(text));
    wrong.map(|_| ("destination", detail.to_owned()))
}

/// The tenant of a new entry: the caller's own, else the one that is named,
/// else the default one.
pub fn tenant_for(caller: &Caller, named: Option<&str>) -> Result<Name, String> {
    if let Some(own) = caller.horizon() {
        return match named {
            Some(named) if named != own.as_str() => {
                Err("the token does not speak for this tenant".to_owned())
            }
            _ => Ok(own.clone()),
        };
    }
    let named = named.unwrap_or(DEFAULT);
    bounded::name(named).map_err(|wrong| wrong.to_string())?;
    Ok(Name::from(named))
}

impl From<SuppressionError> for Problem {
    fn from(error: SuppressionError) -> Self {
        match error {
            SuppressionError::Quota(_) => Self::later(Code::QuotaExhausted, 60, error.to_string()),
            SuppressionError::Full(_) => Self::new(Code::Conflict, error.to_string()),
            // What the database says may hold paths and values: that is for the log.
            SuppressionError::Storage(_) => Self::later(
                Code::Storage,
                5,
                "the suppression list cannot be read or written now",
            ),
        }
    }
}
