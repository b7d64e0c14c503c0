//! What would be on a disk: a registry and receipts, in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use outflow_core::message::Seq;
use outflow_core::time::Wall;
use outflow_ports::receipts::{
    CauseCount, Happening, Receipt, ReceiptFilter, Receipts, ReceiptsError,
};
use outflow_ports::registry::{Audit, AuditEntry, Change, Document, Kind, Registry, RegistryError};

/// A registry.
#[derive(Default)]
pub struct Shelf {
    documents: Mutex<BTreeMap<(Kind, String), Document>>,
    audit: Mutex<Vec<AuditEntry>>,
    /// The next writes of these fail, each once.
    pub broken: Mutex<Vec<Kind>>,
}

impl Shelf {
    fn log(&self, audit: &Audit<'_>) {
        let mut entries = self.audit.lock().unwrap();
        let no = entries.len() as u64 + 1;
        entries.push(AuditEntry {
            no,
            at: audit.at,
            actor: audit.actor.to_owned(),
            action: audit.action.to_owned(),
            target: audit.target.to_owned(),
            detail: audit.detail.to_owned(),
        });
    }

    pub fn actions(&self) -> Vec<String> {
        let entries = self.audit.lock().unwrap();
        entries.iter().map(|entry| entry.action.clone()).collect()
    }
}

impl Registry for Shelf {
    fn list(&self, kind: Kind) -> Result<Vec<Document>, RegistryError> {
        let documents = self.documents.lock().unwrap();
        let found = documents.values().filter(|document| document.kind == kind);
        Ok(found.cloned().collect())
    }

    fn get(&self, kind: Kind, id: &str) -> Result<Option<Document>, RegistryError> {
        let documents = self.documents.lock().unwrap();
        Ok(documents.get(&(kind, id.to_owned())).cloned())
    }

    fn change(&self, change: Change<'_>, audit: Audit<'_>) -> Result<u64, RegistryError> {
        let version = self.keep(change, audit.at)?;
        self.log(&audit);
        Ok(version)
    }

    fn keep(&self, change: Change<'_>, at: Wall) -> Result<u64, RegistryError> {
        let mut broken = self.broken.lock().unwrap();
        if let Some(place) = broken.iter().position(|kind| *kind == change.kind) {
            broken.remove(place);
            return Err(RegistryError::Storage("no space left".to_owned()));
        }
        drop(broken);
        let mut documents = self.documents.lock().unwrap();
        let place = (change.kind, change.id.to_owned());
        let version = documents.get(&place).map_or(0, |document| document.version);
        if change.expected.is_some_and(|expected| expected != version) {
            return Err(RegistryError::Conflict {
                kind: change.kind.as_str(),
                id: change.id.to_owned(),
                version,
            });
        }
        let document = Document {
            kind: change.kind,
            id: change.id.to_owned(),
            value: change.value.map(str::to_owned),
            version: version + 1,
            changed_at: at,
        };
        documents.insert(place, document);
        Ok(version + 1)
    }

    fn audit(&self, audit: Audit<'_>) -> Result<(), RegistryError> {
        self.log(&audit);
        Ok(())
    }

    fn audit_entries(
        &self,
        times: std::ops::Range<Wall>,
        before: Option<u64>,
        max: usize,
    ) -> Result<Vec<AuditEntry>, RegistryError> {
        let entries = self.audit.lock().unwrap();
        let found = entries.iter().rev();
        let found = found
            .filter(|entry| times.contains(&entry.at) && before.is_none_or(|it| entry.no < it));
        Ok(found.take(max).cloned().collect())
    }
}

/// Receipts.
#[derive(Default)]
pub struct Papers {
    pub receipts: Mutex<BTreeMap<Seq, Receipt>>,
    pub events: Mutex<BTreeMap<Seq, Vec<Happening>>>,
}

fn is_meant(filter: &ReceiptFilter, receipt: &Receipt) -> bool {
    let key = &receipt.key;
    let same = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|want| want == is);
    let campaign = key.campaign.as_ref().map_or("", |name| name.as_str());
    (filter.states.is_empty() || filter.states.contains(&receipt.state))
        && same(&filter.tenant, key.tenant.as_str())
        && same(&filter.campaign, campaign)
        && same(&filter.class, key.class.as_str())
        && same(&filter.destination, &key.destination.to_string())
        && same(&filter.pool, key.pool.as_str())
        && filter
            .settled_since
            .is_none_or(|since| receipt.settled_at >= since)
        && filter
            .settled_before
            .is_none_or(|before| receipt.settled_at < before)
}

impl Receipts for Papers {
    fn get(&self, seq: Seq) -> Result<Option<Receipt>, ReceiptsError> {
        Ok(self.receipts.lock().unwrap().get(&seq).cloned())
    }

    fn list(
        &self,
        filter: &ReceiptFilter,
        before: Option<Seq>,
        max: usize,
    ) -> Result<Vec<Receipt>, ReceiptsError> {
        let receipts = self.receipts.lock().unwrap();
        let found = receipts.values().rev();
        let found = found
            .filter(|receipt| before.is_none_or(|before| receipt.seq < before))
            .filter(|receipt| is_meant(filter, receipt));
        Ok(found.take(max).cloned().collect())
    }

    fn events(&self, seq: Seq) -> Result<Vec<Happening>, ReceiptsError> {
        let events = self.events.lock().unwrap();
        Ok(events.get(&seq).cloned().unwrap_or_default())
    }

    fn count(&self, filter: &ReceiptFilter) -> Result<u64, ReceiptsError> {
        Ok(self.list(filter, None, usize::MAX)?.len() as u64)
    }

    fn causes(&self, filter: &ReceiptFilter) -> Result<Vec<CauseCount>, ReceiptsError> {
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for receipt in self.list(filter, None, usize::MAX)? {
            let cause = receipt.cause.map_or("", |cause| cause.as_str()).to_owned();
            let destination = receipt.key.destination.to_string();
            *counts.entry((cause, destination)).or_default() += 1;
        }
        let counts = counts.into_iter();
        let counts = counts.map(|((cause, destination), count)| CauseCount {
            cause,
            error_class: "rate".to_owned(),
            code: Some(421),
            destination,
            count,
        });
        Ok(counts.collect())
    }
}
