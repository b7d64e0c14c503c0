//! The throttle: limits for programs that ask before they act, over HTTP and,
//! if `[throttle]` listens, over the Redis protocol, with the API's tokens at its
//! door.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use outflow_api::ApiState;
use outflow_api::grant::Scope;
use outflow_config::Settings;
use outflow_config::valid::machine::Listener;
use outflow_core::limit::Fill;
use outflow_intake_resp::{Doorkeeper, Parts, Pass, RespIntake};
use outflow_ledger_redis::RedisLedger;
use outflow_pipeline::Handle;
use outflow_telemetry::sink::{Sink, Sinks};
use outflow_throttle::grants_log::GrantsLog;
use outflow_throttle::{Link, Service};
use tokio::runtime::Runtime;

use super::logs::Telling;
use super::server::ServeError;
use super::tls::Certificate;

/// The tokens of the API, at the door of another listener.
struct Door(ApiState);

impl Doorkeeper for Door {
    fn admit(&self, token: &str) -> Option<Pass> {
        let known = self.0.find_token(token)?;
        (known.scope >= Scope::Submit).then(|| Pass {
            party: known.party().to_owned(),
            tenant: known.tenant.clone(),
            classes: known.classes.clone(),
        })
    }
}

/// What the throttle counts with.
pub struct Counters<'a> {
    /// The ledger of a fleet, if this is a node of one.
    pub ledger: Option<&'a RedisLedger>,
    /// The node, which counts the limits of policies on a machine of its own.
    pub node: Handle,
}

/// Starts the throttle. With a data directory that was used before, limits begin
/// empty: nobody knows what was granted just before.
pub fn start(
    settings: &Settings,
    is_fresh: bool,
    counters: Counters<'_>,
    telling: &Telling,
) -> Result<Arc<Service>, ServeError> {
    let system = |error| ServeError::System(io::Error::other(error));
    let log = settings.throttle.grants_log.as_ref().map(|path| {
        GrantsLog::open(path).map_err(|error| ServeError::DataDir {
            path: path.clone(),
            error,
        })
    });
    Service::start(outflow_throttle::Settings {
        throttle: outflow_core::throttle::Settings {
            headroom: settings.headroom,
            fill: match is_fresh {
                true => Fill::Full,
                false => Fill::Empty,
            },
            ..outflow_core::throttle::Settings::default()
        },
        seed: getrandom::u64().map_err(system)?,
        grants_log: log.transpose()?,
        link: counters.ledger.cloned().map(|ledger| {
            let link: Link = Box::new(move |wake| Box::new(ledger.link(wake)));
            link
        }),
        lender: Some(Arc::new(counters.node)),
        sink: Some(Arc::new(Sinks(vec![
            Arc::clone(&telling.metrics) as _,
            Arc::clone(&telling.logs) as _,
        ]))),
    })
    .map_err(ServeError::System)
}

/// The listener of `[throttle]`: bound, not yet serving.
pub struct Throttle {
    /// Takes commands.
    pub intake: RespIntake,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its certificate.
    pub certificate: Certificate,
}

/// Binds the listener.
pub fn bind(
    runtime: &Runtime,
    settings: &Settings,
    listener: &Listener,
    state: &ApiState,
    service: Arc<Service>,
    sink: Arc<dyn Sink>,
) -> Result<Throttle, ServeError> {
    let (certificate, speaking) = Certificate::read("throttle", listener.tls.as_ref(), &[], sink)?;
    let parts = Parts {
        throttle: service,
        doorkeeper: Arc::new(Door(state.clone())),
        tls: speaking,
    };
    let mut rules = outflow_intake_resp::Settings::at(listener.address);
    rules.connections_max = settings.throttle.connections_max as usize;
    rules.connections_per_address_max = rules.connections_max.div_ceil(2);
    let address = listener.address;
    let failed = |error| ServeError::Listen {
        address,
        setting: "throttle.listen",
        error,
    };
    let intake = runtime.block_on(RespIntake::bind(rules, parts));
    let intake = intake.map_err(failed)?;
    let address = intake.local_addr().map_err(failed)?;
    // There is one such listener.
    let _ = state.listeners.throttle.set(intake.places());
    Ok(Throttle {
        intake,
        address,
        certificate,
    })
}
