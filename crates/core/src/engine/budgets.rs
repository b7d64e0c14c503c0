//! Retry budgets of tenants and campaigns.
//!
//! Retries may be a share of first attempts, so that they cannot amplify an
//! outage. A flow draws on the budget of its tenant and on that of its
//! campaign; both must agree.
//!
//! A budget that no flow draws on is forgotten once a new one would allow no
//! more.

use std::collections::{BTreeMap, VecDeque};

use crate::free_numbers::FreeNumbers;
use crate::name::Name;
use crate::retry::budget::RetryBudget;
use crate::time::Mono;

/// The budgets that a flow draws on: its tenant's and its campaign's.
pub(super) type FlowBudgets = [Option<u32>; 2];

/// Whose a budget is: a tenant's, or that of one of its campaigns.
type Owner = (Name, Option<Name>);

/// One budget.
#[derive(Debug)]
struct Budget {
    owner: Owner,
    retries: RetryBudget,
    /// Flows that draw on it.
    flows: u32,
    /// Whether it stands in the list of those that none draws on.
    is_listed: bool,
}

/// All budgets.
#[derive(Debug)]
pub(super) struct Budgets {
    permille: u32,
    floor_per_minute: u32,
    slab: Vec<Option<Budget>>,
    free: FreeNumbers,
    by_name: BTreeMap<Owner, u32>,
    /// Those that no flow draws on.
    unused: VecDeque<u32>,
}

impl Budgets {
    pub fn new(permille: u32, floor_per_minute: u32) -> Self {
        Self {
            permille,
            floor_per_minute,
            slab: Vec::new(),
            free: FreeNumbers::default(),
            by_name: BTreeMap::new(),
            unused: VecDeque::new(),
        }
    }

    /// The budgets of a tenant and of one of its campaigns, for one flow more.
    pub fn join(&mut self, tenant: &Name, campaign: Option<&Name>) -> FlowBudgets {
        let of_tenant = self.budget((tenant.clone(), None));
        let of_campaign =
            campaign.map(|campaign| self.budget((tenant.clone(), Some(campaign.clone()))));
        [Some(of_tenant), of_campaign]
    }

    fn budget(&mut self, owner: Owner) -> u32 {
        if let Some(&index) = self.by_name.get(&owner) {
            if let Some(budget) = self.slab.get_mut(index as usize).and_then(Option::as_mut) {
                budget.flows += 1;
            }
            return index;
        }
        let end = self.slab.len();
        let index = self.free.take(end).unwrap_or_else(|| {
            self.slab.push(None);
            u32::try_from(end).expect("fewer than 2^32 budgets")
        });
        if let Some(slot) = self.slab.get_mut(index as usize) {
            *slot = Some(Budget {
                owner: owner.clone(),
                retries: RetryBudget::new(self.permille, self.floor_per_minute),
                flows: 1,
                is_listed: false,
            });
        }
        self.by_name.insert(owner, index);
        index
    }

    fn get_mut(&mut self, index: u32) -> Option<&mut RetryBudget> {
        let budget = self.slab.get_mut(index as usize)?.as_mut()?;
        Some(&mut budget.retries)
    }

    /// One flow less draws on these.
    pub fn leave(&mut self, now: Mono, budgets: FlowBudgets) {
        for index in budgets.into_iter().flatten() {
            let Some(budget) = self.slab.get_mut(index as usize).and_then(Option::as_mut) else {
                continue;
            };
            budget.flows -= 1;
            if budget.flows == 0 && !self.forget(now, index) {
                self.list(index);
            }
        }
    }

    fn list(&mut self, index: u32) {
        let budget = self.slab.get_mut(index as usize).and_then(Option::as_mut);
        if let Some(budget) = budget
            && !std::mem::replace(&mut budget.is_listed, true)
        {
            self.unused.push_back(index);
        }
    }

    /// Forgets a budget that none draws on and that remembers nothing that
    /// matters; whether it did.
    fn forget(&mut self, now: Mono, index: u32) -> bool {
        let Some(slot) = self.slab.get_mut(index as usize) else {
            return false;
        };
        let is_over = |it: &mut Budget| it.flows == 0 && it.retries.is_no_less_than_new(now);
        let Some(gone) = slot.take_if(is_over) else {
            return false;
        };
        self.by_name.remove(&gone.owner);
        self.free.give(index);
        FreeNumbers::cut(&mut self.slab, 0, Option::is_none);
        true
    }

    /// Looks at some that none draws on. Whether one was forgotten.
    pub fn tidy(&mut self, now: Mono, looks: usize) -> bool {
        let mut any = false;
        for _ in 0..looks.min(self.unused.len()) {
            let Some(index) = self.unused.pop_front() else {
                break;
            };
            let budget = self.slab.get_mut(index as usize).and_then(Option::as_mut);
            let Some(budget) = budget.filter(|budget| budget.is_listed) else {
                continue;
            };
            budget.is_listed = false;
            if budget.flows == 0 {
                match self.forget(now, index) {
                    true => any = true,
                    false => self.list(index),
                }
            }
        }
        any
    }

    /// Those that none draws on.
    pub fn unused(&self) -> usize {
        self.unused.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether all budgets allow a retry now, or when this one is to look again.
    pub fn may_retry(&mut self, budgets: FlowBudgets, now: Mono) -> Result<(), Mono> {
        let mut later = None;
        for index in budgets.into_iter().flatten() {
            if let Some(budget) = self.get_mut(index)
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
            if let Some(budget) = self.get_mut(index) {
                budget.first_attempt(now);
            }
        }
    }

    /// Counts a retry.
    pub fn take(&mut self, budgets: FlowBudgets, now: Mono) {
        for index in budgets.into_iter().flatten() {
            if let Some(budget) = self.get_mut(index) {
                budget.take(now);
            }
        }
    }
}
