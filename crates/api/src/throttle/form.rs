//! What is asked of the throttle, as it is written.

use outflow_config::written::Written;
use outflow_core::class::Class;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::policy::policy::WhenAway;
use outflow_core::throttle::request::{KEY_BYTES_MAX, LIMITS_MAX, TTL_DEFAULT, TTL_MAX, WAIT_MAX};
use outflow_core::time::Nanos;
use outflow_ports::throttle::Asked;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::fields::{AwayWord, ClassWord, RateText, ThrottleKey};
use crate::object::objects;
use crate::problem::{FieldError, Problem};

/// Limits that one key may be given.
const NUMBERS_MAX: usize = LIMITS_MAX;

/// Limits to be taken together, or not at all.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Acquire)]
#[serde(deny_unknown_fields)]
pub struct AcquireForm {
    /// The limits.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1, max_items = 16)]
    pub limits: Vec<LimitForm>,
    /// How urgent it is: `normal` if nothing is said.
    #[schema(value_type = Option<ClassWord>)]
    pub class: Option<String>,
    /// How long to wait for the limits, in milliseconds, within the time that a
    /// request may take.
    #[schema(maximum = 300_000)]
    pub wait_ms: Option<u64>,
    /// How long slots of concurrency limits are held if they are not given back:
    /// a minute if nothing is said.
    #[schema(minimum = 1, maximum = 3_600_000)]
    pub ttl_ms: Option<u64>,
}

/// One limit. Without `rate`, `limits` and `concurrency` it is what the policies
/// in force say of the key.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AcquireLimit)]
#[serde(deny_unknown_fields)]
pub struct LimitForm {
    /// Its name: `isp:google`, or any text if it has numbers of its own.
    #[schema(value_type = ThrottleKey)]
    pub key: String,
    /// How much of it: 1 if nothing is said.
    #[schema(minimum = 1)]
    pub cost: Option<u32>,
    /// `"10/s"`, `"600/min"`, `"40/s spaced"`, or a number a second.
    #[schema(value_type = Option<RateText>)]
    pub rate: Option<Written>,
    /// How much of the rate can be saved up.
    #[schema(minimum = 1)]
    pub burst: Option<u32>,
    /// Several limits on the key, as in `["14/s burst 28", "50k/day"]`.
    #[schema(value_type = Option<Vec<RateText>>, max_items = 16)]
    pub limits: Option<Vec<Written>>,
    /// How many may be held at once.
    #[schema(minimum = 1)]
    pub concurrency: Option<u32>,
    /// What becomes of it while the ledger of a fleet is away: `closed` if
    /// nothing is said.
    #[schema(value_type = Option<AwayWord>)]
    pub when_away: Option<String>,
}

/// A limit that was read.
#[derive(Debug)]
pub struct ReadLimit {
    /// Its name.
    pub key: String,
    cost: u32,
    limits: Vec<LimitSpec>,
    when_away: WhenAway,
}

impl ReadLimit {
    /// As the throttle is asked.
    pub fn asked(&self) -> Asked<'_> {
        Asked {
            key: &self.key,
            cost: self.cost,
            limits: &self.limits,
            when_away: self.when_away,
        }
    }
}

/// A request that was read.
#[derive(Debug)]
pub struct ReadAcquire {
    /// Its limits.
    pub limits: Vec<ReadLimit>,
    /// How urgent it is.
    pub class: Class,
    /// How long it may wait.
    pub wait: Nanos,
    /// How long slots are held.
    pub ttl: Nanos,
}

const fn millis(nanos: Nanos) -> u64 {
    nanos.0 / 1_000_000
}

impl AcquireForm {
    /// Reads it, or says all that is wrong with it.
    pub fn read(self) -> Result<ReadAcquire, Problem> {
        let mut errors = Vec::new();
        if self.limits.is_empty() || self.limits.len() > LIMITS_MAX {
            let detail = format!("name 1 to {LIMITS_MAX} limits");
            errors.push(FieldError::new("/limits", detail));
        }
        let class = self.class.map_or(Ok(Class::Normal), |class| class.parse());
        let class = class.unwrap_or_else(|error: outflow_core::class::UnknownClass| {
            errors.push(FieldError::new("/class", error.to_string()));
            Class::Normal
        });
        let wait = self.wait_ms.unwrap_or(0);
        if wait > millis(WAIT_MAX) {
            let detail = format!("wait at most {} ms", millis(WAIT_MAX));
            errors.push(FieldError::new("/wait_ms", detail));
        }
        let ttl = self.ttl_ms.unwrap_or(millis(TTL_DEFAULT));
        if ttl == 0 || ttl > millis(TTL_MAX) {
            let detail = format!("hold for 1 to {} ms", millis(TTL_MAX));
            errors.push(FieldError::new("/ttl_ms", detail));
        }
        let limits = self.limits.into_iter().take(LIMITS_MAX).enumerate();
        let limits = limits.map(|(i, limit)| limit.read(&format!("/limits/{i}"), &mut errors));
        let limits = limits.collect();
        if !errors.is_empty() {
            return Err(Problem::invalid(errors));
        }
        Ok(ReadAcquire {
            limits,
            class,
            wait: Nanos::from_millis(wait),
            ttl: Nanos::from_millis(ttl),
        })
    }
}

/// Whether a text can be a key; what is wrong with it.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    let fits = (1..=KEY_BYTES_MAX).contains(&key.len());
    match fits && !key.chars().any(char::is_control) {
        true => Ok(()),
        false => Err("a key is a text of 1 to 256 bytes without control characters"),
    }
}

impl LimitForm {
    fn read(self, at: &str, errors: &mut Vec<FieldError>) -> ReadLimit {
        let mut wrong = |field: &str, detail: String| {
            errors.push(FieldError::new(format!("{at}{field}"), detail));
        };
        if let Err(detail) = check_key(&self.key) {
            wrong("/key", detail.to_owned());
        }
        let cost = self.cost.unwrap_or(1);
        if cost == 0 {
            wrong("/cost", "a cost is at least 1".to_owned());
        }
        let mut limits = Vec::new();
        match (&self.rate, self.burst) {
            (Some(rate), burst) => match bucket(&rate.text(), burst) {
                Ok(spec) => limits.push(spec),
                Err(detail) => wrong("/rate", detail),
            },
            (None, Some(_)) => wrong("/burst", "a burst goes with a rate".to_owned()),
            (None, None) => {}
        }
        let further = self.limits.unwrap_or_default();
        if further.len() > NUMBERS_MAX {
            wrong("/limits", format!("at most {NUMBERS_MAX} limits"));
        }
        for (i, text) in further.iter().take(NUMBERS_MAX).enumerate() {
            match LimitSpec::parse(&text.text()) {
                Ok(spec) => limits.push(spec),
                Err(error) => wrong(&format!("/limits/{i}"), error.to_string()),
            }
        }
        match self.concurrency {
            Some(0) => wrong("/concurrency", "at least 1".to_owned()),
            Some(slots) => limits.push(LimitSpec::Concurrency { slots }),
            None => {}
        }
        let when_away = self.when_away.map_or(Ok(WhenAway::Closed), |it| it.parse());
        let when_away =
            when_away.unwrap_or_else(|error: outflow_core::policy::policy::UnknownWhenAway| {
                wrong("/when_away", error.to_string());
                WhenAway::Closed
            });
        ReadLimit {
            key: self.key,
            cost,
            limits,
            when_away,
        }
    }
}

fn bucket(text: &str, burst: Option<u32>) -> Result<LimitSpec, String> {
    match burst {
        Some(0) => Err("a burst is at least 1".to_owned()),
        Some(burst) => match Rate::parse(text) {
            Ok(rate) => Ok(LimitSpec::TokenBucket { rate, burst }),
            Err(error) => Err(error.to_string()),
        },
        None => LimitSpec::parse(text).map_err(|error| error.to_string()),
    }
}
