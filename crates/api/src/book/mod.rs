//! Accounts and policies in force, and where each came from.
//!
//! The settings give start values. What the API sets is a document of the
//! registry and wins over the file; what it takes away stays away. A change is
//! durable and audited before it takes effect. Readers see one snapshot;
//! writers take turns.
//!
//! In reading order: [`account`], [`policy`] (what is in force of each), `beside`
//! (limits that are not policies), then how they are put in force here.

pub mod account;
mod beside;
pub mod policy;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use outflow_config::valid::runbook::Runbook;
use outflow_config::valid::warm_up::WarmUp;
use outflow_config::{Account, RawAccount, RawPolicy, Settings};
use outflow_core::limit::spec::LimitSpec;
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::set::Policies;
use outflow_core::time::Wall;
use outflow_ports::control::Control;
use outflow_ports::registry::{Kind, Registry, RegistryError};
use serde::Serialize;
use tokio::sync::{Mutex, MutexGuard};
use utoipa::ToSchema;

use account::AccountEntry;
use policy::PolicyEntry;

/// Tells transports which accounts there are.
pub trait AccountSink: Send + Sync {
    /// An account is new or has changed.
    fn put(&self, account: &Account);

    /// An account is gone.
    fn remove(&self, id: &str);
}

/// No version of what a fleet shares was read yet.
const UNKNOWN: u64 = u64::MAX;

/// What the settings begin with.
#[derive(Clone, Debug, Default)]
pub struct StartValues {
    /// Accounts of the file.
    pub accounts: Vec<RawAccount>,
    /// Policies of the file.
    pub policies: Vec<RawPolicy>,
    /// Policies that come with the program, below those of the file.
    pub built_in: Vec<RawPolicy>,
    /// The account that takes everything as long as none was ever configured:
    /// the sandbox. The first real one takes its place, for good.
    pub implicit: Option<RawAccount>,
    /// Headroom and worker, to which policies are added.
    pub defaults: Policies,
    /// What is done when a destination is in trouble, and how mitigations are
    /// taken back.
    pub runbook: Runbook,
    /// Senders that are being warmed up.
    pub warm_ups: Vec<WarmUp>,
    /// Where files must lie that accounts name over the API.
    pub secrets_dir: PathBuf,
}

impl StartValues {
    /// What these settings begin with.
    pub fn of(settings: &Settings) -> Self {
        let mut defaults = Policies::default();
        defaults.set_headroom(settings.headroom);
        let mut accounts: Vec<RawAccount> = settings
            .accounts
            .iter()
            .map(|account| account.raw.clone())
            .collect();
        let implicit = match settings.is_sandbox_by_default {
            true => accounts.pop(),
            false => None,
        };
        let policies = settings.policies.iter();
        Self {
            accounts,
            policies: policies.map(|policy| policy.raw.clone()).collect(),
            built_in: Vec::new(),
            implicit,
            defaults,
            runbook: settings.runbook.clone(),
            warm_ups: settings.warm_ups.clone(),
            secrets_dir: settings.server.secrets_dir.clone(),
        }
    }
}

/// Where something came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The settings file.
    File,
    /// This API.
    Api,
    /// Nobody configured any account.
    Implicit,
    /// It comes with the program.
    BuiltIn,
}

/// All that is in force.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Accounts by id.
    pub accounts: BTreeMap<String, Arc<AccountEntry>>,
    /// Policies by what they govern.
    pub policies: BTreeMap<Match, Arc<PolicyEntry>>,
}

/// Accounts and policies in force.
pub struct Book {
    start: StartValues,
    now: ArcSwap<Snapshot>,
    /// Limits beside the policies, by what they limit.
    beside: ArcSwap<BTreeMap<Match, Vec<LimitSpec>>>,
    turn: Mutex<()>,
    /// Of what the fleet shares; [`UNKNOWN`] before it was first read.
    version: AtomicU64,
    control: Arc<dyn Control>,
    sink: Arc<dyn AccountSink>,
}

impl Book {
    /// Reads what is in force and puts it in force. Waits for the disk.
    pub fn open(
        start: StartValues,
        registry: &dyn Registry,
        control: Arc<dyn Control>,
        sink: Arc<dyn AccountSink>,
        beside: BTreeMap<Match, Vec<LimitSpec>>,
        now: Wall,
    ) -> Result<Self, RegistryError> {
        let accounts = account::in_force(&start, &registry.list(Kind::Account)?);
        let policies = policy::in_force(&start, &registry.list(Kind::Policy)?);
        let snapshot = Snapshot { accounts, policies };
        let book = Self {
            start,
            now: ArcSwap::from_pointee(snapshot),
            beside: ArcSwap::from_pointee(beside),
            turn: Mutex::new(()),
            version: AtomicU64::new(UNKNOWN),
            control,
            sink,
        };
        book.enforce_policies(now);
        for entry in book.snapshot().accounts.values() {
            book.enforce_account(entry);
        }
        Ok(book)
    }

    /// What is in force.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.now.load_full()
    }

    /// Whether any account is in a pool: else messages there would only wait.
    pub fn has_pool(&self, pool: &Name) -> bool {
        let snapshot = self.snapshot();
        let mut accounts = snapshot.accounts.values();
        accounts.any(|entry| entry.account.spec.pool == *pool)
    }

    /// What the file says.
    pub const fn start(&self) -> &StartValues {
        &self.start
    }

    /// Waits until nobody else writes.
    pub async fn write(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The version of what the fleet shares that is in force here; none before
    /// it was first read.
    pub fn version(&self) -> Option<u64> {
        Some(self.version.load(Ordering::Acquire)).filter(|&version| version != UNKNOWN)
    }

    /// Whether this version, or a later one, is in force here.
    pub fn is_at(&self, version: u64) -> bool {
        self.version().is_some_and(|own| own >= version)
    }

    /// What is put in force next is of this version.
    pub fn set_version(&self, version: u64) {
        let own = self.version().unwrap_or(0);
        self.version.store(own.max(version), Ordering::Release);
    }

    /// These limits hold beside the policies from now on.
    pub fn set_beside(&self, beside: BTreeMap<Match, Vec<LimitSpec>>, now: Wall) {
        if **self.beside.load() != beside {
            self.beside.store(Arc::new(beside));
            self.enforce_policies(now);
        }
    }

    /// Tells the engine of all policies again.
    pub fn enforce(&self, now: Wall) {
        self.enforce_policies(now);
    }

    /// Puts an account in force that is durable already. The caller has the
    /// turn.
    pub fn set_account(&self, id: &str, entry: Option<AccountEntry>) {
        let mut next = (*self.snapshot()).clone();
        let implicit = |entry: &AccountEntry| entry.origin == Origin::Implicit;
        let replaced: Vec<String> = match entry {
            // Real mail must not be swallowed by the sandbox.
            Some(_) => next
                .accounts
                .iter()
                .filter(|(other, entry)| other.as_str() != id && implicit(entry))
                .map(|(other, _)| other.clone())
                .collect(),
            None => vec![id.to_owned()],
        };
        for other in &replaced {
            next.accounts.remove(other);
            self.control.remove_account(Name::from(other.as_str()));
            self.sink.remove(other);
        }
        if let Some(entry) = entry {
            self.enforce_account(&entry);
            next.accounts.insert(id.to_owned(), Arc::new(entry));
        }
        self.now.store(Arc::new(next));
    }

    /// Puts a policy in force that is durable already. The caller has the turn.
    pub fn set_policy(&self, matches: &Match, entry: Option<PolicyEntry>, now: Wall) {
        let mut next = (*self.snapshot()).clone();
        match entry {
            Some(entry) => next.policies.insert(matches.clone(), Arc::new(entry)),
            None => next.policies.remove(matches),
        };
        self.now.store(Arc::new(next));
        self.enforce_policies(now);
    }

    /// Policies as the engine takes them. Each was checked when it was written.
    fn enforce_policies(&self, now: Wall) {
        let mut policies = self.start.defaults.clone();
        for (matches, entry) in &self.snapshot().policies {
            if let Some(valid) = entry.at(matches, now)
                && policies.insert(valid.policy).is_err()
            {
                debug_assert!(false, "{matches} was checked when it was written");
            }
        }
        for (matches, limits) in &**self.beside.load() {
            let with = beside::with(&policies, matches, limits);
            if policies.insert(with).is_err() {
                debug_assert!(false, "{matches} was checked when it was read");
            }
        }
        policies.set_version(self.version().unwrap_or(0));
        self.control.set_policies(policies);
    }

    /// Transports hear of an account first, so that none is chosen that they
    /// do not know.
    fn enforce_account(&self, entry: &AccountEntry) {
        self.sink.put(&entry.account);
        self.control.set_account(entry.account.spec.clone());
    }
}
