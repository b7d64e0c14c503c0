//! One source of traffic at work.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::name::Name;
use outflow_core::time::Nanos;

use super::pattern::Arrivals;
use super::spec::TrafficSpec;
use super::{Arrival, Resolution};
use crate::random::Random;

/// A source, its place in its pattern, and the flows it has named so far.
pub struct Source {
    spec: TrafficSpec,
    index: u32,
    random: Random,
    arrivals: Arrivals,
    ends: Nanos,
    next: Option<Nanos>,
    yielded: u64,
    flows: BTreeMap<(u64, u64), (Arc<FlowKey>, Option<Resolution>)>,
}

impl Source {
    /// The source `spec`, silent after `until`.
    pub fn new(spec: TrafficSpec, index: u32, seed: u64, until: Nanos) -> Self {
        let mut source = Self {
            random: Random::named(seed, &spec.name, 0),
            arrivals: Arrivals::new(spec.arrive, spec.starts.0),
            ends: spec.ends.map_or(until, |ends| ends.0.min(until)),
            spec,
            index,
            next: None,
            yielded: 0,
            flows: BTreeMap::new(),
        };
        source.advance();
        source
    }

    /// When its next message arrives.
    pub fn peek(&mut self) -> Option<Nanos> {
        self.next
    }

    /// Its next message, as number `message` of all.
    pub fn take(&mut self, message: u64) -> Option<Arrival> {
        let at = self.next?;
        // Tenants and domains go round, so that each gets its even share, and
        // differ in their turns, so that each tenant meets each domain.
        let tenants = u64::from(self.spec.tenants.max(1));
        let tenant = self.yielded % tenants;
        let domains = u64::from(self.spec.domains.max(self.spec.destinations));
        let domain = (self.yielded + self.yielded / tenants) % domains.max(1);
        let (flow, resolution) = self.flow(tenant, domain);
        let due = at + self.spec.not_before.0;
        let recipient = match self.spec.recipients {
            0 => message | (1 << 63),
            pool => self.random.below(pool),
        };
        let arrival = Arrival {
            at,
            message,
            source: self.index,
            flow,
            domain: resolution,
            cost: self.spec.cost.draw(&mut self.random),
            due,
            expires: self.spec.expires.map_or(Nanos::MAX, |span| due + span.0),
            recipient,
        };
        self.yielded += 1;
        self.advance();
        Some(arrival)
    }

    fn advance(&mut self) {
        self.next = self
            .arrivals
            .next(&mut self.random)
            .filter(|at| *at < self.ends);
    }

    fn flow(&mut self, tenant: u64, domain: u64) -> (Arc<FlowKey>, Option<Resolution>) {
        let spec = &self.spec;
        self.flows
            .entry((tenant, domain))
            .or_insert_with(|| {
                let base = spec.tenant.as_ref().unwrap_or(&spec.name);
                let tenant = match spec.tenants {
                    0 | 1 => Name::from(base.as_str()),
                    _ => Name::from(format!("{base}-{}", tenant + 1)),
                };
                let resolution = (spec.domains > 0).then(|| Resolution {
                    domain: Name::from(format!("{}-{}.example", spec.name, domain + 1)),
                    destination: spec.destination.0.clone(),
                    after: spec.dns.0,
                });
                let destination = match &resolution {
                    Some(resolution) => Destination::unresolved(resolution.domain.clone()),
                    None if spec.destinations > 1 => numbered(&spec.destination.0, domain + 1),
                    None => spec.destination.0.clone(),
                };
                let key = FlowKey {
                    pool: Name::from(spec.pool.as_str()),
                    destination,
                    class: spec.class.0,
                    tenant,
                    campaign: spec.campaign.as_deref().map(Name::from),
                    sender_domain: spec.sender_domain.as_deref().map(Name::from),
                    channel: spec.channel.into(),
                };
                (Arc::new(key), resolution)
            })
            .clone()
    }
}

/// One of several destinations of a kind.
fn numbered(all: &Destination, number: u64) -> Destination {
    Destination::new(all.kind, format!("{}-{number}", all.name))
}
