mod cell;
mod guarantee;
mod keys;
mod leased;
mod waiting;

use super::request::{Key, Outcome, Owner, Request, TTL_DEFAULT, Verdict, Wanted};
use super::{Settings, Throttle};
use crate::class::Class;
use crate::entropy::Entropy;
use crate::limit::spec::LimitSpec;
use crate::policy::facet::Facet;
use crate::policy::policy::WhenAway;
use crate::time::{Mono, Nanos, Now, Wall};

const MS: u64 = 1_000_000;

fn at(nanos: u64) -> Now {
    Now {
        mono: Mono(1_000 * MS + nanos),
        wall: Wall(1_700_000_000_000_000_000 + i64::try_from(nanos).unwrap()),
        entropy: Entropy(7),
    }
}

fn spec(text: &str) -> LimitSpec {
    LimitSpec::parse(text).unwrap()
}

/// A throttle, and all that it told later.
struct World {
    throttle: Throttle,
    outcomes: Vec<Outcome>,
}

impl World {
    fn new(settings: Settings) -> Self {
        Self {
            throttle: Throttle::new(&at(0), settings, 42),
            outcomes: Vec::new(),
        }
    }

    fn seeded(seed: u64) -> Self {
        Self {
            throttle: Throttle::new(&at(0), Settings::default(), seed),
            outcomes: Vec::new(),
        }
    }

    fn plain() -> Self {
        Self::new(Settings::default())
    }

    /// Asks for limits by name, numbers and cost.
    fn ask(
        &mut self,
        now: u64,
        class: Class,
        wait: u64,
        wants: &[(&str, &LimitSpec, u32)],
    ) -> Verdict {
        let facets: Vec<Facet> = wants.iter().map(|(_, spec, _)| Facet::of(spec)).collect();
        let wants: Vec<Wanted<'_>> = wants
            .iter()
            .zip(&facets)
            .map(|((name, spec, cost), facet)| Wanted {
                key: Key {
                    space: "",
                    name,
                    facet,
                },
                spec,
                cost: *cost,
                when_away: WhenAway::Closed,
                version: 0,
            })
            .collect();
        let request = Request {
            wants: &wants,
            class,
            wait: Nanos(wait),
            ttl: TTL_DEFAULT,
            owner: Owner(7),
        };
        self.throttle
            .acquire(&at(now), &request, &mut self.outcomes)
    }

    /// One of one limit, without waiting; whether it was granted.
    fn takes(&mut self, now: u64, name: &str, spec: &LimitSpec, cost: u32) -> bool {
        let verdict = self.ask(now, Class::Critical, 0, &[(name, spec, cost)]);
        matches!(verdict, Verdict::Granted(_))
    }

    /// Lets time pass until `until`, waking when asked; what was told, and when.
    fn run(&mut self, until: u64) -> Vec<(u64, Outcome)> {
        let mut told = Vec::new();
        for _ in 0..1_000_000 {
            let next = self.throttle.next_wake();
            if next > at(until).mono {
                break;
            }
            let now = next.0.saturating_sub(1_000 * MS);
            self.throttle.wake(&at(now), &mut self.outcomes);
            told.extend(self.outcomes.drain(..).map(|outcome| (now, outcome)));
        }
        told
    }
}
