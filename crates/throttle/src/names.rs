//! From what a caller asks to limits.
//!
//! A key with numbers is the caller's own: a tenant's keys are apart from all
//! others. A key without numbers names what policies speak of, and stands for
//! all limits that they put on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::policy::applied::Applied;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::policy::check_limit;
use outflow_core::policy::scope::Scope;
use outflow_core::policy::set::Policies;
use outflow_core::throttle::request::KEY_BYTES_MAX;
use outflow_ports::throttle::{Asked, ThrottleError};

/// The owner of limits that policies yield. Names of tenants have no control
/// characters, so nobody else is called that.
pub const POLICY_SPACE: &str = "\u{1}";
/// Names whose limits are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// The limits that policies put on one thing.
pub type Yielded = Arc<[Applied]>;

/// What policies say, remembered by key.
#[derive(Debug, Default)]
pub struct Names {
    policies: Policies,
    remembered: BTreeMap<Box<str>, (Arc<str>, Yielded)>,
}

impl Names {
    /// Other policies are in force.
    pub fn set_policies(&mut self, policies: Policies) {
        self.policies = policies;
        self.remembered.clear();
    }

    /// The limits that policies put on what `key` names, and its name as it is
    /// counted: `isp:gmail` is `isp:google`.
    pub fn yielded(
        &mut self,
        tenant: Option<&str>,
        key: &str,
    ) -> Result<(Arc<str>, Yielded), ThrottleError> {
        if tenant.is_none()
            && let Some((name, yielded)) = self.remembered.get(key)
        {
            return Ok((Arc::clone(name), Arc::clone(yielded)));
        }
        let unknown = || ThrottleError::UnknownLimit {
            key: key.to_owned(),
        };
        let parsed: LimitKey = key.parse().map_err(|_| unknown())?;
        if let Some(tenant) = tenant {
            let own = parsed.name(Scope::Tenant);
            if own.is_none_or(|own| own.as_str() != tenant) {
                return Err(ThrottleError::NotYours {
                    tenant: tenant.to_owned(),
                });
            }
        }
        let yielded: Yielded = self.policies.for_key(&parsed).into();
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
