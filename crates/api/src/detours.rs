//! Messages that go through another pool than they were submitted to, for a
//! while.
//!
//! Decided once, when a message comes in: its pool is part of its flow and is
//! stored with it. Which messages of a share go is by counting, not by chance,
//! so that ten of a hundred are ten.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_core::class::Class;
use outflow_core::flow::FlowKey;
use outflow_core::name::Name;
use outflow_core::runbook::CANARY;
use outflow_ports::intake::Submission;

/// Everything goes.
pub const WHOLE: u16 = 1_000;

/// Another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through the accounts of this pool.
    Pool(Name),
    /// Behind others: those of class normal with class low.
    Low,
}

/// Which messages go elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// To this destination: `isp:google`; to any if none.
    pub destination: Option<String>,
    /// Only those of this pool; of any if none.
    pub from: Option<Name>,
    /// Only those of this class.
    pub class: Option<Class>,
    /// Only those of which it was said that the recipient rarely reads.
    pub only_unengaged: bool,
    /// Which way they go.
    pub way: Way,
    /// How many of a thousand.
    pub permille: u16,
}

impl Detour {
    fn is_for(&self, submission: &Submission) -> bool {
        let (place, key) = (self.destination.as_deref(), &submission.key);
        let is_other = match &self.way {
            Way::Pool(to) => *to != key.pool,
            Way::Low => key.class == Class::Normal,
        };
        is_other
            && key.tenant.as_str() != CANARY
            && (!self.only_unengaged || submission.engaged == Some(false))
            && self.from.as_ref().is_none_or(|from| *from == key.pool)
            && self.class.is_none_or(|class| class == key.class)
            && place.is_none_or(|place| is_at(key, place))
    }
}

/// Whether a flow goes to `isp:google`.
fn is_at(key: &FlowKey, place: &str) -> bool {
    let parts = place.split_once(':');
    parts.is_some_and(|(kind, name)| {
        key.destination.kind.as_str() == kind && key.destination.name.as_str() == name
    })
}

#[derive(Debug)]
struct Kept {
    detour: Detour,
    /// Thousandths of a message that are owed to the other pool.
    owed: u32,
}

/// All detours, each by the name of what set it.
#[derive(Debug, Default)]
pub struct Detours(Mutex<BTreeMap<String, Kept>>);

impl Detours {
    /// Sets a detour, or changes it.
    pub fn set(&self, name: &str, detour: Detour) {
        let mut kept = self.lock();
        if kept.get(name).is_none_or(|kept| kept.detour != detour) {
            kept.insert(name.to_owned(), Kept { detour, owed: 0 });
        }
    }

    /// Takes a detour away.
    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Sends each of these by its detour, if it has one; the first by name wins.
    pub fn divert(&self, batch: &mut [Submission]) {
        let mut all = self.lock();
        if all.is_empty() {
            return;
        }
        for submission in batch {
            let mut found = all.values_mut();
            let Some(kept) = found.find(|kept| kept.detour.is_for(submission)) else {
                continue;
            };
            kept.owed += u32::from(kept.detour.permille);
            if kept.owed >= u32::from(WHOLE) {
                kept.owed -= u32::from(WHOLE);
                match &kept.detour.way {
                    Way::Pool(to) => submission.key.pool = to.clone(),
                    Way::Low => submission.key.class = Class::Low,
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outflow_core::destination::Destination;
    use outflow_core::message::Recipient;
    use outflow_core::time::Wall;

    use super::*;

    fn submission(class: Class, engaged: Option<bool>) -> Submission {
        let mut key = FlowKey::to(Destination::isp("google"));
        key.class = class;
        Submission {
            key,
            idempotency_key: None,
            not_before: None,
            expires_at: Wall::NEVER,
            recipient: Recipient(1),
            cost: 1,
            engaged,
            envelope: Arc::from(*b""),
            body: Arc::from(*b""),
        }
    }

    fn to_backup(permille: u16) -> Detour {
        Detour {
            destination: Some("isp:google".to_owned()),
            from: None,
            class: Some(Class::Critical),
            only_unengaged: false,
            way: Way::Pool(Name::from("backup")),
            permille,
        }
    }

    #[test]
    fn a_share_is_exact_and_nothing_else_goes() {
        let detours = Detours::default();
        detours.set("incident", to_backup(100));
        let mut batch: Vec<Submission> = Vec::new();
        for _ in 0..50 {
            batch.push(submission(Class::Critical, None));
            batch.push(submission(Class::Normal, None));
        }
        let mut elsewhere = submission(Class::Critical, None);
        elsewhere.key.destination = Destination::isp("yahoo");
        batch.extend(vec![elsewhere; 50]);
        let mut canary = submission(Class::Critical, None);
        canary.key.tenant = Name::from(CANARY);
        batch.extend(vec![canary; 50]);
        for one in batch.chunks_mut(7) {
            detours.divert(one);
            // What is set again goes on counting where it was.
            detours.set("incident", to_backup(100));
        }
        let gone: Vec<_> = batch
            .iter()
            .filter(|it| it.key.pool.as_str() == "backup")
            .collect();
        assert_eq!(gone.len(), 5);
        let is_meant = |it: &&Submission| {
            it.key.class == Class::Critical
                && it.key.destination == Destination::isp("google")
                && it.key.tenant.as_str() != CANARY
        };
        assert!(gone.iter().all(is_meant));
        detours.remove("incident");
        let mut later = vec![submission(Class::Critical, None); 100];
        detours.divert(&mut later);
        assert!(later.iter().all(|it| it.key.pool.as_str() != "backup"));
    }

    #[test]
    fn who_rarely_reads_comes_last_and_urgent_mail_never_does() {
        let detours = Detours::default();
        let behind = Detour {
            class: None,
            only_unengaged: true,
            way: Way::Low,
            ..to_backup(WHOLE)
        };
        detours.set("warm-up", behind);
        let mut batch = [
            submission(Class::Normal, Some(false)),
            submission(Class::Normal, Some(true)),
            submission(Class::Normal, None),
            submission(Class::Critical, Some(false)),
        ];
        detours.divert(&mut batch);
        let classes: Vec<Class> = batch.iter().map(|it| it.key.class).collect();
        assert_eq!(
            classes,
            [Class::Low, Class::Normal, Class::Normal, Class::Critical]
        );
    }
}
