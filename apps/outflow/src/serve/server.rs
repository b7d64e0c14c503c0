//! A server: store, node, transports and API put together, and taken apart in
//! an orderly way.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use outflow_api::state::StartError;
use outflow_api::{ApiState, Clock, chores, runbook};
use outflow_config::valid::machine;
use outflow_config::{Settings, TransportSettings};
use outflow_core::entropy::Entropy;
use outflow_core::time::{Nanos, Now};
use outflow_ledger_redis::{RedisLedger, SettingsError};
use outflow_pipeline::thread::{Ended, Surroundings};
use outflow_pipeline::{Handle, Ports, handle};
use outflow_ports::history::History;
use outflow_ports::registry::Registry;
use outflow_resolver_dns::DnsResolver;
use outflow_store_embedded::record::{KeptReceipts, RecordSettings};
use outflow_store_embedded::{EmbeddedStore, OpenError, Opened};
use outflow_telemetry::sink::Sink;
use outflow_transport_sandbox::{Sandbox, SandboxHandle};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::accounts::Accounts;
use super::deliveries::Deliveries;
use super::dns_watch;
use super::files::{self, FilesError};
use super::fleet::{self, NodeLedger, SharedPolicies};
use super::logs::{LogError, Telling};
use super::memory;
use super::resolver::{self, DirectoryError};
use super::returns::Returns;
use super::submission;
use super::throttle;
use super::timed_store::TimedStore;
use super::tls::{Certificate, Speaking, TlsError};
use super::transports::Transports;
use super::wiring::{SystemClock, Wiring};
use crate::rules::RulesError;

/// Threads of the executor.
const WORKERS: usize = 2;
/// How long the executor's last tasks may take when all else has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("ledger.url: {0}")]
    Ledger(#[from] SettingsError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("{path}: {error}", path = .path.display())]
    DataDir { path: PathBuf, error: io::Error },
    #[error("cannot listen on {address}: {error} (another address: {setting})")]
    Listen {
        address: SocketAddr,
        setting: &'static str,
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
    /// Where it takes messages over SMTP.
    pub smtp: Option<SocketAddr>,
    /// Where the throttle listens.
    pub throttle: Option<SocketAddr>,
    /// What the store found.
    pub opened: Opened,
    /// Where the administrator's token is, if it is there.
    pub token: Option<PathBuf>,
    /// To look into the sandbox.
    pub sandbox: SandboxHandle,
    /// Whether nothing can leave the machine.
    pub is_sandboxed: bool,
    /// What was sent where.
    pub history: Arc<dyn History>,
    /// What operators set, and who did.
    pub registry: Arc<dyn Registry>,
    asked: Arc<outflow_throttle::Service>,
    returns: Returns,
    accounts: Arc<Accounts>,
    certificates: Arc<Vec<Certificate>>,
    is_secure: bool,
    data_dir: PathBuf,
    shutdown_timeout: Nanos,
    node: Handle,
    state: ApiState,
    ended: Option<oneshot::Receiver<End>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    /// What else is to end before the process does.
    others: Vec<JoinHandle<()>>,
    runtime: Runtime,
}

impl Server {
    /// Starts a server. What happens is written to `log`.
    pub fn start(
        settings: &Settings,
        log: impl io::Write + Send + 'static,
    ) -> Result<Self, ServeError> {
        let data_dir = settings.server.data_dir.clone();
        let rules = crate::rules::load(&settings.classify_rules)?;
        let is_fresh = files::is_empty(&data_dir);
        files::make_private(&data_dir)?;
        files::tighten(&data_dir)?;
        let (node, inbox) = handle::open();
        let waker = node.waker();
        let wake = Arc::new(move || waker.wake());
        let (store, opened) = EmbeddedStore::open(&data_dir, store_settings(settings), wake)?;
        let telling = Telling::open(settings, log)?;
        let telling = telling
            .audited(store.registry())
            .map_err(ServeError::System)?;
        let token = files::admin_token(&data_dir, &*store.registry(), SystemClock.now())?;
        let listener = &settings.server.listener;
        let sandbox = sandbox(settings)?;
        let runtime = runtime()?;
        let executor = runtime.handle().clone();
        let directory = resolver::directory(settings, executor.clone())?;
        let shared = fleet::ledger(&settings.ledger, &data_dir, &executor)?;
        let waker = node.waker();
        let ledger = NodeLedger::of(shared.as_ref(), Arc::new(move || waker.wake()));
        let policies = shared
            .clone()
            .map(|ledger| SharedPolicies::new(ledger, executor.clone()));
        let waker = node.waker();
        let wake = Arc::new(move || waker.wake());
        let dns = DnsResolver::new(Arc::clone(&directory), executor.clone(), wake);
        let handle = sandbox.handle();
        let watched_dns = Arc::clone(&directory);
        let counters = throttle::Counters {
            ledger: shared.as_ref(),
            node: node.clone(),
        };
        let asked = throttle::start(settings, is_fresh, counters, &telling)?;
        let ways = (node, Arc::clone(&asked));
        let (wiring, mut smtp) = Wiring::new(settings, &telling, ways, handle, directory, executor);
        let returns = wiring.returns(settings, &store, rules.clone(), &mut smtp)?;
        let mut parts = wiring.parts(settings, &store, &telling, &returns);
        parts.fleet = policies.map(|it| Arc::new(it) as _);
        let historian = wiring.historian(&store, &telling);
        let (history, registry) = (store.history(), store.registry());
        let state = ApiState::new(parts)?;
        let sink = Arc::clone(&wiring.sink);
        let (certificate, speaking) =
            Certificate::read("server", listener.tls.as_ref(), &[b"http/1.1"], sink)?;
        let mut certificates = vec![certificate];
        let is_sandboxed = wiring.carriers.are_all_sandboxes();
        let (listener, address) = bind(&runtime, listener.address)?;
        let submission = settings.smtp.as_ref().map(|listener| {
            let (intake, sink) = (wiring.intake(), Arc::clone(&wiring.sink));
            let hearing = Arc::clone(&returns.hearing);
            submission::bind(
                &runtime,
                settings,
                listener,
                &state,
                (intake, hearing),
                sink,
            )
        });
        let submission = submission.transpose()?;
        let resp = settings.throttle.listener.as_ref().map(|listener| {
            let (throttle, sink) = (Arc::clone(&asked), Arc::clone(&wiring.sink));
            throttle::bind(&runtime, settings, listener, &state, throttle, sink)
        });
        let resp = resp.transpose()?;
        let ports = Ports {
            store: TimedStore {
                store,
                sink: Arc::clone(&wiring.sink),
            },
            ledger,
            transport: Transports::new(wiring.carriers.clone(), sandbox, smtp),
            resolver: dns,
        };
        let dns_sink = Arc::clone(&wiring.sink);
        let ledger_sink = Arc::clone(&wiring.sink);
        let (gate, sink, engine) = (wiring.gate, wiring.sink, settings.engine());
        let screen = Arc::clone(&returns.list);
        let begin = move |now: &Now| gate.begin(now, engine, rules, ports, (sink, screen));
        let thread = outflow_pipeline::thread::spawn(inbox, surroundings()?, begin);
        let ended = watched(thread.map_err(ServeError::System)?)?;
        let (stop, stopped) = watch::channel(false);
        runtime.spawn(chores::run(state.clone(), until(stopped.clone())));
        runtime.spawn(runbook::run(state.clone(), until(stopped.clone())));
        runtime.spawn(memory::keep_small(until(stopped.clone())));
        runtime.spawn(dns_watch::watch(
            watched_dns,
            dns_sink,
            until(stopped.clone()),
        ));
        if let Some(shared) = shared {
            share(&runtime, shared, &state, ledger_sink, &stopped);
        }
        let is_secure = speaking.borrow().is_some();
        let smtp = submission.as_ref().map(|it| it.address);
        let mut others = vec![runtime.spawn(historian.run(until(stopped.clone())))];
        if let Some(submission) = submission {
            let serving = submission.smtp.serve(until(stopped.clone()));
            others.push(runtime.spawn(serving));
            certificates.push(submission.certificate);
        }
        let throttle = resp.as_ref().map(|it| it.address);
        if let Some(resp) = resp {
            let serving = resp.intake.serve(until(stopped.clone()));
            others.push(runtime.spawn(serving));
            certificates.push(resp.certificate);
        }
        let serving = runtime.spawn(serve(listener, state.clone(), speaking, stopped));
        let server = Self {
            address,
            smtp,
            throttle,
            asked,
            returns,
            opened,
            token,
            sandbox: wiring.sandbox,
            is_sandboxed,
            history,
            registry,
            accounts: wiring.accounts,
            certificates: Arc::new(certificates),
            is_secure,
            data_dir,
            shutdown_timeout: settings.server.shutdown_timeout,
            node: wiring.node,
            state,
            ended: Some(ended),
            stop,
            serving,
            others,
            runtime,
        };
        files::write_address(&server.data_dir, &server.url())?;
        Ok(server)
    }

    /// Does something where the executor is at hand.
    pub fn within<T>(&self, what: impl FnOnce() -> T) -> T {
        let _entered = self.runtime.enter();
        what()
    }

    /// Where people and programs reach it.
    pub fn url(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Reads passwords, certificates and keys again.
    pub fn reloads(&self) -> impl Fn() + use<> {
        let accounts = Arc::clone(&self.accounts);
        let certificates = Arc::clone(&self.certificates);
        move || {
            accounts.reload();
            certificates.iter().for_each(Certificate::reload);
        }
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
        self.returns.close();
        self.state.close();
        self.asked.close();
        self.stop.send_replace(true);
        let serving = &mut self.serving;
        // A task that panicked has nothing more to say.
        let _ = self.runtime.block_on(serving);
        for other in &mut self.others {
            let _ = self.runtime.block_on(other);
        }
        self.runtime.shutdown_timeout(FAREWELL);
        files::remove_address(&self.data_dir);
        end
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // If nobody can stop it any more, it is to stop.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Serves the API, over TLS if there is a certificate.
async fn serve(
    listener: TcpListener,
    state: ApiState,
    speaking: Speaking,
    stopped: watch::Receiver<bool>,
) {
    let (doors, router) = (Arc::clone(&state.doors), outflow_api::router(state));
    let first = speaking.borrow().clone();
    match first {
        None => {
            let plain = |stream| std::future::ready(Ok(stream));
            outflow_api::serve_within(listener, router, until(stopped), plain, doors).await;
        }
        Some(first) => {
            // Who comes after a certificate was read again is shown that one.
            let secure = move |stream| {
                let latest = speaking.borrow().clone();
                TlsAcceptor::from(latest.unwrap_or_else(|| Arc::clone(&first))).accept(stream)
            };
            outflow_api::serve_within(listener, router, until(stopped), secure, doors).await;
        }
    }
}

fn runtime() -> Result<Runtime, ServeError> {
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .thread_name("api")
        .build()
        .map_err(ServeError::System)
}

/// Follows what other nodes set, and tells how the ledger is.
fn share(
    runtime: &Runtime,
    ledger: RedisLedger,
    state: &ApiState,
    sink: Arc<dyn Sink>,
    stopped: &watch::Receiver<bool>,
) {
    let changed = Arc::new(Notify::new());
    let following =
        outflow_api::fleet::run(state.clone(), Arc::clone(&changed), until(stopped.clone()));
    runtime.spawn(following);
    runtime.spawn(fleet::hear(ledger.clone(), changed, until(stopped.clone())));
    runtime.spawn(fleet::watch(ledger, sink, until(stopped.clone())));
}

fn bind(runtime: &Runtime, address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |error| ServeError::Listen {
        address,
        setting: "--listen ADDRESS, or server.listen",
        error,
    };
    let _within = runtime.enter();
    let listener = outflow_api::listen(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Tells how the node's thread ended, once the store is closed.
fn watched(
    thread: thread::JoinHandle<Ended<TimedStore, NodeLedger, Transports, DnsResolver>>,
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
            history_for: settings.retention.history,
            history_rows_max: settings.retention.history_rows,
            audit_for: settings.retention.audit,
            audit_rows_max: settings.retention.audit_rows,
            ..usual.record
        },
        ..usual
    }
}
