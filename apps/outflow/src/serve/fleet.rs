//! What a server shares with others: limits and policies, through Redis.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_config::valid::machine;
use outflow_core::engine::event::Event;
use outflow_core::time::{Mono, Now};
use outflow_ledger_redis::{RedisLedger, RedisLink, RedisSettings, Wake};
use outflow_ports::fleet::{Fleet, FleetAway, Shared, SharedDocument};
use outflow_ports::intake::Then;
use outflow_ports::ledger::{Ledger, LedgerWork};
use outflow_telemetry::catalogue::{Event as Told, LedgerCounts};
use outflow_telemetry::sink::Sink;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::files;
use super::server::ServeError;

/// Between two looks at whether the ledger is there.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two reports of what was asked of it.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Where limits are counted: by this node alone, or by all of a fleet.
pub enum NodeLedger {
    /// Nobody else counts them.
    Own,
    /// Redis does.
    Shared(Box<RedisLink>),
}

impl NodeLedger {
    /// The node's way to the ledger, if there is one.
    pub fn of(ledger: Option<&RedisLedger>, wake: Wake) -> Self {
        match ledger {
            Some(ledger) => Self::Shared(Box::new(ledger.link(wake))),
            None => Self::Own,
        }
    }
}

impl Ledger for NodeLedger {
    fn submit(&mut self, now: &Now, work: LedgerWork) {
        if let Self::Shared(link) = self {
            link.submit(now, work);
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        if let Self::Shared(link) = self {
            link.complete(now, done);
        }
    }

    fn next_completion(&self) -> Mono {
        match self {
            Self::Shared(link) => link.next_completion(),
            Self::Own => Mono::NEVER,
        }
    }
}

/// Begins to connect to the ledger that the settings name, if they do. The node
/// is known to it by the name that is kept in its data directory.
pub fn ledger(
    settings: &machine::Ledger,
    data_dir: &Path,
    runtime: &Handle,
) -> Result<Option<RedisLedger>, ServeError> {
    let Some(url) = &settings.url else {
        return Ok(None);
    };
    let name = files::ledger_name(data_dir)?;
    let redis = RedisSettings::new(url.expose())?
        .cluster(settings.is_cluster)
        .prefix(&settings.prefix)?
        .timeout(Duration::from_nanos(settings.timeout.0))?
        .reporter(&name);
    Ok(Some(RedisLedger::start(runtime, redis)))
}

/// Policies through the ledger.
pub struct SharedPolicies {
    ledger: RedisLedger,
    runtime: Handle,
}

impl SharedPolicies {
    /// Shares what is set here.
    pub fn new(ledger: RedisLedger, runtime: Handle) -> Self {
        Self { ledger, runtime }
    }
}

impl Fleet for SharedPolicies {
    fn publish(&self, id: String, value: Option<String>, then: Then<Result<u64, FleetAway>>) {
        let ledger = self.ledger.clone();
        self.runtime.spawn(async move {
            let published = ledger.publish(&id, value.as_deref(), None).await;
            then(published.map_err(|error| FleetAway(error.to_string())));
        });
    }

    fn read(&self, then: Then<Result<Shared, FleetAway>>) {
        let ledger = self.ledger.clone();
        self.runtime.spawn(async move {
            let read = ledger.read_policies().await;
            let shared = read.map(|(version, policies)| Shared {
                version,
                documents: policies
                    .into_iter()
                    .map(|policy| SharedDocument {
                        id: policy.id,
                        value: policy.json,
                        version: policy.version,
                    })
                    .collect(),
            });
            then(shared.map_err(|error| FleetAway(error.to_string())));
        });
    }

    fn latest(&self) -> u64 {
        *self.ledger.policies_version().borrow()
    }
}

/// Says `changed` whenever another node set a policy, until `stopped` is done.
pub async fn hear(ledger: RedisLedger, changed: Arc<Notify>, stopped: impl Future) {
    let hearing = async {
        let mut version = ledger.policies_version();
        while version.changed().await.is_ok() {
            changed.notify_one();
        }
    };
    tokio::select! {
        () = hearing => {}
        _ = stopped => {}
    }
}

/// Tells when the ledger is away and when it is back, until `stopped` is done.
pub async fn watch(ledger: RedisLedger, sink: Arc<dyn Sink>, stopped: impl Future) {
    let looks = async {
        let mut was_away = None;
        let mut counted = Instant::now();
        loop {
            let status = ledger.status();
            let is_away = status.away_since.is_some();
            // One that was never away need not be said to be back.
            if was_away.replace(is_away).unwrap_or(false) != is_away {
                let detail = status.last_error.as_deref().unwrap_or_default();
                sink.emit(&Told::Ledger { is_away, detail });
            }
            if counted.elapsed() >= COUNT_EVERY {
                counted = Instant::now();
                sink.emit(&Told::LedgerCounts(LedgerCounts {
                    round_trips: status.round_trips,
                    leased: status.tokens,
                    given_back: status.given_back,
                }));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = looks => {}
        _ = stopped => {}
    }
}
