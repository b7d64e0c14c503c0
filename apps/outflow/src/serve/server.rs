//! A server: store, node, transports and API put together, and taken apart in
//! an orderly way.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outflow_api::state::StartError;
use outflow_api::{ApiState, Bounds, Clock, Events, Parts, StartValues, chores};
use outflow_config::valid::machine;
use outflow_config::{Settings, TransportSettings};
use outflow_core::entropy::Entropy;
use outflow_core::name::Name;
use outflow_core::policy::set::Policies;
use outflow_core::time::{Nanos, Wall};
use outflow_pipeline::thread::{Ended, Surroundings};
use outflow_pipeline::{Handle, Ports, handle};
use outflow_ports::ledger::NoLedger;
use outflow_store_embedded::record::{KeptReceipts, RecordSettings};
use outflow_store_embedded::{EmbeddedStore, OpenError, Opened};
use outflow_telemetry::sink::{Sink, Sinks};
use outflow_transport_sandbox::{Sandbox, SandboxHandle};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::accounts::Accounts;
use super::deliveries::Deliveries;
use super::files::{self, FilesError};
use super::gate::Gate;
use super::health::Health;
use super::logs::{LogError, Telling};
use super::metrics::MetricsPage;
use super::resolver::{ResolvedIntake, TableResolver};
use super::timed_store::TimedStore;
use super::transports::{Carriers, Transports};

/// Threads of the executor.
const WORKERS: usize = 2;
/// How long the executor's last tasks may take when all else has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("{path}: {error}", path = .path.display())]
    DataDir { path: PathBuf, error: io::Error },
    #[error(
        "cannot listen on {address}: {error} (another address: --listen ADDRESS, or server.listen)"
    )]
    Listen {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("the system gives no threads or randomness: {0}")]
    System(io::Error),
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything that was under way is settled.
    Settled,
    /// The time was over; the rest is found again at the next start.
    Unsettled,
    /// The node's thread panicked.
    Panicked,
}

/// A running server.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// What the store found.
    pub opened: Opened,
    /// Where the administrator's token is, if it is there.
    pub token: Option<PathBuf>,
    /// To look into the sandbox.
    pub sandbox: SandboxHandle,
    /// Whether nothing can leave the machine.
    pub is_sandboxed: bool,
    data_dir: PathBuf,
    shutdown_timeout: Nanos,
    node: Handle,
    state: ApiState,
    ended: Option<oneshot::Receiver<End>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    runtime: Runtime,
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Wall {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        Wall(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

impl Server {
    /// Starts a server. What happens is written to `log`.
    pub fn start(
        settings: &Settings,
        log: impl io::Write + Send + 'static,
    ) -> Result<Self, ServeError> {
        let data_dir = settings.server.data_dir.clone();
        make_private(&data_dir)?;
        let (node, inbox) = handle::open();
        let waker = node.waker();
        let wake = Arc::new(move || waker.wake());
        let (store, opened) = EmbeddedStore::open(&data_dir, store_settings(settings), wake)?;
        let telling = Telling::open(settings, log)?;
        let health = Arc::new(Health::new(data_dir.clone(), settings.store.reserve_bytes));
        let registry = store.registry();
        let token = files::admin_token(&data_dir, &*registry, SystemClock.now())?;
        let sandbox = sandbox(settings)?;
        let carriers = Carriers::default();
        let gate = Arc::new(Gate::new(node.clone()));
        let events = Arc::new(Events::default());
        let sink = sinks(&telling, Arc::clone(&health), Arc::clone(&events));
        let state = ApiState::new(Parts {
            intake: Arc::new(ResolvedIntake(node.clone())),
            query: Arc::new(node.clone()),
            control: Arc::clone(&gate) as _,
            registry,
            receipts: store.receipts(),
            metrics: Arc::new(MetricsPage {
                metrics: Arc::clone(&telling.metrics),
                node: node.clone(),
                logs: Arc::clone(&telling.logs),
                attempts: telling.attempts.clone(),
            }),
            readiness: health,
            clock: Arc::new(SystemClock),
            start: start_values(settings),
            account_sink: Arc::new(Accounts {
                carriers: carriers.clone(),
                sandbox: sandbox.handle(),
                sink: Arc::clone(&sink),
            }),
            telemetry: Arc::clone(&sink),
            events,
            bounds: bounds(&settings.server),
        })?;
        let is_sandboxed = carriers.are_all_sandboxes();
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .enable_all()
            .thread_name("api")
            .build()
            .map_err(ServeError::System)?;
        let address = settings.server.listener.address;
        let listening = |error| ServeError::Listen { address, error };
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let router = outflow_api::router(state.clone());
        let sandbox_handle = sandbox.handle();
        let engine = settings.engine();
        let ports = Ports {
            store: TimedStore {
                store,
                sink: Arc::clone(&sink),
            },
            ledger: NoLedger,
            transport: Transports::new(carriers, sandbox),
            resolver: TableResolver::default(),
        };
        let thread = outflow_pipeline::thread::spawn(inbox, surroundings()?, move |now| {
            gate.begin(now, engine, ports, sink)
        });
        let ended = watched(thread.map_err(ServeError::System)?)?;
        let (stop, stopped) = watch::channel(false);
        let chores = chores::run(state.clone(), until(stopped.clone()));
        runtime.spawn(chores);
        let serving = runtime.spawn(outflow_api::serve(listener, router, until(stopped)));
        let server = Self {
            address,
            opened,
            token,
            sandbox: sandbox_handle,
            is_sandboxed,
            data_dir,
            shutdown_timeout: settings.server.shutdown_timeout,
            node,
            state,
            ended: Some(ended),
            stop,
            serving,
            runtime,
        };
        files::write_address(&server.data_dir, &server.url())?;
        Ok(server)
    }

    /// Where people and programs reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until `stop` comes or the node ends by itself, which it never
    /// should.
    pub fn run_until<T>(&mut self, stop: impl Future<Output = T>) -> Option<T> {
        let ended = self.ended.as_mut();
        self.runtime.block_on(async {
            match ended {
                Some(ended) => tokio::select! {
                    stopped = stop => Some(stopped),
                    _ = ended => None,
                },
                None => None,
            }
        })
    }

    /// Takes nothing more in, lets what is under way end, and closes all.
    /// `hurry` ends the waiting.
    pub fn stop(mut self, hurry: impl Future<Output = ()>) -> End {
        self.node.shut_down(self.shutdown_timeout);
        let Some(ended) = self.ended.take() else {
            return End::Panicked;
        };
        let node = self.node.clone();
        // Until the node has ended, callers hear why they are refused.
        let end = self.runtime.block_on(async move {
            tokio::pin!(ended);
            tokio::select! {
                end = &mut ended => return end.unwrap_or(End::Panicked),
                () = hurry => node.shut_down(Nanos::ZERO),
            }
            ended.await.unwrap_or(End::Panicked)
        });
        self.state.close();
        self.stop.send_replace(true);
        let serving = &mut self.serving;
        // A task that panicked has nothing more to say.
        let _ = self.runtime.block_on(serving);
        self.runtime.shutdown_timeout(FAREWELL);
        files::remove_address(&self.data_dir);
        end
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // If nobody can stop it any more, it is to stop.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Tells how the node's thread ended, once the store is closed.
fn watched(
    thread: thread::JoinHandle<Ended<TimedStore, NoLedger, Transports, TableResolver>>,
) -> Result<oneshot::Receiver<End>, ServeError> {
    let (sender, ended) = oneshot::channel();
    let watch = move || {
        let end = match thread.join() {
            Ok(Ended { settled, ports }) => {
                drop(ports);
                if settled {
                    End::Settled
                } else {
                    End::Unsettled
                }
            }
            Err(_) => End::Panicked,
        };
        // Nobody listens if the process is on its way out already.
        let _ = sender.send(end);
    };
    let builder = thread::Builder::new().name("node-watch".to_owned());
    builder.spawn(watch).map_err(ServeError::System)?;
    Ok(ended)
}

fn surroundings() -> Result<Surroundings, ServeError> {
    let no_entropy = |error: getrandom::Error| ServeError::System(io::Error::other(error));
    let mut draws = Entropy(getrandom::u64().map_err(no_entropy)?);
    Ok(Surroundings {
        entropy: Box::new(move || draws.draw()),
        // All of them go to the sinks as well.
        alert: Box::new(|_| ()),
    })
}

/// The first counts destinations.
fn sinks(telling: &Telling, health: Arc<Health>, events: Arc<Events>) -> Arc<dyn Sink> {
    let mut sinks: Vec<Arc<dyn Sink>> = vec![
        Arc::clone(&telling.metrics) as _,
        Arc::clone(&telling.logs) as _,
        health,
        events,
    ];
    sinks.extend(telling.attempts.clone().map(|log| log as _));
    Arc::new(Sinks(sinks))
}

/// Messages of others are in it.
fn make_private(dir: &Path) -> Result<(), ServeError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| ServeError::DataDir {
        path: dir.to_owned(),
        error,
    })
}

fn sandbox(settings: &Settings) -> Result<Sandbox, ServeError> {
    let kept = settings.accounts.iter().filter_map(|start| {
        let TransportSettings::Sandbox(sandbox) = &start.account.transport else {
            return None;
        };
        Some(sandbox.keep as usize)
    });
    let sandbox = Sandbox::new(outflow_transport_sandbox::Settings {
        seed: getrandom::u64().map_err(|error| ServeError::System(io::Error::other(error)))?,
        kept_max: kept.max().unwrap_or(1_000),
    });
    if let Some(path) = &settings.log.sandbox {
        let open = Deliveries::open(path).map_err(|error| ServeError::DataDir {
            path: path.clone(),
            error,
        });
        let mut deliveries = open?;
        // The sandbox takes a message also if the disk does not take the line.
        sandbox
            .handle()
            .watch(move |kept| drop(deliveries.write(kept)));
    }
    Ok(sandbox)
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

/// What the store is told.
pub fn store_settings(settings: &Settings) -> outflow_store_embedded::Settings {
    let usual = outflow_store_embedded::Settings::default();
    outflow_store_embedded::Settings {
        envelope_segment_bytes: settings.store.segment_bytes,
        body_segment_bytes: settings.store.body_segment_bytes,
        reserve_bytes: settings.store.reserve_bytes,
        key_life: settings.retention.idempotency,
        record: RecordSettings {
            receipts: match settings.store.receipts {
                machine::KeptReceipts::All => KeptReceipts::All,
                machine::KeptReceipts::Failures => KeptReceipts::Failures,
                machine::KeptReceipts::None => KeptReceipts::None,
            },
            receipts_for: settings.retention.receipts,
            dead_letters_for: settings.retention.dead_letters,
            ..usual.record
        },
        ..usual
    }
}
