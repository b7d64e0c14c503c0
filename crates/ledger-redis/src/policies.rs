//! Policies that a fleet shares: published once, heard of by all.

use redis::Value;

use crate::answer::text;
use crate::desk::Desk;
use crate::script::{Call, Script};
use crate::watch::call_raw;

/// The longest policy, as JSON.
const POLICY_MAX: usize = 256 * 1024;
/// The longest name of one.
const ID_MAX: usize = 1_024;

/// Why a policy was not published, or none were read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoliciesError {
    /// Redis cannot be reached.
    #[error("the ledger is away: try again when it is back")]
    Away,
    /// Somebody else changed it.
    #[error("the policy has changed since (it has version {0} now): read it again")]
    Changed(u64),
    /// Too long to be shared.
    #[error("the policy is too long: {ID_MAX} bytes for its name, {POLICY_MAX} for its JSON")]
    TooLong,
    /// Redis said what it should not.
    #[error("the ledger cannot be understood: are the keys of its prefix used by others?")]
    Garbled,
}

/// A policy that a fleet shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPolicy {
    /// Its name: `isp/google`.
    pub id: String,
    /// The fleet's version at which it was published.
    pub version: u64,
    /// What it says; none if it was deleted.
    pub json: Option<String>,
}

pub(crate) async fn publish(
    desk: &Desk,
    id: &str,
    json: Option<&str>,
    expected: Option<u64>,
) -> Result<u64, PoliciesError> {
    let json = json.unwrap_or_default();
    if id.is_empty() || id.len() > ID_MAX || json.len() > POLICY_MAX {
        return Err(PoliciesError::TooLong);
    }
    let (server, phase) = desk.server().ok_or(PoliciesError::Away)?;
    let known = *desk.version().borrow();
    let call = Call {
        script: Script::Publish,
        keys: vec![desk.names.version(), desk.names.policies()],
        args: vec![
            id.to_owned(),
            json.to_owned(),
            desk.names.channel(),
            expected
                .map(|version| version.to_string())
                .unwrap_or_default(),
            known.to_string(),
        ],
    };
    let values = call_raw(desk, &server, &[call]).await;
    let values = values.map_err(|error| {
        desk.failed(phase, &error);
        PoliciesError::Away
    })?;
    let Some(Some(Value::Array(values))) = values.first() else {
        return Err(PoliciesError::Away);
    };
    let version = match values.get(1) {
        Some(Value::Int(version)) => u64::try_from(*version).ok(),
        _ => None,
    };
    let version = version.ok_or(PoliciesError::Garbled)?;
    match text(values.first()).as_deref() {
        Some("published") => {
            desk.learn_version(version);
            Ok(version)
        }
        Some("changed") => Err(PoliciesError::Changed(version)),
        _ => Err(PoliciesError::Garbled),
    }
}

pub(crate) async fn read(desk: &Desk) -> Result<(u64, Vec<SharedPolicy>), PoliciesError> {
    let (server, phase) = desk.server().ok_or(PoliciesError::Away)?;
    let mut version = redis::cmd("GET");
    version.arg(desk.names.version());
    let mut policies = redis::cmd("HGETALL");
    policies.arg(desk.names.policies());
    // In this order: what is published in between is read, and read again.
    let answers = server.send(&[version, policies]).await.map_err(|error| {
        desk.failed(phase, &error);
        PoliciesError::Away
    })?;
    let mut answers = answers.into_iter();
    let version = match answers.next() {
        Some(Ok(Value::Nil)) => 0,
        Some(Ok(value)) => text(Some(&value))
            .and_then(|text| text.parse().ok())
            .ok_or(PoliciesError::Garbled)?,
        _ => return Err(PoliciesError::Away),
    };
    let fields = match answers.next() {
        Some(Ok(Value::Array(fields))) => fields,
        Some(Ok(Value::Map(pairs))) => pairs.into_iter().flat_map(|(id, it)| [id, it]).collect(),
        _ => return Err(PoliciesError::Away),
    };
    let policies = fields.chunks_exact(2).map(|pair| {
        let id = text(pair.first())?;
        let text = text(pair.get(1))?;
        let (version, json) = text.split_once(' ')?;
        let version = version.parse().ok()?;
        let json = (!json.is_empty()).then(|| json.to_owned());
        Some(SharedPolicy { id, version, json })
    });
    let policies: Option<Vec<_>> = policies.collect();
    let mut policies = policies.ok_or(PoliciesError::Garbled)?;
    policies.sort_by(|a, b| a.id.cmp(&b.id));
    Ok((version, policies))
}
