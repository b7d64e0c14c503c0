//! Retry budgets of tenants and campaigns.
//!
//! Retries may be a share of first attempts, so that they cannot amplify an
//! outage. A flow draws on the budget of its tenant and on that of its
//! campaign; both must agree.

use std::collections::BTreeMap;

use crate::name::Name;
use crate::retry::budget::RetryBudget;
use crate::time::Mono;

/// The budgets that a flow draws on: its tenant's and its campaign's.
pub(super) type FlowBudgets = [Option<u32>; 2];

/// All budgets.
#[derive(Debug)]
pub(super) struct Budgets {
    permille: u32,
    floor_per_minute: u32,
    slab: Vec<RetryBudget>,
    by_name: BTreeMap<(Name, Option<Name>), u32>,
}

impl Budgets {
    pub fn new(permille: u32, floor_per_minute: u32) -> Self {
        Self {
            permille,
            floor_per_minute,
            slab: Vec::new(),
            by_name: BTreeMap::new(),
        }
    }

    /// The budgets of a tenant and of one of its campaigns.
    pub fn of(&mut self, tenant: &Name, campaign: Option<&Name>) -> FlowBudgets {
        let of_tenant = self.budget((tenant.clone(), None));
        let of_campaign =
            campaign.map(|campaign| self.budget((tenant.clone(), Some(campaign.clone()))));
        [Some(of_tenant), of_campaign]
    }

    fn budget(&mut self, name: (Name, Option<Name>)) -> u32 {
        if let Some(&index) = self.by_name.get(&name) {
            return index;
        }
        let index = u32::try_from(self.slab.len()).expect("fewer than 2^32 budgets");
        self.slab
            .push(RetryBudget::new(self.permille, self.floor_per_minute));
        self.by_name.insert(name, index);
        index
    }

    /// Whether all budgets allow a retry now, or when this one is to look again.
    pub fn may_retry(&mut self, budgets: FlowBudgets, now: Mono) -> Result<(), Mono> {
        let mut later = None;
        for index in budgets.into_iter().flatten() {
            if let Some(budget) = self.slab.get_mut(index as usize)
                && budget.may_retry(now).is_err()
            {
                later = later.max(Some(budget.turn(now)));
            }
        }
        later.map_or(Ok(()), Err)
    }

    /// Counts a first attempt.
    pub fn first_attempt(&mut self, budgets: FlowBudgets, now: Mono) {
        for index in budgets.into_iter().flatten() {
            if let Some(budget) = self.slab.get_mut(index as usize) {
                budget.first_attempt(now);
            }
        }
    }

    /// Counts a retry.
    pub fn take(&mut self, budgets: FlowBudgets, now: Mono) {
        for index in budgets.into_iter().flatten() {
            if let Some(budget) = self.slab.get_mut(index as usize) {
                budget.take(now);
            }
        }
    }
}
