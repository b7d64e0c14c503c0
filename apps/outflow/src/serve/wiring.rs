//! What the parts of a server know of each other.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outflow_api::detours::Detours;
use outflow_api::{Bounds, Clock, Events, Parts, StartValues};
use outflow_config::Settings;
use outflow_config::policy::built_in::built_in;
use outflow_config::valid::machine;
use outflow_core::classify::Rules;
use outflow_core::name::Name;
use outflow_core::policy::set::Policies;
use outflow_core::time::Wall;
use outflow_pipeline::Handle;
use outflow_ports::history::{SLICE_S, Span};
use outflow_ports::intake::Intake;
use outflow_resolver_dns::Directory;
use outflow_store_embedded::EmbeddedStore;
use outflow_telemetry::catalogue::{Event, Level};
use outflow_telemetry::sink::{Sink, Sinks};
use outflow_transport_sandbox::SandboxHandle;
use outflow_transport_smtp::{Opened, Returning, SmtpTransport};
use tokio::runtime;

use super::accounts::Accounts;
use super::gate::Gate;
use super::health::Health;
use super::history::Historian;
use super::logs::Telling;
use super::metrics::MetricsPage;
use super::rates::Rates;
use super::resolver::ResolvedIntake;
use super::returns::{Grounds, Returns};
use super::server::ServeError;
use super::transports::Carriers;
use super::troubles::{Troubled, Troubles};

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
    /// Who is asked before something is done.
    pub throttle: Arc<outflow_throttle::Service>,
    /// Who carries whose messages.
    pub carriers: Carriers,
    /// To look into the sandbox.
    pub sandbox: SandboxHandle,
    /// To tell transports of accounts, and to have them read files again.
    pub accounts: Arc<Accounts>,
    /// Where everything that happens goes.
    pub sink: Arc<dyn Sink>,
    detours: Arc<Detours>,
    troubles: Troubles,
    directory: Arc<Directory>,
    health: Arc<Health>,
    events: Arc<Events>,
}

impl Wiring {
    /// Nothing flows yet. SMTP runs on `runtime`.
    pub fn new(
        settings: &Settings,
        telling: &Telling,
        (node, throttle): (Handle, Arc<outflow_throttle::Service>),
        sandbox: SandboxHandle,
        directory: Arc<Directory>,
        runtime: runtime::Handle,
    ) -> (Self, SmtpTransport) {
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
            Arc::clone(&telling.lately) as _,
        ];
        sinks.extend(telling.attempts.clone().map(|log| log as _));
        sinks.extend(telling.trail.clone().map(|trail| trail as _));
        let sink: Arc<dyn Sink> = Arc::new(Sinks(sinks));
        let troubles = Troubles::default();
        let smtp = smtp(runtime, &node, Arc::clone(&sink), troubles.clone());
        let carriers = Carriers::default();
        let accounts = Accounts {
            carriers: carriers.clone(),
            sandbox: sandbox.clone(),
            smtp: smtp.handle(),
            directory: Arc::clone(&directory),
            sink: Arc::clone(&sink),
            troubles: troubles.clone(),
            known: Mutex::default(),
        };
        let wiring = Self {
            gate: Arc::new(Gate::new(node.clone(), Arc::clone(&throttle))),
            throttle,
            node,
            carriers,
            sandbox,
            accounts: Arc::new(accounts),
            sink,
            detours: Arc::default(),
            troubles,
            directory,
            health,
            events,
        };
        (wiring, smtp)
    }

    /// The way in for messages.
    pub fn intake(&self) -> Arc<dyn Intake> {
        Arc::new(ResolvedIntake {
            node: self.node.clone(),
            directory: Arc::clone(&self.directory),
            detours: Arc::clone(&self.detours),
        })
    }

    /// What comes back, and what is learnt from it. Mail that goes out from now
    /// on carries return addresses.
    pub fn returns(
        &self,
        settings: &Settings,
        store: &EmbeddedStore,
        rules: Rules,
        smtp: &mut SmtpTransport,
    ) -> Result<Returns, ServeError> {
        let grounds = Grounds {
            suppressions: store.suppressions(),
            receipts: store.receipts(),
            query: Arc::new(self.node.clone()),
            control: Arc::clone(&self.gate) as _,
            rules,
            sink: Arc::clone(&self.sink),
        };
        let returns = Returns::open(settings, grounds)?;
        if let Some(paths) = returns.paths.clone() {
            smtp.set_return_to(Arc::new(move |id| Returning {
                sender: paths.address(id),
                field: paths.field(id),
            }));
        }
        Ok(returns)
    }

    /// Who writes down what was sent where.
    pub fn historian(&self, store: &EmbeddedStore, telling: &Telling) -> Historian {
        let now = SystemClock.now();
        let lately = store.history().read(&Span {
            since: now,
            until: now,
            destination: None,
            step_s: SLICE_S,
            rows_max: 0,
        });
        let rates = lately.map_or_else(|_| Rates::default(), |page| Rates::recalled(&page.rates));
        Historian {
            lately: Arc::clone(&telling.lately),
            node: self.node.clone(),
            receipts: store.receipts(),
            history: store.history(),
            sink: Arc::clone(&self.sink),
            rates,
        }
    }

    /// What the API stands on.
    pub fn parts(
        &self,
        settings: &Settings,
        store: &EmbeddedStore,
        telling: &Telling,
        returns: &Returns,
    ) -> Parts {
        Parts {
            intake: self.intake(),
            query: Arc::new(Troubled {
                node: self.node.clone(),
                troubles: self.troubles.clone(),
            }),
            control: Arc::clone(&self.gate) as _,
            registry: store.registry(),
            receipts: store.receipts(),
            suppressions: Arc::clone(&returns.list) as _,
            hearing: Arc::clone(&returns.hearing),
            history: store.history(),
            metrics: Arc::new(MetricsPage {
                metrics: Arc::clone(&telling.metrics),
                node: self.node.clone(),
                throttle: Arc::clone(&self.throttle),
                suppressed: Arc::clone(&returns.list),
                logs: Arc::clone(&telling.logs),
                attempts: telling.attempts.clone(),
            }),
            readiness: Arc::clone(&self.health) as _,
            clock: Arc::new(SystemClock),
            throttle: Arc::clone(&self.throttle) as _,
            start: start_values(settings),
            account_sink: Arc::clone(&self.accounts) as _,
            fleet: None,
            telemetry: Arc::clone(&self.sink),
            detours: Arc::clone(&self.detours),
            events: Arc::clone(&self.events),
            bounds: bounds(&settings.server),
        }
    }
}

/// Mail by SMTP. Why a session could not be opened is logged and remembered for
/// people.
fn smtp(
    runtime: runtime::Handle,
    node: &Handle,
    sink: Arc<dyn Sink>,
    troubles: Troubles,
) -> SmtpTransport {
    let waker = node.waker();
    let wake = Arc::new(move || waker.wake());
    SmtpTransport::new(runtime, wake, move |opened: Opened<'_>| {
        let Opened {
            account,
            destination,
            result,
        } = opened;
        let said = result.err().map(ToString::to_string);
        if let Some(said) = &said {
            let text = format!("account {account}: no session to {destination}: {said}");
            sink.emit(&Event::Noted {
                level: Level::Warn,
                part: "smtp",
                text: &text,
            });
        }
        troubles.note(account, destination.to_string(), said);
    })
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
        built_in: match settings.destinations.policies {
            true => built_in(),
            false => Vec::new(),
        },
        implicit,
        defaults,
        runbook: settings.runbook.clone(),
        warm_ups: settings.warm_ups.clone(),
        secrets_dir: settings.server.secrets_dir.clone(),
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
