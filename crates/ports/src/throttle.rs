//! Who asks before they act: limits for programs that send by themselves.
//!
//! Most answers are there at once, and cost no allocation; only whoever waits
//! gets theirs later. Whoever calls has checked the token; what a tenant may
//! name is checked here, where names are understood.

use outflow_core::class::Class;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::policy::WhenAway;
use outflow_core::throttle::cell::{Answer, Cell};
use outflow_core::throttle::look::Look;
use outflow_core::throttle::{Permit, Ticket, Why};
use outflow_core::time::{NANOS_PER_SECOND, Nanos};

use crate::intake::Then;

/// One limit that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its name.
    pub key: &'a str,
    /// How much is wanted, at least 1.
    pub cost: u32,
    /// Its numbers; those of the policies in force if there are none.
    pub limits: &'a [LimitSpec],
    /// What becomes of it while the ledger of a fleet is away, if it has numbers
    /// of its own.
    pub when_away: WhenAway,
}

/// Limits that are asked for together.
#[derive(Clone, Copy, Debug)]
pub struct Acquire<'a> {
    /// The only tenant for whom the caller speaks.
    pub tenant: Option<&'a str>,
    /// The limits.
    pub limits: &'a [Asked<'a>],
    /// How urgent it is.
    pub class: Class,
    /// How long it may wait.
    pub wait: Nanos,
    /// How long slots are held if nobody gives them back.
    pub ttl: Nanos,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// All limits were taken; what is held, if anything is.
    Granted(Option<Permit>),
    /// None was.
    Refused {
        /// Which of the limits asked for refused, counted from 0.
        by: usize,
        /// Why.
        why: Why,
        /// When it is worth coming back; never if nothing is said.
        retry_after: Option<Nanos>,
    },
}

impl Acquired {
    /// The same in the words of redis-cell, with what was looked at.
    pub fn as_cell(&self, looked: Answer) -> Answer {
        let retry_after = match self {
            Self::Refused {
                retry_after: Some(after),
                ..
            } => i64::try_from(after.0.div_ceil(NANOS_PER_SECOND)).unwrap_or(i64::MAX),
            _ => -1,
        };
        Answer {
            limited: matches!(self, Self::Refused { .. }),
            retry_after,
            ..looked
        }
    }
}

/// Why a request makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThrottleError {
    /// A key without numbers of which no policy speaks.
    #[error(
        "no policy limits {key:?}: write one (PUT /api/v1/policies/{kind}/NAME, or [[policy]] in \
         the settings), or give numbers with the request, as in rate \"10/s\" burst 20",
        kind = key.split(':').next().unwrap_or("isp")
    )]
    UnknownLimit {
        /// The key.
        key: String,
    },
    /// A key that is none.
    #[error("a key is a text of 1 to 256 bytes without control characters")]
    BadKey,
    /// A key of somebody else.
    #[error(
        "this token speaks for tenant {tenant} only: it may use keys with numbers of their own, and limits of tenant:{tenant}"
    )]
    NotYours {
        /// The tenant of the token.
        tenant: String,
    },
    /// A key that policies own, which is not for everybody to pause.
    #[error(
        "a policy limits {key:?}, so a pause of it holds what others send: that needs POST /api/v1/throttle/pause with the scope operator"
    )]
    OfPolicies {
        /// The key.
        key: String,
    },
    /// Nothing, or too much.
    #[error("a request names 1 to 16 limits; a policy with several counts as several")]
    Count,
    /// A cost of nothing.
    #[error("a cost is at least 1")]
    NoCost,
    /// A number that would let nothing through.
    #[error("{0}")]
    BadLimit(String),
    /// There is no room to remember it.
    #[error("too many keys are in use, and none of them is idle: come back later")]
    Crowded,
    /// A tenant has as many keys as one tenant may have.
    #[error(
        "{tenant} has as many keys in use as one tenant may have: use fewer, or come back when \
         some are idle"
    )]
    OwnKeys {
        /// Whose keys.
        tenant: String,
    },
    /// A tenant holds as many permits as one tenant may hold.
    #[error(
        "{tenant} holds as many permits as one tenant may hold: give some back, or come back when \
         their time is over"
    )]
    OwnPermits {
        /// Whose permits.
        tenant: String,
    },
    /// The server ends.
    #[error("the server is shutting down")]
    Closing,
}

/// An answer, now or later.
#[derive(Debug)]
pub enum Reply {
    /// It is there.
    Now(Result<Acquired, ThrottleError>),
    /// It is given to the callback that was asked for; whoever is gone before
    /// cancels.
    Later(Ticket),
}

/// The answer to a call in the words of redis-cell, now or later.
#[derive(Debug)]
pub enum CellReply {
    /// It is there.
    Now(Result<Answer, ThrottleError>),
    /// Whether it is granted is given to the callback that was asked for; the
    /// rest can be looked at then, with a quantity of 0.
    Later(Ticket),
}

/// What is called with an answer that comes later.
pub type ThenAcquired = Then<Result<Acquired, ThrottleError>>;

/// What a tenant has, and how much more it may have now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleUsage {
    /// Keys.
    pub keys: (u64, u64),
    /// Permits that it holds.
    pub permits: (u64, u64),
    /// Requests that wait.
    pub waiters: (u64, u64),
}

/// Who gives a permit back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasedBy<'a> {
    /// Whoever asked for it: this tenant, or somebody who speaks for none.
    Holder(Option<&'a str>),
    /// An operator, whosever it is.
    Operator,
}

/// Limits for others.
pub trait Throttling: Send + Sync {
    /// Answers as redis-cell does. The key is the caller's own.
    fn cell(&self, cell: &Cell<'_>, later: &mut dyn FnMut() -> ThenAcquired) -> CellReply;

    /// Asks for limits. `later` is asked for a callback only if it takes time.
    fn acquire(&self, acquire: &Acquire<'_>, later: &mut dyn FnMut() -> ThenAcquired) -> Reply;

    /// Somebody who waits has gone. Their callback is dropped.
    fn cancel(&self, ticket: Ticket);

    /// Gives slots back; whether they were still held, and may be given back by
    /// this caller.
    fn release(&self, by: ReleasedBy<'_>, permit: Permit) -> bool;

    /// Grants nothing of the caller's own key for so long.
    fn pause(&self, tenant: Option<&str>, key: &str, lasts: Nanos) -> Result<(), ThrottleError>;

    /// What policies call the thing that a key names, if this tenant may name it
    /// and they limit it: `isp:google` for `isp:gmail`.
    fn of_policies(&self, tenant: Option<&str>, key: &str) -> Option<LimitKey>;

    /// Grants nothing of what policies limit under this name for so long.
    fn pause_limit(&self, name: &LimitKey, lasts: Nanos) -> Result<(), ThrottleError>;

    /// Lifts such a pause.
    fn resume_limit(&self, name: &LimitKey);

    /// What a tenant occupies.
    fn usage_of(&self, tenant: &str) -> ThrottleUsage;

    /// How the limits of a request stand now, each with its place in the request.
    fn look(&self, acquire: &Acquire<'_>) -> Vec<(usize, Look)>;
}
