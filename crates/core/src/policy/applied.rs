//! The limits that policies yield, each under a name of its own.
//!
//! Several rules may speak of the same thing: an account's own caps and a
//! policy on that account. All of them hold. Of two windows of one length, or
//! two caps on what is in flight, the tighter implies the other, so one limit
//! is enough; two rates with two bursts imply nothing and stay apart.

use super::facet::Facet;
use super::key::LimitKey;
use super::policy::WhenAway;
use super::scope::Scope;
use super::text::Part;
use crate::limit::spec::{Headroom, LimitSpec, Rate};

/// What is learnt of a rate: where that begins, and what it never exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Learning {
    /// Where it begins.
    pub start: Rate,
    /// What it never exceeds.
    pub most: Rate,
}

/// One limit that holds, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What it is called.
    pub key: LimitKey,
    /// Its algorithm and numbers.
    pub spec: LimitSpec,
    /// What it keeps for the classes above.
    pub headroom: Headroom,
    /// What becomes of it while the ledger is away.
    pub when_away: WhenAway,
    /// For a rate that is learnt, within which bounds.
    pub learning: Option<Learning>,
}

impl Applied {
    /// A rate that is learnt, of what `parts` name.
    pub fn learnt(parts: impl IntoIterator<Item = Part>, learning: Learning) -> Self {
        Self {
            key: LimitKey::new(parts, Facet::Learnt),
            spec: LimitSpec::TokenBucket {
                rate: learning.start,
                burst: learning.start.default_burst(),
            },
            headroom: Headroom::default(),
            when_away: WhenAway::Open,
            learning: Some(learning),
        }
    }
}

/// Gathers limits and names them.
#[derive(Debug)]
pub(super) struct Gathered {
    headroom: Headroom,
    limits: Vec<Applied>,
}

impl Gathered {
    /// Nothing yet; buckets and quotas will keep `headroom`.
    pub fn new(headroom: Headroom) -> Self {
        Self {
            headroom,
            limits: Vec::new(),
        }
    }

    /// One more limit on what `parts` name.
    pub fn add(&mut self, parts: &[Part], spec: LimitSpec, when_away: WhenAway) {
        let facet = self.facet(parts, &spec);
        let key = LimitKey::new(parts.iter().cloned(), facet);
        match self.limits.iter_mut().find(|limit| limit.key == key) {
            Some(limit) => {
                if spec.capacity() < limit.spec.capacity() {
                    limit.spec = spec;
                }
                limit.when_away = limit.when_away.min(when_away);
            }
            None => self.limits.push(Applied {
                headroom: self.headroom_of(&key, &spec),
                key,
                spec,
                when_away,
                learning: None,
            }),
        }
    }

    /// The rate of what `parts` name is learnt; the first who says so counts.
    pub fn learn(&mut self, parts: &[Part], learning: Learning) {
        let learnt = Applied::learnt(parts.iter().cloned(), learning);
        if self.limits.iter().all(|limit| limit.key != learnt.key) {
            self.limits.push(learnt);
        }
    }

    /// What was gathered.
    pub fn into_limits(self) -> Vec<Applied> {
        self.limits
    }

    fn facet(&self, parts: &[Part], spec: &LimitSpec) -> Facet {
        let facet = Facet::of(spec);
        if !facet.is_rate() {
            return facet;
        }
        let here = self.limits.iter().map(|limit| &limit.key);
        let rates = here.filter(|key| key.facet().is_rate() && key.parts() == parts);
        match u32::try_from(rates.count()) {
            Ok(0) => Facet::Rate,
            Ok(others) => Facet::FurtherRate(others.saturating_add(1)),
            Err(_) => Facet::FurtherRate(u32::MAX),
        }
    }

    /// Headroom costs a bucket no sustained rate and a quota nothing in the
    /// end; elsewhere it would be a hard share. A limit of one class has no
    /// classes above to keep anything for.
    fn headroom_of(&self, key: &LimitKey, spec: &LimitSpec) -> Headroom {
        match spec {
            LimitSpec::TokenBucket { .. } | LimitSpec::CalendarWindow { .. }
                if key.name(Scope::Class).is_none() =>
            {
                self.headroom
            }
            _ => Headroom::default(),
        }
    }
}
