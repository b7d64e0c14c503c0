//! The handle, and the port of one node.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use outflow_core::engine::event::Event;
use outflow_core::time::{Mono, Now};
use outflow_ports::ledger::{Ledger, LedgerWork};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::courier;
use crate::desk::{Desk, Job, Sender};
use crate::health::LedgerStatus;
use crate::outbox::{Outbox, Wake};
use crate::policies::{self, PoliciesError, SharedPolicy};
use crate::settings::RedisSettings;
use crate::watch as watching;

/// The tasks behind a ledger. They end with it.
struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// A keeper of shared limits in Redis. Clones share it.
#[derive(Clone)]
pub struct RedisLedger {
    desk: Arc<Desk>,
    links: Arc<AtomicU64>,
    tasks: Arc<Tasks>,
}

impl fmt::Debug for RedisLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLedger")
            .field("settings", &self.desk.settings)
            .finish_non_exhaustive()
    }
}

impl RedisLedger {
    /// Begins to connect, on `runtime`, which needs its I/O and time drivers.
    pub fn start(runtime: &Handle, settings: RedisSettings) -> Self {
        let desk = Arc::new(Desk::new(settings, random_name()));
        let tasks = [
            runtime.spawn(courier::connect(Arc::clone(&desk))),
            runtime.spawn(courier::carry(Arc::clone(&desk))),
            runtime.spawn(watching::look(Arc::clone(&desk))),
            runtime.spawn(watching::listen(Arc::clone(&desk))),
        ];
        let tasks = tasks.iter().map(|task| task.abort_handle()).collect();
        Self {
            desk,
            links: Arc::default(),
            tasks: Arc::new(Tasks(tasks)),
        }
    }

    /// Connects a node, or whoever else leases. `wake` has it look at its ports.
    pub fn link(&self, wake: Wake) -> RedisLink {
        let outbox = Arc::new(Outbox::new(wake));
        self.desk.join(&outbox);
        let no = self.links.fetch_add(1, Ordering::Relaxed);
        let node = Arc::from(format!("{}-{no}", self.desk.node));
        RedisLink {
            desk: Arc::clone(&self.desk),
            sender: Sender { outbox, node },
            works: 0,
            _tasks: Arc::clone(&self.tasks),
        }
    }

    /// What it did so far, and how it is.
    pub fn status(&self) -> LedgerStatus {
        self.desk.status()
    }

    /// Publishes a policy to the fleet, or that it is deleted. `expected` is the
    /// version that it was read at, 0 if there was none: if it has another one
    /// by now, nothing is changed. The fleet's new version.
    pub async fn publish(
        &self,
        id: &str,
        json: Option<&str>,
        expected: Option<u64>,
    ) -> Result<u64, PoliciesError> {
        policies::publish(&self.desk, id, json, expected).await
    }

    /// The fleet's version and its policies, deleted ones too.
    pub async fn read_policies(&self) -> Result<(u64, Vec<SharedPolicy>), PoliciesError> {
        policies::read(&self.desk).await
    }

    /// Says whenever the fleet's policies have a new version.
    pub fn policies_version(&self) -> watch::Receiver<u64> {
        self.desk.version()
    }
}

/// What the fleet calls this process: a name that no other one has, nor this one
/// after a restart. The keys of the standard library's hashes are random.
fn random_name() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// One node's connection to a [`RedisLedger`].
pub struct RedisLink {
    desk: Arc<Desk>,
    sender: Sender,
    works: u64,
    _tasks: Arc<Tasks>,
}

impl fmt::Debug for RedisLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLink")
            .field("node", &self.sender.node)
            .finish_non_exhaustive()
    }
}

impl Ledger for RedisLink {
    fn submit(&mut self, _: &Now, work: LedgerWork) {
        let sender = self.sender.clone();
        self.works += 1;
        let no = self.works;
        let at = Instant::now();
        self.desk.submit(Job {
            sender,
            no,
            at,
            work,
        });
    }

    fn complete(&mut self, _: &Now, done: &mut Vec<Event>) {
        done.append(&mut self.sender.outbox.fetch());
    }

    fn next_completion(&self) -> Mono {
        match self.sender.outbox.is_empty() {
            true => Mono::NEVER,
            false => Mono(0),
        }
    }
}
