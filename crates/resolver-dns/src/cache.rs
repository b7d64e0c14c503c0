//! What DNS said of domains, for as long as it said, and a while longer.
//!
//! An answer that is too old to send by is still good enough to count by: a
//! message is not kept waiting because its domain has to be asked for again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use crate::answer::Answer;

/// What is remembered of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remembered {
    /// It holds.
    Fresh(Arc<Answer>),
    /// It held once. If `due`, it is time to ask again.
    Stale { answer: Arc<Answer>, due: bool },
    /// Nothing.
    Nothing,
}

struct Entry {
    answer: Arc<Answer>,
    until: Instant,
    /// Not to be asked for again before.
    ask_at: Instant,
}

/// Answers by domain, at most `max`; the one that ends first goes first.
pub(crate) struct Cache {
    entries: BTreeMap<Arc<str>, Entry>,
    ends: BTreeSet<(Instant, Arc<str>)>,
    max: usize,
}

impl Cache {
    pub fn new(max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            ends: BTreeSet::new(),
            max: max.max(1),
        }
    }

    pub fn get(&self, domain: &str, now: Instant) -> Remembered {
        match self.entries.get(domain) {
            None => Remembered::Nothing,
            Some(entry) if now < entry.until => Remembered::Fresh(Arc::clone(&entry.answer)),
            Some(entry) => Remembered::Stale {
                answer: Arc::clone(&entry.answer),
                due: now >= entry.ask_at,
            },
        }
    }

    pub fn put(&mut self, domain: &str, answer: Arc<Answer>, until: Instant) {
        let key: Arc<str> = Arc::from(domain);
        if let Some(old) = self.entries.remove(domain) {
            self.ends.remove(&(old.until, Arc::clone(&key)));
        }
        while self.entries.len() >= self.max {
            let Some((_, first)) = self.ends.pop_first() else {
                break;
            };
            self.entries.remove(&first);
        }
        self.ends.insert((until, Arc::clone(&key)));
        let entry = Entry {
            answer,
            until,
            ask_at: until,
        };
        self.entries.insert(key, entry);
    }

    /// A domain is being asked for, or could not be: not again before `at`.
    pub fn postpone(&mut self, domain: &str, at: Instant) {
        if let Some(entry) = self.entries.get_mut(domain) {
            entry.ask_at = at;
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.ends.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn answers_grow_old_and_stay_bounded() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let answer = Arc::new(Answer::Itself);
        let mut cache = Cache::new(2);
        cache.put("a", Arc::clone(&answer), at(10));
        assert_eq!(
            cache.get("a", at(9)),
            Remembered::Fresh(Arc::clone(&answer))
        );
        let stale = |due| Remembered::Stale {
            answer: Arc::clone(&answer),
            due,
        };
        assert_eq!(cache.get("a", at(10)), stale(true));
        cache.postpone("a", at(20));
        assert_eq!(cache.get("a", at(19)), stale(false));
        assert_eq!(cache.get("a", at(20)), stale(true));
        cache.put("a", Arc::clone(&answer), at(30));
        assert_eq!(cache.len(), 1, "in place of the old one");
        cache.put("b", Arc::clone(&answer), at(25));
        cache.put("c", Arc::clone(&answer), at(40));
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.get("b", at(0)), Remembered::Nothing, "it ended first");
        assert_ne!(cache.get("a", at(0)), Remembered::Nothing);
    }
}
