//! All policies, and the limits they yield for flows, accounts and pairs.
//!
//! Of the policies over the *same* scopes the most specific wins, field by
//! field: exact beats `*`, more exact terms beat fewer, and between as many the
//! one that is exact in the earlier scope of a key. Policies over *different*
//! scopes all hold together.
//!
//! This is plain data. Every change bumps an epoch, by which the engine knows
//! that what it worked out for a flow is stale. Working it out looks up one
//! policy per shape in use (`isp` exact, `isp` any, ...), not every policy, so
//! ten thousand tenants with a policy each cost a flow no more than one.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::applied::{Applied, Gathered, Learning};
use super::error::PolicyError;
use super::facet::Facet;
use super::facts::Facts;
use super::key::LimitKey;
use super::matcher::Match;
use super::patch::Patch;
use super::policy::{Policy, RateOrShare, WhenAway};
use super::role::Role;
use super::rule::{self, Rule};
use super::scope::Scope;
use super::scope_set::ScopeSet;
use super::text::Part;
use crate::account::AccountSpec;
use crate::flow::FlowKey;
use crate::limit::spec::{Headroom, Rate};
use crate::name::Name;

const TENANT: ScopeSet = ScopeSet::of(&[Scope::Tenant]);
const ACCOUNT: ScopeSet = ScopeSet::of(&[Scope::Account]);

/// Which scopes a match has, and in which of them it is exact. Ordered so that
/// the most specific shape over the same scopes comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    scopes: ScopeSet,
    exact: ScopeSet,
}

impl Shape {
    fn of(matches: &Match) -> Self {
        Self {
            scopes: matches.scopes(),
            exact: matches.exact(),
        }
    }
}

impl Ord for Shape {
    fn cmp(&self, other: &Self) -> Ordering {
        let specificity = |shape: &Self| (shape.exact.len(), shape.exact.seniority());
        self.scopes
            .cmp(&other.scopes)
            .then_with(|| specificity(other).cmp(&specificity(self)))
    }
}

impl PartialOrd for Shape {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// All policies.
#[derive(Clone, Debug)]
pub struct Policies {
    policies: BTreeMap<Match, Policy>,
    /// How many policies have each shape.
    shapes: BTreeMap<Shape, usize>,
    /// Rates that are learnt although no policy says so: something was refused
    /// there.
    learnt: BTreeMap<LimitKey, Learning>,
    headroom: Headroom,
    worker: Name,
    epoch: u64,
    version: u64,
}

/// No policies, and a fifth of every burst and quota kept for critical.
impl Default for Policies {
    fn default() -> Self {
        Self {
            policies: BTreeMap::new(),
            shapes: BTreeMap::new(),
            learnt: BTreeMap::new(),
            headroom: Headroom([200, 0, 0, 0]),
            worker: Name::from("local"),
            epoch: 0,
            version: 0,
        }
    }
}

impl Policies {
    /// Whether any policy speaks of an account at a destination.
    pub fn has_pairs(&self) -> bool {
        let is_share = |policy: &Policy| matches!(policy.rate, Some(RateOrShare::Share { .. }));
        self.shapes
            .keys()
            .any(|shape| matches!(Role::of(shape.scopes), Ok(Role::Pair)))
            || self.learns_pairs()
            || self.policies.values().any(is_share)
    }

    /// How often anything changed. Limits worked out in an older epoch are
    /// stale.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Which version of the policies that a fleet shares these are. Numbers of
    /// an older one are not leased under once a ledger knows a later one.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// These are that version of what the fleet shares.
    pub const fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// The rate of what `key` names is learnt from now on.
    pub fn learn(&mut self, key: LimitKey, learning: Learning) {
        self.epoch += 1;
        self.learnt.insert(key, learning);
    }

    /// Whether the rate of what `key` names is learnt beside the policies.
    pub fn has_learnt(&self, key: &LimitKey) -> bool {
        self.learnt.contains_key(key)
    }

    /// Whether anything is learnt beside the policies.
    pub fn learns(&self) -> bool {
        !self.learnt.is_empty()
    }

    /// Within which bounds, if it is.
    pub fn learning_of(&self, key: &LimitKey) -> Option<Learning> {
        self.learnt.get(key).copied()
    }

    /// What is learnt beside the policies, from a key on.
    pub fn learnt_from(&self, key: &LimitKey) -> impl Iterator<Item = (&LimitKey, Learning)> {
        let range = self.learnt.range(key.clone()..);
        range.map(|(key, learning)| (key, *learning))
    }

    /// Takes over what is learnt beside the policies from those before.
    pub fn keep_learning(&mut self, before: Self) {
        self.learnt = before.learnt;
    }

    fn learns_pairs(&self) -> bool {
        let mut keys = self.learnt.keys();
        keys.any(|key| matches!(Role::of(key.scopes()), Ok(Role::Pair)))
    }

    /// What is learnt of this thing beside the policies.
    fn add_learnt(&self, parts: [Option<Part>; 2], gathered: &mut Gathered) {
        let key = LimitKey::new(parts.into_iter().flatten(), Facet::Learnt);
        if let Some(learning) = self.learnt.get(&key) {
            gathered.learn(key.parts(), *learning);
        }
    }

    /// All policies, in the order of what they govern.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.policies.values()
    }

    /// The policy with exactly this match.
    pub fn get(&self, matches: &Match) -> Option<&Policy> {
        self.policies.get(matches)
    }

    /// Puts a policy in place of the one with the same match, which it returns.
    pub fn insert(&mut self, policy: Policy) -> Result<Option<Policy>, PolicyError> {
        policy.check()?;
        match self.policies.entry(policy.matches.clone()) {
            Entry::Vacant(vacant) => {
                *self.shapes.entry(Shape::of(&policy.matches)).or_insert(0) += 1;
                self.epoch += 1;
                vacant.insert(policy);
                Ok(None)
            }
            Entry::Occupied(mut occupied) => {
                self.epoch += u64::from(*occupied.get() != policy);
                Ok(Some(occupied.insert(policy)))
            }
        }
    }

    /// Changes some fields of a policy, which is made if there is none yet.
    /// Nothing changes if the outcome is refused.
    pub fn patch(&mut self, matches: Match, patch: Patch) -> Result<(), PolicyError> {
        let mut policy = match self.policies.get(&matches) {
            Some(policy) => policy.clone(),
            None => Policy::new(matches),
        };
        patch.apply(&mut policy);
        self.insert(policy)?;
        Ok(())
    }

    /// Takes a policy away.
    pub fn remove(&mut self, matches: &Match) -> Option<Policy> {
        let policy = self.policies.remove(matches)?;
        self.epoch += 1;
        let shape = Shape::of(matches);
        if let Entry::Occupied(mut count) = self.shapes.entry(shape) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(policy)
    }

    /// Sets what token buckets and calendar windows keep for the classes above.
    pub fn set_headroom(&mut self, headroom: Headroom) {
        self.epoch += u64::from(self.headroom != headroom);
        self.headroom = headroom;
    }

    /// Sets the name of the node that decides, which worker policies match.
    pub fn set_worker(&mut self, worker: Name) {
        self.epoch += u64::from(self.worker != worker);
        self.worker = worker;
    }

    /// The limits at which a flow waits, whichever account sends it.
    pub fn for_flow(&self, flow: &FlowKey) -> Vec<Applied> {
        let mut gathered = self.gathered(&self.flow_facts(flow), Role::Flow);
        if !self.learnt.is_empty() {
            let to = destination(flow);
            let from = flow.sender_domain.clone();
            let from = from.map(|name| (Scope::SenderDomain, name));
            let tenant = Some((Scope::Tenant, flow.tenant.clone()));
            self.add_learnt([None, to.clone()], &mut gathered);
            self.add_learnt([tenant, None], &mut gathered);
            if from.is_some() {
                self.add_learnt([from, to], &mut gathered);
            }
        }
        gathered.into_limits()
    }

    /// The limits of each recipient of a flow. Their keys are templates: they
    /// are completed at the head, when the recipient is known.
    pub fn for_recipient(&self, flow: &FlowKey) -> Vec<Applied> {
        let facts = self.flow_facts(flow);
        self.gathered(&facts, Role::Recipient).into_limits()
    }

    /// The limits of an account, whatever it sends: its own first.
    pub fn for_account(&self, account: &AccountSpec) -> Vec<Applied> {
        let mut gathered = self.gathered_for(account);
        if !self.learnt.is_empty() {
            let account = Some((Scope::Account, account.id.clone()));
            self.add_learnt([account, None], &mut gathered);
        }
        gathered.into_limits()
    }

    /// The same without what is learnt beside the policies.
    pub fn written_for(&self, account: &AccountSpec) -> Vec<Applied> {
        self.gathered_for(account).into_limits()
    }

    fn gathered_for(&self, account: &AccountSpec) -> Gathered {
        let mut gathered = Gathered::new(self.headroom);
        let own = [(Scope::Account, account.id.clone())];
        for spec in &account.limits {
            gathered.add(&own, spec.clone(), WhenAway::Closed);
        }
        for rule in self.rules(&self.account_facts(account), |role| role == Role::Account) {
            rule.yield_limits(&mut gathered);
        }
        gathered
    }

    /// The limits of an account at a destination. Of the flow only pool and
    /// destination count.
    pub fn for_pair(&self, account: &AccountSpec, flow: &FlowKey) -> Vec<Applied> {
        let facts = Facts {
            flow: Some(flow),
            ..self.account_facts(account)
        };
        let mut gathered = Gathered::new(self.headroom);
        // A destination's policy may be a share of the account's rate.
        let rules = self.rules(&facts, |role| matches!(role, Role::Flow | Role::Pair));
        for rule in &rules {
            if Role::of(rule.scopes) == Ok(Role::Pair) {
                rule.yield_limits(&mut gathered);
            }
        }
        if rules.iter().any(Rule::is_share)
            && let Some(whole) = self.account_rate(account)
        {
            for rule in &rules {
                rule.yield_share(&account.id, whole, &mut gathered);
            }
        }
        if !self.learnt.is_empty() {
            let account = Some((Scope::Account, account.id.clone()));
            self.add_learnt([account, destination(flow)], &mut gathered);
        }
        gathered.into_limits()
    }

    /// The limits on exactly what `key` names, by whichever policies speak of it;
    /// its facet does not matter. Shares of another rate are not among them:
    /// nobody says whose.
    pub fn for_key(&self, key: &LimitKey) -> Vec<Applied> {
        let mut rule: Option<Rule<'_>> = None;
        for Shape { scopes, exact } in self.shapes.keys().copied() {
            if scopes != key.scopes() {
                continue;
            }
            let Some(policy) = self.policies.get(&Match::over(key.parts(), exact)) else {
                continue;
            };
            let about = || Rule::about(scopes, key.parts().to_vec());
            rule.get_or_insert_with(about).inherit(policy);
        }
        let mut gathered = Gathered::new(self.headroom);
        if let Some(rule) = rule {
            rule.yield_limits(&mut gathered);
        }
        gathered.into_limits()
    }

    /// The weight of the turns of this flow's tenant.
    pub fn weight(&self, flow: &FlowKey) -> u32 {
        self.rules(&self.flow_facts(flow), |role| role == Role::Flow)
            .into_iter()
            .find(|rule| rule.scopes == TENANT)
            .and_then(|rule| rule.weight)
            .unwrap_or(1)
    }

    /// The rate of which a share is a share: none if nothing limits the account.
    fn account_rate(&self, account: &AccountSpec) -> Option<Rate> {
        let limits = self.written_for(account);
        let own = limits.iter().filter(|limit| limit.key.scopes() == ACCOUNT);
        rule::rate_of(own.map(|limit| &limit.spec))
    }

    fn gathered(&self, facts: &Facts<'_>, wanted: Role) -> Gathered {
        let mut gathered = Gathered::new(self.headroom);
        for rule in self.rules(facts, |role| role == wanted) {
            rule.yield_limits(&mut gathered);
        }
        gathered
    }

    /// One rule for each set of scopes over which a policy matches.
    fn rules(&self, facts: &Facts<'_>, wanted: impl Fn(Role) -> bool) -> Vec<Rule<'_>> {
        let mut rules: Vec<Rule<'_>> = Vec::new();
        for Shape { scopes, exact } in self.shapes.keys().copied() {
            if !Role::of(scopes).is_ok_and(&wanted) {
                continue;
            }
            let Some(parts) = facts.parts(scopes) else {
                continue;
            };
            let Some(policy) = self.policies.get(&Match::over(&parts, exact)) else {
                continue;
            };
            match rules.last_mut() {
                Some(rule) if rule.scopes == scopes => rule.inherit(policy),
                _ => {
                    let mut rule = Rule::about(scopes, parts);
                    rule.inherit(policy);
                    rules.push(rule);
                }
            }
        }
        rules
    }

    fn flow_facts<'a>(&'a self, flow: &'a FlowKey) -> Facts<'a> {
        Facts {
            flow: Some(flow),
            account: None,
            worker: Some(&self.worker),
        }
    }

    fn account_facts<'a>(&'a self, account: &'a AccountSpec) -> Facts<'a> {
        Facts {
            flow: None,
            account: Some(account.facts()),
            worker: Some(&self.worker),
        }
    }
}

/// The part of a key that names a flow's destination, once that is known.
fn destination(flow: &FlowKey) -> Option<Part> {
    let scope = Scope::of_destination(flow.destination.kind)?;
    Some((scope, flow.destination.name.clone()))
}
