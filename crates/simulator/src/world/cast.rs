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
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

use crate::trace::{Cause, FlowNo, LimitNo, Observer, TenantNo, Trace};

/// Everybody who plays a part.
#[derive(Debug)]
pub struct Cast {
    /// The policies in force.
    pub policies: Policies,
    accounts: Vec<AccountSpec>,
    account_numbers: BTreeMap<Name, u32>,
    leased: bool,
    tenants: BTreeMap<Name, TenantNo>,
    limits: BTreeMap<String, (LimitNo, LimitSpec)>,
    flows: BTreeMap<Arc<FlowKey>, FlowNo>,
    /// What a message of a flow sent by an account needs; emptied on changes.
    needs: BTreeMap<(FlowNo, u32), Arc<[LimitNo]>>,
    keys: Vec<FlowKey>,
}

impl Cast {
    /// These accounts under these policies.
    pub fn new(policies: Policies, accounts: Vec<AccountSpec>, leased: bool) -> Self {
        let numbered = accounts.iter().enumerate();
        let account_numbers = numbered
            .map(|(index, spec)| (spec.id.clone(), index as u32))
            .collect();
        Self {
            policies,
            accounts,
            account_numbers,
            leased,
            tenants: BTreeMap::new(),
            limits: BTreeMap::new(),
            flows: BTreeMap::new(),
            needs: BTreeMap::new(),
            keys: Vec::new(),
        }
    }

    /// Tells of the limits of all accounts.
    pub fn introduce_accounts(&mut self, at: Nanos, observer: &mut impl Observer) {
        for account in self.accounts.clone() {
            self.numbers(at, self.policies.for_account(&account), observer);
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
    }

    /// All accounts.
    pub fn accounts(&self) -> &[AccountSpec] {
        &self.accounts
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
        let flow = self.keys.len() as FlowNo;
        let mut facts = (**key).clone();
        if let Some(destination) = resolved {
            facts.destination = destination.clone();
        }
        self.flows.insert(Arc::clone(key), flow);
        self.keys.push(facts.clone());
        let tenant = self.tenant(at, &facts, observer);
        let mut limits = self.numbers(at, self.policies.for_flow(&facts), observer);
        let pool = facts.pool.clone();
        let accounts: Vec<AccountSpec> = self
            .accounts
            .iter()
            .filter(|account| account.pool == pool)
            .cloned()
            .collect();
        for account in accounts {
            limits.extend(self.numbers(at, self.policies.for_account(&account), observer));
            limits.extend(self.numbers(at, self.policies.for_pair(&account, &facts), observer));
        }
        limits.sort_unstable();
        limits.dedup();
        let trace = Trace::Flow {
            flow,
            class: facts.class,
            tenant,
            limits: &limits,
        };
        observer.observe(at, &trace);
        let destination = &facts.destination;
        observer.observe(at, &Trace::FlowTo { flow, destination });
        flow
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
        self.needs.clear();
        let accounts = self.accounts.clone();
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
