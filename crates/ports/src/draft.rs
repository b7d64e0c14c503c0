//! A message for one or several recipients, on its way to become submissions.
//!
//! Every way in ends here, so that a message that came over SMTP meets the same
//! limits, keys and defaults as one that came over the API.

use std::borrow::Cow;
use std::sync::Arc;

use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Channel, Recipient};
use outflow_core::name::Name;
use outflow_core::time::{Nanos, Wall};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::intake::Submission;
use crate::letter::Envelope;

/// Recipients of one message, before it fans out.
pub const RECIPIENTS_MAX: usize = 1_000;
/// The tenant and the pool of a message that names none.
pub const DEFAULT: &str = "default";
/// How far ahead a message can be put off.
const AHEAD_MAX: Nanos = Nanos::from_secs(366 * 86_400);
/// Separates the parts of a stored idempotency key; no part has it.
const BETWEEN: char = '\u{1f}';
/// Fixed, since limits per recipient outlive the process.
const RECIPIENT_SEED: u64 = 0x6f75_7466_6c6f_7731;

/// A message before it fans out.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Whose it is.
    pub tenant: Name,
    /// How urgent it is.
    pub class: Class,
    /// What it belongs to.
    pub campaign: Option<Name>,
    /// Which accounts may send it.
    pub pool: Name,
    /// The domain it is sent from.
    pub sender_domain: Name,
    /// Not to be sent before this.
    pub not_before: Option<Wall>,
    /// Of no use from this on.
    pub expires_at: Wall,
    /// The key of the whole of it, from [`key`].
    pub key: Option<String>,
    /// Whether it was written for several, even if they are one: then each
    /// recipient has a key of his own.
    pub fans_out: bool,
    /// Whether its recipients read what they get, as far as the sender knows.
    pub engaged: Option<bool>,
    /// What each recipient's envelope says, but for the recipient.
    pub envelope: Envelope,
    /// What all of them get.
    pub body: Arc<[u8]>,
}

impl Draft {
    /// One submission for each recipient, given by address and domain. All
    /// share one body.
    pub fn fan_out(self, recipients: impl IntoIterator<Item = To>) -> Vec<Submission> {
        let mut envelope = self.envelope;
        let submission = |(place, to): (usize, To)| {
            let idempotency_key = self.key.as_deref().map(|key| match self.fans_out {
                true => Arc::from(format!("{key}{BETWEEN}r{place}")),
                false => Arc::from(key),
            });
            let recipient = recipient(&to.address);
            envelope.to = to.address;
            Submission {
                key: FlowKey {
                    pool: self.pool.clone(),
                    destination: Destination::unresolved(to.domain),
                    class: self.class,
                    tenant: self.tenant.clone(),
                    campaign: self.campaign.clone(),
                    sender_domain: Some(self.sender_domain.clone()),
                    channel: Channel::Email,
                },
                idempotency_key,
                not_before: self.not_before,
                expires_at: self.expires_at,
                recipient,
                cost: 1,
                engaged: self.engaged,
                envelope: envelope.to_bytes().into(),
                body: Arc::clone(&self.body),
            }
        };
        recipients.into_iter().enumerate().map(submission).collect()
    }
}

/// One recipient of a draft.
#[derive(Clone, Debug)]
pub struct To {
    /// His address.
    pub address: String,
    /// Its domain, in lower case and ASCII.
    pub domain: Name,
}

/// The key under which limits know the recipient with this address. Case does
/// not matter.
pub fn recipient(address: &str) -> Recipient {
    let folded: Cow<'_, str> = match address.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(address.to_ascii_lowercase()),
        false => Cow::Borrowed(address),
    };
    Recipient(xxh3_64_with_seed(folded.as_bytes(), RECIPIENT_SEED))
}

/// An idempotency key as it is stored: tenants do not share keys.
pub fn key(tenant: &Name, key: &str) -> String {
    format!("{tenant}{BETWEEN}{key}")
}

/// The key of one message of several that share `key`.
pub fn key_of_place(tenant: &Name, key: &str, place: usize) -> String {
    format!("{tenant}{BETWEEN}{key}{BETWEEN}{place}")
}

/// Why a message cannot be sent when it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// It would wait for too long.
    #[error("must be within a year")]
    TooFar,
    /// It would be of no use from the start.
    #[error("must be later than now, and than not_before")]
    TooEarly,
}

/// Checks the time before which a message is not to be sent. One that has
/// passed says nothing.
pub fn not_before(at: Option<Wall>, now: Wall) -> Result<Option<Wall>, TimeError> {
    match at {
        Some(at) if at.since(now) > AHEAD_MAX => Err(TimeError::TooFar),
        at => Ok(at.filter(|at| *at > now)),
    }
}

/// Checks the time from which on a message is of no use.
pub fn expires_at(
    at: Option<Wall>,
    not_before: Option<Wall>,
    now: Wall,
) -> Result<Wall, TimeError> {
    match at {
        Some(at) if at <= not_before.unwrap_or(now).max(now) => Err(TimeError::TooEarly),
        at => Ok(at.unwrap_or(Wall::NEVER)),
    }
}
