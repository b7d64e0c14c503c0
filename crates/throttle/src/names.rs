//! From what a caller asks to limits.
//!
//! A key with numbers is the caller's own: a tenant's keys are apart from all
//! others. A key without numbers names what policies speak of, and stands for
//! all limits that they put on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::limit::spec::{Headroom, LimitSpec};
use outflow_core::policy::applied::Applied;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::policy::{WhenAway, check_limit};
use outflow_core::policy::scope::Scope;
use outflow_core::policy::set::Policies;
use outflow_core::throttle::Wanted;
use outflow_core::throttle::request::{KEY_BYTES_MAX, Key, LIMITS_MAX, POLICY_SPACE};
use outflow_ports::throttle::{Acquire, Asked, ThrottleError};

/// Names whose limits are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// One limit of a request.
#[derive(Clone, Debug)]
pub struct Named {
    /// Which of the limits asked for it belongs to.
    pub asked: u8,
    space: Arc<str>,
    name: Arc<str>,
    facet: Facet,
    /// Its numbers.
    pub spec: LimitSpec,
    /// How much of it.
    pub cost: u32,
    headroom: Headroom,
    when_away: WhenAway,
    version: u64,
}

impl Named {
    /// Whether a policy yields it.
    pub fn is_of_policies(&self) -> bool {
        &*self.space == POLICY_SPACE
    }

    fn key(&self) -> Key<'_> {
        Key {
            space: &self.space,
            name: &self.name,
            facet: &self.facet,
        }
    }

    /// As the throttle is asked.
    pub fn wanted(&self) -> Wanted<'_> {
        Wanted {
            key: self.key(),
            spec: &self.spec,
            cost: self.cost,
            when_away: self.when_away,
            version: self.version,
        }
    }

    /// As the node is asked.
    pub fn applied(&self) -> Applied {
        Applied {
            key: self.key().of_fleet(),
            spec: self.spec.clone(),
            headroom: self.headroom,
            when_away: self.when_away,
            learning: None,
        }
    }
}

/// The limits that policies put on one thing, and its name as it is counted:
/// `isp:gmail` is `isp:google`.
type Yielded = (Arc<str>, Arc<[Applied]>);

/// What policies say, remembered by key.
#[derive(Debug, Default)]
pub struct Names {
    policies: Policies,
    headroom: Headroom,
    remembered: BTreeMap<Box<str>, Yielded>,
}

impl Names {
    /// No policies yet; limits with numbers of their own keep `headroom`.
    pub fn new(headroom: Headroom) -> Self {
        Self {
            headroom,
            ..Self::default()
        }
    }

    /// Other policies are in force.
    pub fn set_policies(&mut self, policies: Policies) {
        self.policies = policies;
        self.remembered.clear();
    }

    /// The limits that policies put on what `key` names.
    pub fn yielded(&mut self, tenant: Option<&str>, key: &str) -> Result<Yielded, ThrottleError> {
        if tenant.is_none()
            && let Some((name, yielded)) = self.remembered.get(key)
        {
            return Ok((Arc::clone(name), Arc::clone(yielded)));
        }
        let unknown = || ThrottleError::UnknownLimit {
            key: key.to_owned(),
        };
        let parsed = key.parse::<LimitKey>();
        if let Some(tenant) = tenant {
            let own = parsed.as_ref().ok().and_then(|key| key.name(Scope::Tenant));
            if own.is_none_or(|own| own.as_str() != tenant) {
                return Err(ThrottleError::NotYours {
                    tenant: tenant.to_owned(),
                });
            }
        }
        let parsed = parsed.map_err(|_| unknown())?;
        let yielded: Arc<[Applied]> = self.policies.for_key(&parsed).into();
        if yielded.is_empty() {
            return Err(unknown());
        }
        let name = LimitKey::new(parsed.parts().iter().cloned(), Facet::Rate).to_string();
        let name: Arc<str> = name.into();
        if self.remembered.len() >= REMEMBERED_MAX {
            self.remembered.clear();
        }
        let known = (Arc::clone(&name), Arc::clone(&yielded));
        self.remembered.insert(Box::from(key), known);
        Ok((name, yielded))
    }

    /// All limits of a request.
    pub fn named(&mut self, acquire: &Acquire<'_>) -> Result<Vec<Named>, ThrottleError> {
        let mut named = Vec::with_capacity(acquire.limits.len());
        let mut of_policies: Option<Arc<str>> = None;
        for (asked, it) in (0..).zip(acquire.limits) {
            if !it.limits.is_empty() {
                self.add_own(asked, it, acquire.tenant.unwrap_or(""), &mut named);
                continue;
            }
            let (name, yielded) = self.yielded(acquire.tenant, it.key)?;
            let space = of_policies.get_or_insert_with(|| POLICY_SPACE.into());
            named.extend(yielded.iter().map(|applied| Named {
                asked,
                space: Arc::clone(space),
                name: Arc::clone(&name),
                facet: applied.key.facet().clone(),
                spec: applied.spec.clone(),
                cost: it.cost,
                headroom: applied.headroom,
                when_away: applied.when_away,
                version: self.policies.version(),
            }));
        }
        match named.len() {
            1..=LIMITS_MAX => Ok(named),
            _ => Err(ThrottleError::Count),
        }
    }

    fn add_own(&self, asked: u8, it: &Asked<'_>, space: &str, named: &mut Vec<Named>) {
        let (space, name): (Arc<str>, Arc<str>) = (space.into(), it.key.into());
        let mut rates = 0;
        for spec in it.limits {
            let facet = match Facet::of(spec) {
                Facet::Rate => {
                    rates += 1;
                    match rates {
                        1 => Facet::Rate,
                        nth => Facet::FurtherRate(nth),
                    }
                }
                facet => facet,
            };
            let keeps = matches!(
                spec,
                LimitSpec::TokenBucket { .. } | LimitSpec::CalendarWindow { .. }
            );
            named.push(Named {
                asked,
                space: Arc::clone(&space),
                name: Arc::clone(&name),
                facet,
                spec: spec.clone(),
                cost: it.cost,
                headroom: if keeps {
                    self.headroom
                } else {
                    Headroom::default()
                },
                when_away: it.when_away,
                version: 0,
            });
        }
    }
}

/// Whether a text can be a key.
pub fn check_key(key: &str) -> Result<(), ThrottleError> {
    let is_long = key.is_empty() || key.len() > KEY_BYTES_MAX;
    if is_long || key.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(ThrottleError::BadKey);
    }
    Ok(())
}

/// Whether what is asked of one limit makes sense.
pub fn check(asked: &Asked<'_>) -> Result<(), ThrottleError> {
    check_key(asked.key)?;
    if asked.cost == 0 {
        return Err(ThrottleError::NoCost);
    }
    for spec in asked.limits {
        check_limit(spec).map_err(|error| ThrottleError::BadLimit(error.to_string()))?;
    }
    Ok(())
}
