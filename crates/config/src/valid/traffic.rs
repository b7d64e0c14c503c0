//! Accounts, policies and classes of the file.

use std::collections::BTreeMap;

use outflow_core::class::Class;
use outflow_core::limit::spec::Headroom;
use serde_json::Value;

use super::{StartAccount, StartPolicy};
use crate::account::RawAccount;
use crate::figure;
use crate::policy::RawPolicy;
use crate::problem::Problems;
use crate::raw::RawClasses;
use crate::written::Written;

/// The account that takes everything when none is configured.
pub(super) fn sandbox() -> Option<StartAccount> {
    let raw = RawAccount::default_sandbox();
    let account = raw.validate().ok()?;
    Some(StartAccount { raw, account })
}

pub(super) fn accounts(values: &[Value], problems: &mut Problems) -> Vec<StartAccount> {
    let mut accounts = Vec::new();
    let mut taken = BTreeMap::new();
    for (i, value) in values.iter().enumerate() {
        let at = format!("/account/{i}");
        let read = RawAccount::read(value).and_then(|raw| {
            let account = raw.validate()?;
            Ok(StartAccount { raw, account })
        });
        if value.get("password").is_some() {
            problems.add(
                format!("{at}/password"),
                "a file is no place for a password: use password_env or password_file",
            );
        }
        match read {
            Ok(start) => {
                let id = start.account.spec.id.clone();
                if let Some(first) = taken.insert(id, i) {
                    problems.add(
                        format!("{at}/id"),
                        format!("account number {} has this id already", first + 1),
                    );
                }
                accounts.push(start);
            }
            Err(invalid) => problems.extend(&at, invalid),
        }
    }
    accounts
}

pub(super) fn policies(values: &[Value], problems: &mut Problems) -> Vec<StartPolicy> {
    let mut policies = Vec::new();
    let mut taken = BTreeMap::new();
    for (i, value) in values.iter().enumerate() {
        let at = format!("/policy/{i}");
        let read = RawPolicy::read(value).and_then(|raw| {
            let policy = raw.validate_whole()?;
            Ok(StartPolicy { raw, policy })
        });
        match read {
            Ok(start) => {
                let matches = start.policy.policy.matches.clone();
                if let Some(first) = taken.insert(matches, i) {
                    problems.add(
                        format!("{at}/match"),
                        format!(
                            "policy number {} governs the same: make them one",
                            first + 1
                        ),
                    );
                }
                policies.push(start);
            }
            Err(invalid) => problems.extend(&at, invalid),
        }
    }
    policies
}

pub(super) fn headroom(raw: &RawClasses, problems: &mut Problems) -> Headroom {
    let shares = [&raw.critical, &raw.high, &raw.normal, &raw.low];
    let shares = shares.map(|class| permille(&class.headroom));
    if shares.last().is_some_and(|share| *share > 0) {
        let low = Class::Low;
        problems.add(
            format!("/classes/{low}/headroom"),
            "no class is below low, from which anything could be kept",
        );
    }
    if shares.iter().map(|share| u32::from(*share)).sum::<u32>() >= 1_000 {
        problems.add(
            "/classes",
            "the headrooms together make 100% or more: nothing would be left for low",
        );
    }
    Headroom(shares)
}

/// A share that the table of keys has checked, in thousandths.
pub(super) fn permille(share: &Written) -> u16 {
    u16::try_from(ppm(share) / 1_000).expect("a share is at most a whole")
}

/// In millionths.
pub(super) fn ppm(share: &Written) -> u32 {
    let ppm = match share {
        Written::Number(number) => number.as_f64().and_then(figure::share_of_number),
        Written::Text(text) => figure::share(text),
    };
    ppm.expect("the table of keys checks shares")
}
