//! The settings in force.
//!
//! Single values were held against the table of keys before; here is what only
//! shows when several are looked at together.
//!
//! In reading order: [`machine`] (listeners, store, logs), [`feedback`], [`dns`], [`retry`],
//! `pools` (accounts in trouble), [`runbook`], [`warm_up`] and `traffic` (accounts,
//! policies, classes).

pub mod dns;
pub mod feedback;
pub mod machine;
mod pools;
pub mod retry;
pub mod runbook;
mod traffic;
pub mod warm_up;

use std::path::PathBuf;

use outflow_core::breaker::BreakerSettings;
use outflow_core::engine;
use outflow_core::limit::spec::Headroom;
use outflow_core::name::Name;
use outflow_core::policy::set::Policies;
use outflow_core::pool::PoolSettings;
use serde_json::Value;

use crate::account::{Account, RawAccount};
use crate::load::Layers;
use crate::policy::{RawPolicy, ValidPolicy};
use crate::problem::Problems;
use crate::raw::RawSettings;
use dns::{Destinations, Dns};
use feedback::Feedback;
use machine::{Ledger, Listener, Log, Metrics, Retention, Server, Store, Throttle};
use retry::Retry;
use runbook::Runbook;
use warm_up::WarmUp;

/// An account of the settings, as it was written and as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartAccount {
    /// As it was written.
    pub raw: RawAccount,
    /// As it is used.
    pub account: Account,
}

/// A policy of the settings, as it was written and as it is enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartPolicy {
    /// As it was written.
    pub raw: RawPolicy,
    /// As it is enforced.
    pub policy: ValidPolicy,
}

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The HTTP API and the data directory.
    pub server: Server,
    /// Where messages are kept.
    pub store: Store,
    /// Where the counts of limits live.
    pub ledger: Ledger,
    /// Submission over SMTP, if it listens.
    pub smtp: Option<Listener>,
    /// The throttle.
    pub throttle: Throttle,
    /// What comes back, and who is not sent to any more.
    pub feedback: Feedback,
    /// How DNS is asked.
    pub dns: Dns,
    /// Who hosts which domains.
    pub destinations: Destinations,
    /// The accounts to start with. Without any there is one sandbox.
    pub accounts: Vec<StartAccount>,
    /// Whether the only account is the sandbox that nobody asked for.
    pub is_sandbox_by_default: bool,
    /// The policies to start with.
    pub policies: Vec<StartPolicy>,
    /// What is kept free for the more urgent classes.
    pub headroom: Headroom,
    /// How pools keep their sessions, and what they do while accounts are
    /// blocked.
    pub pool: PoolSettings,
    /// When accounts are left alone.
    pub breaker: BreakerSettings,
    /// How long and how often to try.
    pub retry: Retry,
    /// Files of rules that say what answers of far ends mean, in order.
    pub classify_rules: Vec<PathBuf>,
    /// Whether rates are learnt from refusals where no policy says so.
    pub learns: bool,
    /// What is done when a destination is in trouble.
    pub runbook: Runbook,
    /// Senders that are being warmed up.
    pub warm_ups: Vec<WarmUp>,
    /// How long things are kept.
    pub retention: Retention,
    /// What is logged.
    pub log: Log,
    /// How many values labels may have.
    pub metrics: Metrics,
    /// Where each value comes from.
    pub(crate) layers: Layers,
}

impl Settings {
    pub(crate) fn of(merged: Value, layers: Layers, problems: &mut Problems) -> Option<Self> {
        let raw: RawSettings = match serde_json::from_value(merged) {
            Ok(raw) => raw,
            Err(error) => {
                problems.add("", error.to_string());
                return None;
            }
        };
        let server = machine::server(&raw.server, problems);
        let smtp = machine::listener(&raw.smtp, &server, "/smtp", problems);
        let throttle = machine::throttle(&raw.throttle, &server, problems);
        let mut accounts = traffic::accounts(&raw.account, problems);
        let is_sandbox_by_default = raw.account.is_empty();
        if is_sandbox_by_default {
            accounts.extend(traffic::sandbox());
        }
        Some(Self {
            server,
            store: machine::store(&raw.store),
            ledger: machine::ledger(&raw.ledger),
            smtp,
            throttle,
            feedback: feedback::of(&raw.feedback),
            dns: dns::dns(&raw.dns, &accounts, problems),
            destinations: dns::destinations(&raw.destinations),
            accounts,
            is_sandbox_by_default,
            policies: traffic::policies(&raw.policy, problems),
            headroom: traffic::headroom(&raw.classes, problems),
            pool: pools::pool(&raw.pools),
            breaker: pools::breaker(&raw.breaker, problems),
            retry: retry::of(&raw.retry, problems),
            classify_rules: raw.classify.rules.iter().map(PathBuf::from).collect(),
            learns: raw.control.learn,
            runbook: runbook::of(&raw.runbook, &raw.canary, problems),
            warm_ups: warm_up::of(&raw.warm_up, problems),
            retention: machine::retention(&raw.retention),
            log: machine::log(&raw.log),
            metrics: machine::metrics(&raw.metrics),
            layers,
        })
    }

    /// The policies to start with, as the engine takes them. Mitigations that
    /// are written into the file hold until they are taken out of it.
    pub fn start_policies(&self) -> Policies {
        let mut policies = Policies::default();
        policies.set_headroom(self.headroom);
        policies.set_worker(Name::from(self.server.node.as_str()));
        for start in &self.policies {
            policies
                .insert(start.policy.policy.clone())
                .expect("a policy is checked when it is read");
        }
        policies
    }

    /// What the engine is told.
    pub fn engine(&self) -> engine::Settings {
        engine::Settings {
            retry: self.retry.schedules,
            on_uncertain: self.retry.on_uncertain,
            retry_budget: (self.retry.budget_permille, self.retry.budget_floor),
            delivery_deadline: self.retry.uncertain_after,
            leased: self.ledger.url.is_some(),
            pool: self.pool,
            breaker: self.breaker,
            learns: self.learns,
            flow_caps: self.server.flow_caps,
        }
    }
}
