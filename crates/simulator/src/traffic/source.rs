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
        let turn = self.yielded + self.yielded / tenants;
        let domain = match u64::from(self.spec.domains) {
            0 => turn % u64::from(self.spec.destinations.max(1)),
            domains => turn % domains,
        };
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
                let host = numbered(spec, domain);
                let resolution = (spec.domains > 0).then(|| Resolution {
                    domain: Name::from(format!("{}-{}.example", spec.name, domain + 1)),
                    destination: host.clone(),
                    after: spec.dns.0,
                });
                let destination = match &resolution {
                    Some(resolution) => Destination::unresolved(resolution.domain.clone()),
                    None => host,
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

/// The destination that a message goes to in its turn.
fn numbered(spec: &TrafficSpec, turn: u64) -> Destination {
    let base = &spec.destination.0;
    match u64::from(spec.destinations) {
        0 | 1 => base.clone(),
        count => {
            let name = format!("{}-{}", base.name, turn % count + 1);
            Destination::new(base.kind, name)
        }
    }
}
