//! Who is who: dense numbers for tenants, limits and flows, and which limits a
//! message needs, worked out from the policies apart from any engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::account::{AccountSpec, SessionKind};
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::message::Recipient;
use outflow_core::name::Name;
use outflow_core::policy::applied::Applied;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

use crate::trace::{Cause, FlowNo, LimitNo, Observer, TenantNo, Trace};

/// A lane's pool and destination, and its tenant if that has accounts of its own.
type LaneFacts = (Name, Destination, Option<Name>);

/// Everybody who plays a part.
#[derive(Debug)]
pub struct Cast {
    /// The policies in force.
    pub policies: Policies,
    accounts: Vec<AccountSpec>,
    /// Accounts that were taken out, and when.
    removed: BTreeMap<u32, Nanos>,
    account_numbers: BTreeMap<Name, u32>,
    leased: bool,
    tenants: BTreeMap<Name, TenantNo>,
    limits: BTreeMap<String, (LimitNo, LimitSpec)>,
    flows: BTreeMap<Arc<FlowKey>, FlowNo>,
    /// What a message of a flow sent by an account needs; emptied on changes.
    needs: BTreeMap<(FlowNo, u32), Arc<[LimitNo]>>,
    keys: Vec<FlowKey>,
    /// The facts of each flow before its domain was resolved.
    original: Vec<Arc<FlowKey>>,
    /// The limits that each flow was last said to need.
    limits_of: Vec<(Option<u32>, Vec<LimitNo>)>,
    /// Flows that messages of others were moved to, by pool.
    moved: BTreeMap<(FlowNo, Name), FlowNo>,
    /// Lanes by pool, destination and the tenant that has accounts of its own,
    /// if it matters in which lane a flow is.
    lanes: Option<BTreeMap<LaneFacts, u32>>,
}

impl Cast {
    /// These accounts under these policies.
    pub fn new(
        policies: Policies,
        accounts: Vec<AccountSpec>,
        has_lanes: bool,
        leased: bool,
    ) -> Self {
        let numbered = accounts.iter().enumerate();
        let account_numbers = numbered
            .map(|(index, spec)| (spec.id.clone(), index as u32))
            .collect();
        Self {
            policies,
            accounts,
            removed: BTreeMap::new(),
            account_numbers,
            leased,
            tenants: BTreeMap::new(),
            limits: BTreeMap::new(),
            flows: BTreeMap::new(),
            needs: BTreeMap::new(),
            keys: Vec::new(),
            original: Vec::new(),
            limits_of: Vec::new(),
            moved: BTreeMap::new(),
            lanes: has_lanes.then(BTreeMap::new),
        }
    }

    /// Tells of the limits of all accounts.
    pub fn introduce_accounts(&mut self, at: Nanos, observer: &mut impl Observer) {
        for account in self.accounts.clone() {
            self.numbers(at, self.policies.for_account(&account), observer);
            self.tell_connections(at, &account, observer);
        }
    }

    /// Tells how many connections an account may have.
    fn tell_connections(&self, at: Nanos, account: &AccountSpec, observer: &mut impl Observer) {
        let sessions = account.sessions;
        if sessions.kind != SessionKind::Slots {
            let trace = Trace::Connects {
                account: self.account(&account.id),
                is_relay: sessions.kind == SessionKind::RelayConnections,
                max: sessions.max_connections,
            };
            observer.observe(at, &trace);
        }
    }

    /// All accounts that there are now.
    pub fn accounts(&self) -> Vec<AccountSpec> {
        let present = self.present();
        present.map(|(_, spec)| spec.clone()).collect()
    }

    fn present(&self) -> impl Iterator<Item = (u32, &AccountSpec)> {
        let numbered = self.accounts.iter().enumerate();
        let numbered = numbered.map(|(index, spec)| (index as u32, spec));
        numbered.filter(|(number, _)| !self.removed.contains_key(number))
    }

    /// The accounts of a pool, by their numbers.
    pub fn accounts_in(&self, pool: &Name) -> Vec<u32> {
        let present = self.present().filter(|(_, spec)| spec.pool == *pool);
        present.map(|(number, _)| number).collect()
    }

    /// An account as it is now, if it was not taken out.
    pub fn present_account(&self, number: u32) -> Option<&AccountSpec> {
        let is_removed = self.removed.contains_key(&number);
        self.accounts.get(number as usize).filter(|_| !is_removed)
    }

    /// When an account was taken out, if it was.
    pub fn removed_at(&self, number: u32) -> Option<Nanos> {
        self.removed.get(&number).copied()
    }

    /// How many accounts were taken out.
    pub fn removed(&self) -> usize {
        self.removed.len()
    }

    /// An account is new, or has changed.
    pub fn set_account(&mut self, at: Nanos, spec: AccountSpec, observer: &mut impl Observer) {
        let next = self.accounts.len() as u32;
        let number = *self.account_numbers.entry(spec.id.clone()).or_insert(next);
        self.removed.remove(&number);
        match self.accounts.get_mut(number as usize) {
            Some(known) => *known = spec.clone(),
            None => self.accounts.push(spec.clone()),
        }
        self.restate(at, observer);
        self.numbers(at, self.policies.for_account(&spec), observer);
        self.tell_connections(at, &spec, observer);
    }

    /// An account is gone.
    pub fn remove_account(&mut self, at: Nanos, name: &Name, observer: &mut impl Observer) {
        if let Some(&number) = self.account_numbers.get(name) {
            self.removed.insert(number, at);
        }
        self.restate(at, observer);
    }

    /// The facts of a flow, once its domain is resolved.
    pub fn key(&self, flow: FlowNo) -> Option<&FlowKey> {
        self.keys.get(flow as usize)
    }

    /// Whether a match certainly means a flow, and whether it may: as long as
    /// its domain is not resolved, nobody knows its destination.
    pub fn is_meant(&self, matches: &Match, flow: FlowNo) -> (bool, bool) {
        let now = self.keys.get(flow as usize);
        let before = self.original.get(flow as usize);
        let now = now.is_some_and(|key| matches.matches_flow(key));
        let before = before.is_some_and(|key| matches.matches_flow(key));
        (now && before, now || before)
    }

    /// The flow of the same facts in another pool.
    pub fn in_pool(
        &mut self,
        at: Nanos,
        flow: FlowNo,
        pool: &Name,
        observer: &mut impl Observer,
    ) -> FlowNo {
        let Some(facts) = self.keys.get(flow as usize) else {
            return flow;
        };
        if facts.pool == *pool {
            return flow;
        }
        if let Some(&known) = self.moved.get(&(flow, pool.clone())) {
            return known;
        }
        let mut facts = facts.clone();
        facts.pool = pool.clone();
        let mut original = self
            .original
            .get(flow as usize)
            .map_or_else(|| facts.clone(), |key| (**key).clone());
        original.pool = pool.clone();
        let to = self.open(at, Arc::new(original), facts, observer);
        self.moved.insert((flow, pool.clone()), to);
        to
    }

    /// Whatever a match may mean is moved to another pool.
    pub fn move_all(
        &mut self,
        at: Nanos,
        matches: &Match,
        pool: &Name,
        observer: &mut impl Observer,
    ) {
        for flow in 0..self.keys.len() as FlowNo {
            if self.is_meant(matches, flow).1 {
                self.in_pool(at, flow, pool, observer);
            }
        }
    }

    /// The flow of the same facts in another pool, if anything was ever moved
    /// from one to the other.
    pub fn known_in_pool(&self, flow: FlowNo, pool: &Name) -> Option<FlowNo> {
        let there = self.moved.get(&(flow, pool.clone())).copied();
        let back = |((from, _), to): (&(FlowNo, Name), &FlowNo)| {
            let is_there = self.key(*from).is_some_and(|key| key.pool == *pool);
            (*to == flow && is_there).then_some(*from)
        };
        there.or_else(|| self.moved.iter().find_map(back))
    }

    /// The number of an account.
    pub fn account(&self, name: &Name) -> u32 {
        self.account_numbers.get(name).copied().unwrap_or(u32::MAX)
    }

    /// The number of a flow, once resolved; introduces it when it is new.
    pub fn flow(
        &mut self,
        at: Nanos,
        key: &Arc<FlowKey>,
        resolved: Option<&Destination>,
        observer: &mut impl Observer,
    ) -> FlowNo {
        if let Some(&flow) = self.flows.get(key) {
            return flow;
        }
        let mut facts = (**key).clone();
        if let Some(destination) = resolved {
            facts.destination = destination.clone();
        }
        let flow = self.open(at, Arc::clone(key), facts, observer);
        self.flows.insert(Arc::clone(key), flow);
        flow
    }

    fn open(
        &mut self,
        at: Nanos,
        original: Arc<FlowKey>,
        facts: FlowKey,
        observer: &mut impl Observer,
    ) -> FlowNo {
        let flow = self.keys.len() as FlowNo;
        self.keys.push(facts.clone());
        self.original.push(original);
        let tenant = self.tenant(at, &facts, observer);
        let limits = self.may_need(at, &facts, observer);
        let trace = Trace::Flow {
            flow,
            class: facts.class,
            tenant,
            limits: &limits,
        };
        observer.observe(at, &trace);
        let lane = self.lane(&facts);
        if lane.is_some() {
            let limits = &limits;
            observer.observe(at, &Trace::FlowChanged { flow, lane, limits });
        }
        self.limits_of.push((lane, limits));
        let destination = &facts.destination;
        observer.observe(at, &Trace::FlowTo { flow, destination });
        flow
    }

    /// The number of the lane in which messages of these facts wait.
    fn lane(&mut self, facts: &FlowKey) -> Option<u32> {
        let own = |account: &AccountSpec| {
            account.pool == facts.pool && account.tenant.as_ref() == Some(&facts.tenant)
        };
        let has_own = self.present().any(|(_, account)| own(account));
        let tenant = has_own.then(|| facts.tenant.clone());
        let lanes = self.lanes.as_mut()?;
        let next = lanes.len() as u32;
        let key = (facts.pool.clone(), facts.destination.clone(), tenant);
        Some(*lanes.entry(key).or_insert(next))
    }

    /// Every limit that messages of these facts may need.
    fn may_need(
        &mut self,
        at: Nanos,
        facts: &FlowKey,
        observer: &mut impl Observer,
    ) -> Vec<LimitNo> {
        let mut limits = self.numbers(at, self.policies.for_flow(facts), observer);
        let accounts: Vec<AccountSpec> = self
            .present()
            .map(|(_, account)| account)
            .filter(|account| account.pool == facts.pool)
            .cloned()
            .collect();
        for account in accounts {
            limits.extend(self.numbers(at, self.policies.for_account(&account), observer));
            limits.extend(self.numbers(at, self.policies.for_pair(&account, facts), observer));
        }
        limits.sort_unstable();
        limits.dedup();
        limits
    }

    /// What a message takes from, sent by an account to a recipient.
    pub fn needs(
        &mut self,
        at: Nanos,
        flow: FlowNo,
        account: u32,
        recipient: Recipient,
        observer: &mut impl Observer,
    ) -> Arc<[LimitNo]> {
        let Some(facts) = self.keys.get(flow as usize).cloned() else {
            return Arc::from([]);
        };
        let per_recipient = self.policies.for_recipient(&facts);
        let known = self.needs.get(&(flow, account)).cloned();
        let common = match known {
            Some(common) => common,
            None => {
                let mut applied = self.policies.for_flow(&facts);
                if let Some(account) = self.accounts.get(account as usize) {
                    applied.extend(self.policies.for_account(account));
                    applied.extend(self.policies.for_pair(account, &facts));
                }
                let common: Arc<[LimitNo]> = self.numbers(at, applied, observer).into();
                self.needs.insert((flow, account), Arc::clone(&common));
                common
            }
        };
        if per_recipient.is_empty() {
            return common;
        }
        let completed = per_recipient
            .into_iter()
            .map(|applied| Applied {
                key: applied.key.for_recipient(recipient),
                ..applied
            })
            .collect();
        let mut all = common.to_vec();
        all.extend(self.numbers(at, completed, observer));
        all.into()
    }

    /// Policies have changed: tells which limits have other numbers now.
    pub fn change(&mut self, at: Nanos, policies: Policies, observer: &mut impl Observer) {
        self.policies = policies;
        self.restate(at, observer);
    }

    /// Policies or accounts have changed: tells which limits have other numbers,
    /// and which flows need other limits.
    fn restate(&mut self, at: Nanos, observer: &mut impl Observer) {
        self.change_limits(at, observer);
        for index in 0..self.keys.len() {
            let Some(facts) = self.keys.get(index).cloned() else {
                return;
            };
            let limits = self.may_need(at, &facts, observer);
            let now = (self.lane(&facts), limits);
            let Some(before) = self.limits_of.get_mut(index) else {
                return;
            };
            if *before == now {
                continue;
            }
            before.clone_from(&now);
            let (flow, lane, limits) = (index as FlowNo, now.0, &now.1);
            observer.observe(at, &Trace::FlowChanged { flow, lane, limits });
        }
    }

    fn change_limits(&mut self, at: Nanos, observer: &mut impl Observer) {
        self.needs.clear();
        let accounts = self.accounts();
        let mut applied: Vec<Applied> = Vec::new();
        for facts in &self.keys {
            applied.extend(self.policies.for_flow(facts));
            for account in accounts.iter().filter(|account| account.pool == facts.pool) {
                applied.extend(self.policies.for_pair(account, facts));
            }
        }
        for account in &accounts {
            applied.extend(self.policies.for_account(account));
        }
        for applied in applied {
            let key = applied.key.to_string();
            if let Some((limit, spec)) = self.limits.get_mut(&key)
                && *spec != applied.spec
            {
                *spec = applied.spec;
                let (limit, cause) = (*limit, Cause::Operator);
                observer.observe(at, &Trace::LimitChanged { limit, spec, cause });
            }
        }
    }

    /// The number of a limit by its key, if anybody was ever bound by it.
    pub fn limit(&self, key: &str) -> Option<LimitNo> {
        self.limits.get(key).map(|(limit, _)| *limit)
    }

    fn tenant(&mut self, at: Nanos, facts: &FlowKey, observer: &mut impl Observer) -> TenantNo {
        if let Some(&tenant) = self.tenants.get(&facts.tenant) {
            return tenant;
        }
        let tenant = self.tenants.len() as TenantNo;
        self.tenants.insert(facts.tenant.clone(), tenant);
        let weight = self.policies.weight(facts);
        observer.observe(
            at,
            &Trace::Tenant {
                tenant,
                name: &facts.tenant,
                weight,
            },
        );
        tenant
    }

    fn numbers(
        &mut self,
        at: Nanos,
        applied: Vec<Applied>,
        observer: &mut impl Observer,
    ) -> Vec<LimitNo> {
        applied
            .into_iter()
            .map(|applied| self.number(at, applied, observer))
            .collect()
    }

    fn number(&mut self, at: Nanos, applied: Applied, observer: &mut impl Observer) -> LimitNo {
        let key = applied.key.to_string();
        if let Some(&(limit, _)) = self.limits.get(&key) {
            return limit;
        }
        let limit = self.limits.len() as LimitNo;
        let name = Name::from(key.as_str());
        let leased = self.leased && !matches!(applied.spec, LimitSpec::Concurrency { .. });
        let trace = Trace::Limit {
            limit,
            key: &name,
            spec: &applied.spec,
            leased,
        };
        observer.observe(at, &trace);
        self.limits.insert(key, (limit, applied.spec));
        limit
    }
}
