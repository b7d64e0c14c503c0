//! What the parts of a server know of each other.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outflow_api::{Bounds, Clock, Events, Parts, StartValues};
use outflow_config::Settings;
use outflow_config::valid::machine;
use outflow_core::name::Name;
use outflow_core::policy::set::Policies;
use outflow_core::time::Wall;
use outflow_pipeline::Handle;
use outflow_store_embedded::EmbeddedStore;
use outflow_telemetry::sink::{Sink, Sinks};
use outflow_transport_sandbox::SandboxHandle;

use super::accounts::Accounts;
use super::gate::Gate;
use super::health::Health;
use super::logs::Telling;
use super::metrics::MetricsPage;
use super::resolver::ResolvedIntake;
use super::transports::Carriers;

/// The machine's wall clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Wall {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        Wall(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

/// What the parts of a server share.
pub struct Wiring {
    /// The way to the node.
    pub node: Handle,
    /// The way to change it, also before it begins.
    pub gate: Arc<Gate>,
    /// Who carries whose messages.
    pub carriers: Carriers,
    /// To look into the sandbox.
    pub sandbox: SandboxHandle,
    /// Where everything that happens goes.
    pub sink: Arc<dyn Sink>,
    health: Arc<Health>,
    events: Arc<Events>,
}

impl Wiring {
    /// Nothing flows yet.
    pub fn new(
        settings: &Settings,
        telling: &Telling,
        node: Handle,
        sandbox: SandboxHandle,
    ) -> Self {
        let health = Arc::new(Health::new(
            settings.server.data_dir.clone(),
            settings.store.reserve_bytes,
        ));
        let events = Arc::new(Events::default());
        // The first counts destinations.
        let mut sinks: Vec<Arc<dyn Sink>> = vec![
            Arc::clone(&telling.metrics) as _,
            Arc::clone(&telling.logs) as _,
            Arc::clone(&health) as _,
            Arc::clone(&events) as _,
        ];
        sinks.extend(telling.attempts.clone().map(|log| log as _));
        Self {
            gate: Arc::new(Gate::new(node.clone())),
            node,
            carriers: Carriers::default(),
            sandbox,
            sink: Arc::new(Sinks(sinks)),
            health,
            events,
        }
    }

    /// What the API stands on.
    pub fn parts(&self, settings: &Settings, store: &EmbeddedStore, telling: &Telling) -> Parts {
        Parts {
            intake: Arc::new(ResolvedIntake(self.node.clone())),
            query: Arc::new(self.node.clone()),
            control: Arc::clone(&self.gate) as _,
            registry: store.registry(),
            receipts: store.receipts(),
            metrics: Arc::new(MetricsPage {
                metrics: Arc::clone(&telling.metrics),
                node: self.node.clone(),
                logs: Arc::clone(&telling.logs),
                attempts: telling.attempts.clone(),
            }),
            readiness: Arc::clone(&self.health) as _,
            clock: Arc::new(SystemClock),
            start: start_values(settings),
            account_sink: Arc::new(Accounts {
                carriers: self.carriers.clone(),
                sandbox: self.sandbox.clone(),
                sink: Arc::clone(&self.sink),
            }),
            telemetry: Arc::clone(&self.sink),
            events: Arc::clone(&self.events),
            bounds: bounds(&settings.server),
        }
    }
}

fn start_values(settings: &Settings) -> StartValues {
    let mut defaults = Policies::default();
    defaults.set_headroom(settings.headroom);
    defaults.set_worker(Name::from(settings.server.node.as_str()));
    let accounts = settings.accounts.iter().map(|start| start.raw.clone());
    let mut accounts: Vec<_> = accounts.collect();
    let implicit = match settings.is_sandbox_by_default {
        true => accounts.pop(),
        false => None,
    };
    StartValues {
        accounts,
        policies: settings.policies.iter().map(|it| it.raw.clone()).collect(),
        implicit,
        defaults,
    }
}

fn bounds(server: &machine::Server) -> Bounds {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    Bounds {
        request_bytes_max: bytes(server.request_bytes_max),
        message_bytes_max: bytes(server.message_bytes_max),
        held_bytes_max: bytes(server.held_bytes_max),
        requests_max: server.requests_max as usize,
        request_timeout: Duration::from_nanos(server.request_timeout.0),
    }
}
