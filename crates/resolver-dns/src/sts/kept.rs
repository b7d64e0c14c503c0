//! Policies by domain, for as long as they hold. In memory only: a server that
//! starts anew asks anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::policy::Policy;

/// What all of them together may take: a policy may be large, so their number
/// alone is no bound.
const BYTES_MAX: usize = 64 << 20;

/// A policy that was fetched.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub policy: Arc<Policy>,
    /// What the domain called it.
    pub id: String,
    pub fetched: Instant,
    pub until: Instant,
}

/// What is known of a domain.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// None if it has none, or none could be had.
    pub held: Option<Held>,
    /// Not to be asked for again before.
    pub ask_at: Instant,
}

impl Entry {
    /// The policy, if it holds.
    pub fn at(&self, now: Instant) -> Option<&Held> {
        self.held.as_ref().filter(|held| now < held.until)
    }

    fn end(&self) -> Instant {
        let until = self.held.as_ref().map(|held| held.until);
        until.map_or(self.ask_at, |until| until.max(self.ask_at))
    }

    fn bytes(&self, domain: &str) -> usize {
        let policy = self.held.as_ref().map(|held| held.policy.bytes());
        2 * (size_of::<Self>() + domain.len()) + policy.unwrap_or_default()
    }
}

/// What is known, of at most `max` domains; what ends first goes first.
pub(super) struct Kept {
    entries: BTreeMap<Arc<str>, Entry>,
    ends: BTreeSet<(Instant, Arc<str>)>,
    bytes: usize,
    max: usize,
    bytes_max: usize,
}

impl Kept {
    pub fn new(max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            ends: BTreeSet::new(),
            bytes: 0,
            max: max.max(1),
            bytes_max: BYTES_MAX,
        }
    }

    pub fn get(&self, domain: &str) -> Option<&Entry> {
        self.entries.get(domain)
    }

    pub fn put(&mut self, domain: &str, entry: Entry) {
        self.remove(domain);
        let bytes = entry.bytes(domain);
        while self.entries.len() >= self.max || self.bytes + bytes > self.bytes_max {
            let Some((_, first)) = self.ends.first().cloned() else {
                break;
            };
            self.remove(&first);
        }
        let key: Arc<str> = Arc::from(domain);
        self.bytes += bytes;
        self.ends.insert((entry.end(), Arc::clone(&key)));
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, domain: &str) {
        if let Some((key, old)) = self.entries.remove_entry(domain) {
            self.bytes -= old.bytes(domain);
            self.ends.remove(&(old.end(), key));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn policies_end_and_stay_bounded() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let text = b"version: STSv1\nmode: enforce\nmx: mx.example\nmax_age: 9\n";
        let policy = Arc::new(Policy::parse(text).unwrap());
        let held = |until| Entry {
            held: Some(Held {
                policy: Arc::clone(&policy),
                id: "1".to_owned(),
                fetched: at(0),
                until: at(until),
            }),
            ask_at: at(5),
        };
        let none = |secs| Entry {
            held: None,
            ask_at: at(secs),
        };
        let mut kept = Kept::new(2);
        kept.put("a", held(10));
        let entry = kept.get("a").unwrap();
        assert!(entry.at(at(9)).is_some() && entry.at(at(10)).is_none());
        kept.put("a", held(20));
        kept.put("b", none(8));
        kept.put("c", none(9));
        assert!(kept.get("b").is_none(), "it ended first");
        assert!(kept.get("a").is_some() && kept.get("c").is_some());
        kept.put("a", none(1));
        kept.put("c", none(1));
        let small = kept.bytes;
        kept.put("a", held(20));
        assert!(kept.bytes > small);
        kept.put("a", none(1));
        assert_eq!((kept.bytes, kept.ends.len()), (small, 2));
        kept.bytes_max = small + policy.bytes() - 1;
        kept.put("d", held(20));
        assert_eq!(kept.entries.len(), 1, "it takes the room of both");
        assert!(kept.get("d").is_some());
    }
}
