//! What is asked of a throttle, and what it answers.

use std::fmt;
use std::str::FromStr;

use crate::class::Class;
use crate::limit::spec::LimitSpec;
use crate::name::Name;
use crate::policy::facet::Facet;
use crate::policy::key::LimitKey;
use crate::policy::policy::WhenAway;
use crate::policy::scope::Scope;
use crate::time::Nanos;

/// The owner of limits that policies yield. Names of tenants have no control
/// characters, so nobody else is called that.
pub const POLICY_SPACE: &str = "\u{1}";
/// Limits that one request may name.
pub const LIMITS_MAX: usize = 16;
/// The longest name of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;
/// How long a permit is held if nothing is said.
pub const TTL_DEFAULT: Nanos = Nanos::from_secs(60);
/// The longest that a permit is held.
pub const TTL_MAX: Nanos = Nanos::from_secs(3_600);
/// The longest that a request waits.
pub const WAIT_MAX: Nanos = Nanos::from_secs(300);

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// Whose key it is: a tenant's, or nobody's in particular. Two owners may
    /// use one name for two things.
    pub space: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Which of several limits on it is meant.
    pub facet: &'a Facet,
}

impl Key<'_> {
    /// What the whole fleet calls the limit.
    pub fn of_fleet(&self) -> LimitKey {
        let facet = self.facet.clone();
        if self.space == POLICY_SPACE
            && let Ok(key) = self.name.parse::<LimitKey>()
        {
            return LimitKey::new(key.parts().iter().cloned(), facet);
        }
        let tenant = (!self.space.is_empty()).then(|| (Scope::Tenant, Name::from(self.space)));
        let key = (Scope::Key, Name::from(self.name));
        LimitKey::new(tenant.into_iter().chain([key]), facet)
    }
}

/// One limit of a request.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What is limited.
    pub key: Key<'a>,
    /// How. Other numbers than before reconfigure the limit.
    pub spec: &'a LimitSpec,
    /// How much is wanted, at least 1.
    pub cost: u32,
    /// What becomes of it while the ledger of a fleet is away.
    pub when_away: WhenAway,
    /// Of which version of the policies its numbers are.
    pub version: u64,
}

/// Some limits, to be taken together or not at all.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The limits, at most [`LIMITS_MAX`].
    pub wants: &'a [Wanted<'a>],
    /// How urgent it is.
    pub class: Class,
    /// How long it may wait.
    pub wait: Nanos,
    /// How long its slots are held if nobody gives them back.
    pub ttl: Nanos,
    /// Who may give them back.
    pub owner: Owner,
}

/// Whose a permit is. Numbers are given by whoever asks; 0 is nobody in
/// particular.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

impl From<&Self> for Owner {
    fn from(owner: &Self) -> Self {
        *owner
    }
}

/// Slots that are held, to be given back. The generation tells a late release
/// from one of whoever holds the place now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permit {
    /// The place in the slab.
    pub index: u32,
    /// How often that place was used before.
    pub generation: u32,
}

/// Prints what is handed to whoever holds it: `1f-3`.
impl fmt::Display for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.index, self.generation)
    }
}

/// A text that is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a permit is given back exactly as it was given, as in 1f-3")]
pub struct NotAPermit;

impl FromStr for Permit {
    type Err = NotAPermit;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (index, generation) = text.split_once('-').ok_or(NotAPermit)?;
        let read = |digits| u32::from_str_radix(digits, 16).map_err(|_| NotAPermit);
        Ok(Self {
            index: read(index)?,
            generation: read(generation)?,
        })
    }
}

/// What stands for a permit where nothing is held, so that there is always
/// something to give back.
pub const NO_PERMIT: &str = "0";

/// Somebody who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The place in the slab.
    pub index: u32,
    /// How often that place was used before.
    pub generation: u32,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A limit has not enough now.
    Limited,
    /// More than the limit ever has; it does not help to come back.
    TooLarge {
        /// The most that can be taken at once.
        largest: u32,
    },
    /// There are as many keys as are kept, and none of them is idle.
    TooManyKeys,
    /// The owner of the key has as many as one may have.
    TooManyOwnKeys,
    /// As many wait as may.
    TooManyWaiters,
    /// As many of the owner of the request wait as may.
    TooManyOwnWaiters,
    /// The owner of the request holds as many permits as one may hold.
    TooManyOwnPermits,
}

/// A request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which of the limits of the request refused, counted from 0.
    pub by: usize,
    /// Why.
    pub why: Why,
    /// When it is worth coming back; never if nothing is said.
    pub retry_after: Option<Nanos>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All limits were taken; what is held, if anything is.
    Granted(Option<Permit>),
    /// None was.
    Refused(Refusal),
    /// It waits; the answer comes as an [`Outcome`].
    Waiting(Ticket),
}

/// What became of somebody who waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Who.
    pub ticket: Ticket,
    /// Never [`Verdict::Waiting`].
    pub verdict: Verdict,
}
