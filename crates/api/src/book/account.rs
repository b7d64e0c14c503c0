//! What is in force of accounts.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_config::{Account, RawAccount};
use outflow_ports::registry::Document;

use super::{Origin, StartValues};

/// An account in force.
#[derive(Clone, Debug)]
pub struct AccountEntry {
    /// As it was written.
    pub raw: RawAccount,
    /// What it means.
    pub account: Account,
    /// Where it came from.
    pub origin: Origin,
    /// How often it was changed over the API.
    pub version: u64,
}

impl AccountEntry {
    fn of(raw: RawAccount, origin: Origin, version: u64) -> Option<(String, Arc<Self>)> {
        let account = raw.validate().ok()?;
        let id = account.spec.id.as_str().to_owned();
        let entry = Self {
            raw,
            account,
            origin,
            version,
        };
        Some((id, Arc::new(entry)))
    }
}

/// Accounts of the file, under those of the registry. The implicit one only if
/// nobody ever configured any.
pub fn in_force(
    start: &StartValues,
    documents: &[Document],
) -> BTreeMap<String, Arc<AccountEntry>> {
    if start.accounts.is_empty() && documents.is_empty() {
        let implicit = start.implicit.clone();
        let entry = implicit.and_then(|raw| AccountEntry::of(raw, Origin::Implicit, 0));
        return entry.into_iter().collect();
    }
    let from_file = start.accounts.iter().cloned();
    let mut accounts: BTreeMap<String, Arc<AccountEntry>> = from_file
        .filter_map(|raw| AccountEntry::of(raw, Origin::File, 0))
        .collect();
    for document in documents {
        match document.value.as_deref() {
            None => {
                accounts.remove(&document.id);
            }
            Some(value) => accounts.extend(read(value).and_then(|raw| {
                let (_, entry) = AccountEntry::of(raw, Origin::Api, document.version)?;
                Some((document.id.clone(), entry))
            })),
        }
    }
    accounts
}

fn read(value: &str) -> Option<RawAccount> {
    RawAccount::read(&serde_json::from_str(value).ok()?).ok()
}
