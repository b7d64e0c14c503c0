//! Domains resolve to what the traffic says, after the time it says.

use std::collections::BTreeMap;

use outflow_core::destination::Destination;
use outflow_core::engine::event::Event;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::resolver::Resolver;

/// A node's resolver.
#[derive(Debug, Default)]
pub struct SimResolver {
    known: BTreeMap<Name, (Destination, Nanos)>,
    arriving: BTreeMap<(Mono, Name), Destination>,
}

impl SimResolver {
    /// A resolver that knows these domains already.
    pub fn knowing(domains: &BTreeMap<Name, (Destination, Nanos)>) -> Self {
        Self {
            known: domains.clone(),
            arriving: BTreeMap::new(),
        }
    }

    /// Learns what a domain will resolve to.
    pub fn learn(&mut self, domain: &Name, destination: &Destination, after: Nanos) {
        if !self.known.contains_key(domain) {
            self.known
                .insert(domain.clone(), (destination.clone(), after));
        }
    }
}

impl Resolver for SimResolver {
    fn submit(&mut self, now: &Now, domain: Name) {
        if let Some((destination, after)) = self.known.get(&domain) {
            self.arriving
                .insert((now.mono + *after, domain), destination.clone());
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        while let Some(entry) = self.arriving.first_entry() {
            if entry.key().0 > now.mono {
                break;
            }
            let ((_, domain), destination) = entry.remove_entry();
            done.push(Event::Resolved {
                domain,
                destination,
            });
        }
    }

    fn next_completion(&self) -> Mono {
        self.arriving
            .first_key_value()
            .map_or(Mono::NEVER, |((at, _), _)| *at)
    }
}
