//! A few domains of each destination, by which its servers are found when a
//! session is opened before there is a message for it.

use std::collections::{BTreeMap, VecDeque};

use outflow_core::destination::Destination;

const DESTINATIONS_MAX: usize = 10_000;
const DOMAINS_MAX: usize = 8;

/// Domains by destination, the latest last.
#[derive(Default)]
pub(crate) struct Seen(BTreeMap<Destination, VecDeque<String>>);

impl Seen {
    /// A domain rolls up to a destination.
    pub fn note(&mut self, destination: &Destination, domain: &str) {
        if let Some(domains) = self.0.get_mut(destination) {
            if domains.iter().any(|known| known == domain) {
                return;
            }
            if domains.len() >= DOMAINS_MAX {
                domains.pop_front();
            }
            domains.push_back(domain.to_owned());
            return;
        }
        while self.0.len() >= DESTINATIONS_MAX {
            self.0.pop_first();
        }
        let domains = VecDeque::from([domain.to_owned()]);
        self.0.insert(destination.clone(), domains);
    }

    /// A domain of a destination; the next one next time, so that one whose
    /// servers are dead does not stand for all.
    pub fn next(&mut self, destination: &Destination) -> Option<String> {
        let domains = self.0.get_mut(destination)?;
        domains.rotate_left(1);
        domains.back().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_take_turns() {
        let mut seen = Seen::default();
        let host = Destination::isp("google");
        assert_eq!(seen.next(&host), None);
        for domain in ["a", "b", "a"] {
            seen.note(&host, domain);
        }
        let turns: Vec<_> = (0..4).filter_map(|_| seen.next(&host)).collect();
        assert_eq!(turns, ["a", "b", "a", "b"]);
    }
}
