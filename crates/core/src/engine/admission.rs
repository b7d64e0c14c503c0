//! Whether a submission may open another flow.
//!
//! A flow costs memory as long as something is queued, in flight or held under
//! it, and whoever may submit can make new ones with each message: a campaign, a
//! recipient's domain, a sender's domain that nobody used before. So the flows
//! that live at once are bounded, of each tenant and in all. Only what would be
//! new is refused, before anything is known of it. What was accepted is never
//! refused: a restart, a move and a domain that is resolved open the flows that
//! they need.
//!
//! Whoever is refused is told which field has too many values. That is judged by
//! a sample of the flows that live, so that a refusal stays cheap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Engine;
use super::action::Action;
use crate::flow::FlowKey;
use crate::handle::FlowId;
use crate::name::Name;
use crate::time::Now;

/// Flows that are looked at to learn which field has too many values.
const SAMPLED: u64 = 256;

/// How many flows may live at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCaps {
    /// Of one tenant.
    pub tenant_max: usize,
    /// Of all.
    pub total_max: usize,
}

impl Default for FlowCaps {
    fn default() -> Self {
        Self {
            tenant_max: 100_000,
            total_max: 1_000_000,
        }
    }
}

/// Whose flows are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowCap {
    /// Those of the message's tenant: it may have so many.
    Tenant(usize),
    /// Those of all tenants together.
    Total(usize),
}

/// What tells flows apart and may have any number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowField {
    /// Whose it is.
    Tenant,
    /// Which accounts may send it.
    Pool,
    /// What it belongs to.
    Campaign,
    /// The domain it goes to.
    RecipientDomain,
    /// The domain it is sent from.
    SenderDomain,
}

impl FlowField {
    /// The field of a message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Pool => "pool",
            Self::Campaign => "campaign",
            Self::RecipientDomain => "to",
            Self::SenderDomain => "from",
        }
    }

    /// What is counted of it.
    pub const fn values(self) -> &'static str {
        match self {
            Self::Tenant => "tenants",
            Self::Pool => "pools",
            Self::Campaign => "campaigns",
            Self::RecipientDomain => "recipient domains",
            Self::SenderDomain => "sender domains",
        }
    }
}

/// Why a message may not open another flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyFlows {
    /// Whose are too many.
    pub cap: FlowCap,
    /// Which field has too many values.
    pub field: FlowField,
}

impl fmt::Display for TooManyFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whose, most) = match self.cap {
            FlowCap::Tenant(most) => ("the tenant has", most),
            FlowCap::Total(most) => ("all tenants together have", most),
        };
        let (field, values) = (self.field.as_str(), self.field.values());
        write!(
            f,
            "too many different {values} (field `{field}`) are queued at once: {whose} {most} \
             live flows, which is the limit"
        )
    }
}

impl Engine {
    /// The flow of a message that is submitted, opened if need be and if there
    /// is room for it.
    pub fn admit_flow(
        &mut self,
        now: &Now,
        key: &FlowKey,
        actions: &mut Vec<Action>,
    ) -> Result<FlowId, FlowCap> {
        if let Some(id) = self.counter.flows.find(key) {
            return Ok(id);
        }
        self.room(self.live_flows(), self.live_flows_of(&key.tenant))?;
        Ok(self.open_flow(now, key.clone(), actions))
    }

    /// How many flows of a tenant live, and how many more may.
    pub fn flows_of(&self, tenant: &Name) -> (u64, u64) {
        let caps = &self.counter.settings.flow_caps;
        let own = self.live_flows_of(tenant);
        let in_all = caps.total_max.saturating_sub(self.live_flows());
        let left = caps.tenant_max.saturating_sub(own).min(in_all);
        (own as u64, left as u64)
    }

    /// Whether there is room for all of these flows together: else for which
    /// one there is none.
    pub fn admits_all<'k>(
        &self,
        keys: impl Iterator<Item = &'k FlowKey>,
    ) -> Result<(), (&'k FlowKey, FlowCap)> {
        let is_new = |key: &&FlowKey| self.counter.flows.find(key).is_none();
        let new: BTreeSet<&FlowKey> = keys.filter(is_new).collect();
        let mut by_tenant: BTreeMap<&Name, usize> = BTreeMap::new();
        for (before, key) in new.into_iter().enumerate() {
            let of_tenant = by_tenant
                .entry(&key.tenant)
                .or_insert_with(|| self.live_flows_of(&key.tenant));
            let room = self.room(self.live_flows() + before, *of_tenant);
            room.map_err(|cap| (key, cap))?;
            *of_tenant += 1;
        }
        Ok(())
    }

    /// Whether one more flow fits beside so many.
    fn room(&self, total: usize, of_tenant: usize) -> Result<(), FlowCap> {
        let caps = &self.counter.settings.flow_caps;
        if of_tenant >= caps.tenant_max {
            return Err(FlowCap::Tenant(caps.tenant_max));
        }
        if total >= caps.total_max {
            return Err(FlowCap::Total(caps.total_max));
        }
        Ok(())
    }

    /// Which field has the most values among the flows that are too many for a
    /// message like this.
    pub fn crowded_field(&self, key: &FlowKey, cap: FlowCap) -> FlowField {
        let flows = &self.counter.flows;
        let end = flows.end() as u128;
        let mut values = FieldValues::default();
        values.add(key, cap);
        // Places that are spread evenly and follow no pattern of the flows'.
        for no in 0..SAMPLED {
            let spread = u128::from(no.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let place = ((spread * end) >> 64) as u32;
            let Some(flow) = flows.get(FlowId(place)) else {
                continue;
            };
            let counts = match cap {
                FlowCap::Tenant(_) => flow.key.tenant == key.tenant,
                FlowCap::Total(_) => true,
            };
            if counts {
                values.add(&flow.key, cap);
            }
        }
        values.most()
    }
}

/// The values of each field that were seen.
#[derive(Default)]
struct FieldValues<'k> {
    fields: BTreeMap<FlowField, BTreeSet<&'k str>>,
}

impl<'k> FieldValues<'k> {
    fn add(&mut self, key: &'k FlowKey, cap: FlowCap) {
        let tenant = matches!(cap, FlowCap::Total(_)).then_some(&key.tenant);
        for (field, value) in [
            (FlowField::Campaign, key.campaign.as_ref()),
            (FlowField::RecipientDomain, Some(&key.destination.name)),
            (FlowField::SenderDomain, key.sender_domain.as_ref()),
            (FlowField::Tenant, tenant),
            (FlowField::Pool, Some(&key.pool)),
        ] {
            if let Some(value) = value {
                self.fields.entry(field).or_default().insert(value.as_str());
            }
        }
    }

    /// The field with the most; of equal ones the one that senders choose most
    /// freely.
    fn most(&self) -> FlowField {
        let order = [
            FlowField::Campaign,
            FlowField::RecipientDomain,
            FlowField::SenderDomain,
            FlowField::Tenant,
            FlowField::Pool,
        ];
        let count = |field: &FlowField| self.fields.get(field).map_or(0, BTreeSet::len);
        // The first of equal ones, so the last when read backwards.
        let most = order.into_iter().rev().max_by_key(count);
        most.unwrap_or(FlowField::Campaign)
    }
}
