//! The policies of domains: asked for when a message goes out, and remembered.
//!
//! A domain says by a record in DNS that it has a policy, and which one. That is
//! asked for whenever the last answer is too old; the policy itself is fetched
//! when its id is a new one, and once a day so that it does not run out. What
//! was fetched holds for as long as it says, whatever fails meanwhile; who has
//! none that can be had is sent to as if there were none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::fetch::Fetcher;
use super::kept::{Entry, Held, Kept};
use super::policy::Policy;
use super::record::Record;
use crate::lookups::Lookups;
use crate::reach::Reach;

/// A policy holds at least so long: one that ended at once would be fetched for
/// each message.
const HELD_MIN: Duration = Duration::from_secs(60);
/// A policy that is older is fetched again, also if its id is the same.
const RENEWED_AFTER: Duration = Duration::from_secs(86_400);

/// How policies are asked for.
#[derive(Clone, Debug)]
pub struct StsSettings {
    /// The port of the web servers that have them.
    pub port: u16,
    /// Certificates that are trusted besides the usual ones.
    pub roots: Vec<CertificateDer<'static>>,
    /// How long a message waits for an answer.
    pub patience: Duration,
    /// What could not be asked or fetched is tried again after this long.
    pub pause: Duration,
}

impl Default for StsSettings {
    fn default() -> Self {
        Self {
            port: 443,
            roots: Vec::new(),
            patience: Duration::from_secs(5),
            pause: Duration::from_secs(300),
        }
    }
}

/// A question that is under way; it is answered when nobody can tell of it any
/// more.
#[derive(Clone)]
struct Asking {
    since: Instant,
    done: watch::Receiver<()>,
}

struct State {
    kept: Kept,
    asking: BTreeMap<String, Asking>,
}

/// The policies of domains.
pub(crate) struct Policies {
    lookups: Arc<Lookups>,
    fetcher: Fetcher,
    runtime: Handle,
    patience: Duration,
    pause: Duration,
    state: Mutex<State>,
}

impl Policies {
    /// Nothing is known. Web servers within `reach` are asked. At most `max` domains are remembered.
    pub fn new(
        settings: &StsSettings,
        lookups: Arc<Lookups>,
        reach: Reach,
        max: usize,
        runtime: Handle,
    ) -> Result<Arc<Self>, rustls::Error> {
        Ok(Arc::new(Self {
            lookups,
            fetcher: Fetcher::new(settings.port, &settings.roots, reach)?,
            runtime,
            patience: settings.patience,
            pause: settings.pause,
            state: Mutex::new(State {
                kept: Kept::new(max),
                asking: BTreeMap::new(),
            }),
        }))
    }

    /// The policy of a domain, in one form, if it has one. Waits for a while if
    /// it is time to ask; all who want to know the same wait for one answer.
    pub async fn of(self: &Arc<Self>, domain: &str) -> Option<Arc<Policy>> {
        let mut asking = {
            let mut state = self.lock();
            let now = Instant::now();
            match state.kept.get(domain) {
                Some(entry) if now < entry.ask_at => return policy(entry, now),
                _ => self.ask(&mut state, domain, now),
            }
        };
        let deadline = asking.since + self.patience;
        // Answered, ended or too late: what is known now counts.
        let _ = timeout_at(deadline, asking.done.changed()).await;
        let state = self.lock();
        let entry = state.kept.get(domain);
        entry.and_then(|entry| policy(entry, Instant::now()))
    }

    /// The question for a domain, asked now unless it is under way.
    fn ask(self: &Arc<Self>, state: &mut State, domain: &str, now: Instant) -> Asking {
        let under_way = state.asking.get(domain);
        if let Some(asking) = under_way.filter(|asking| asking.done.has_changed().is_ok()) {
            return asking.clone();
        }
        let (tell, done) = watch::channel(());
        let asking = Asking { since: now, done };
        state.asking.insert(domain.to_owned(), asking.clone());
        let (here, domain) = (Arc::clone(self), domain.to_owned());
        self.runtime.spawn(async move {
            let entry = here.look(&domain).await;
            let mut state = here.lock();
            state.kept.put(&domain, entry);
            state.asking.remove(&domain);
            drop(state);
            drop(tell);
        });
        asking
    }

    /// What is to be known of a domain from now on.
    async fn look(&self, domain: &str) -> Entry {
        let record = self.lookups.texts(&format!("_mta-sts.{domain}")).await;
        let now = Instant::now();
        let known = self.lock().kept.get(domain).cloned();
        let held = known.and_then(|entry| entry.at(now).cloned());
        let (record, believed) = match record {
            Ok((texts, believed)) => (Record::of_texts(&texts), believed),
            Err(_) => (None, self.pause),
        };
        let is_new = |record: &Record| {
            let same = held.as_ref().filter(|held| held.id == record.id);
            same.is_none_or(|held| now >= held.fetched + RENEWED_AFTER)
        };
        // Without a record, what was fetched holds to its end.
        let Some(record) = record.filter(is_new) else {
            return Entry {
                ask_at: ask_at(now + believed, held.as_ref()),
                held,
            };
        };
        match self.fetcher.fetch(&self.lookups, domain).await {
            Ok(policy) => {
                let now = Instant::now();
                let held = Held {
                    id: record.id,
                    fetched: now,
                    until: now + policy.max_age.max(HELD_MIN),
                    policy: Arc::new(policy),
                };
                Entry {
                    ask_at: ask_at(now + believed, Some(&held)),
                    held: Some(held),
                }
            }
            Err(_) => Entry {
                ask_at: ask_at(Instant::now() + self.pause, held.as_ref()),
                held,
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn policy(entry: &Entry, now: Instant) -> Option<Arc<Policy>> {
    entry.at(now).map(|held| Arc::clone(&held.policy))
}

/// When to ask again: not after what holds has ended.
fn ask_at(at: Instant, held: Option<&Held>) -> Instant {
    held.map_or(at, |held| at.min(held.until))
}
