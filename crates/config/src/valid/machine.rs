//! The machine: listeners, store, ledger, retention, logs, metrics.

use std::net::SocketAddr;
use std::path::PathBuf;

use outflow_core::engine::admission::FlowCaps;
use outflow_core::time::Nanos;

use crate::figure;
use crate::problem::Problems;
use crate::raw::{
    RawLedger, RawListener, RawLog, RawMetrics, RawRetention, RawServer, RawStore, RawThrottle,
};
use crate::secret::Secret;

/// The HTTP API and the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub listener: Listener,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Where files must lie that accounts name over the API.
    pub secrets_dir: PathBuf,
    /// The name of this node.
    pub node: String,
    /// How long to wait for what is on its way when stopping.
    pub shutdown_timeout: Nanos,
    /// How long one request may take.
    pub request_timeout: Nanos,
    /// The largest request, in bytes.
    pub request_bytes_max: u64,
    /// The largest message, in bytes.
    pub message_bytes_max: u64,
    /// All requests that are being worked on together, in bytes.
    pub held_bytes_max: u64,
    /// How many requests are worked on at once.
    pub requests_max: u32,
    /// How many flows submissions may open.
    pub flow_caps: FlowCaps,
}

/// Where something listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Address and port.
    pub address: SocketAddr,
    /// How it is protected.
    pub tls: Option<TlsFiles>,
    /// Whether it may be reached from elsewhere without TLS.
    pub insecure: bool,
}

/// Limits for programs that ask before they act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Over the Redis protocol, if it listens.
    pub listener: Option<Listener>,
    /// How many clients may be connected there at once.
    pub connections_max: u32,
    /// Where a line is written for every limit that is granted.
    pub grants_log: Option<PathBuf>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Where messages are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// A database; embedded without it.
    pub url: Option<Secret>,
    /// How large a file of envelopes becomes.
    pub segment_bytes: u64,
    /// How large a file of bodies becomes.
    pub body_segment_bytes: u64,
    /// Free bytes below which no messages are taken.
    pub reserve_bytes: u64,
    /// Of which messages a receipt is kept.
    pub receipts: KeptReceipts,
}

/// Of which messages a receipt is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptReceipts {
    /// Of all.
    All,
    /// Of those that were not delivered.
    Failures,
    /// Of dead letters only.
    None,
}

/// Where the counts of limits live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// One for a fleet; in memory without it.
    pub url: Option<Secret>,
    /// Whether that is a cluster.
    pub is_cluster: bool,
    /// What its keys begin with.
    pub prefix: String,
    /// When it counts as away.
    pub timeout: Nanos,
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bodies, after their message was done with.
    pub bodies: Nanos,
    /// Receipts.
    pub receipts: Nanos,
    /// Dead letters.
    pub dead_letters: Nanos,
    /// Idempotency keys, after their message was done with.
    pub idempotency: Nanos,
    /// What was sent where.
    pub history: Nanos,
    /// About how many rows of that at most.
    pub history_rows: u64,
    /// Who changed what.
    pub audit: Nanos,
    /// About how many lines of that at most.
    pub audit_rows: u64,
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// JSON, or text for people.
    pub json: bool,
    /// The least important that is logged.
    pub level: Level,
    /// Whether recipients' addresses are logged.
    pub recipients: bool,
    /// Where a line is written for every attempt.
    pub attempts: Option<PathBuf>,
    /// Where a line is written for every message that a sandbox takes.
    pub sandbox: Option<PathBuf>,
}

/// How important a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    /// The word used in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How many values labels may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Metrics {
    pub destinations: usize,
    pub limits: usize,
    pub accounts: usize,
}

/// A length of time that the table of keys has checked.
pub(super) fn span(text: &str) -> Nanos {
    figure::span(text).expect("the table of keys checks lengths of time")
}

fn size(text: &str) -> u64 {
    figure::size(text).expect("the table of keys checks sizes")
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("the table of keys checks addresses")
}

pub(super) fn server(raw: &RawServer, problems: &mut Problems) -> Server {
    let listener = Listener {
        address: address(&raw.listen),
        tls: tls(&raw.tls_cert, &raw.tls_key, "/server", problems),
        insecure: raw.insecure,
    };
    check_reach(&listener, "/server", problems);
    let [request, message, held] = [
        &raw.request_size_max,
        &raw.message_size_max,
        &raw.held_size_max,
    ]
    .map(|text| size(text));
    if message > request {
        problems.add(
            "/server/message_size_max",
            "must not be above request_size_max: a message comes in a request",
        );
    }
    if request > held {
        problems.add(
            "/server/request_size_max",
            "must not be above held_size_max: such a request would never be worked on",
        );
    }
    let data_dir = PathBuf::from(&raw.data_dir);
    let secrets_dir = raw.secrets_dir.as_ref().map(PathBuf::from);
    Server {
        listener,
        secrets_dir: secrets_dir.unwrap_or_else(|| data_dir.join("secrets")),
        data_dir,
        node: raw.node.clone(),
        shutdown_timeout: span(&raw.shutdown_timeout),
        request_timeout: span(&raw.request_timeout),
        request_bytes_max: request,
        message_bytes_max: message,
        held_bytes_max: held,
        requests_max: raw.requests_max,
        flow_caps: FlowCaps {
            tenant_max: raw.tenant_flows_max as usize,
            total_max: raw.flows_max as usize,
        },
    }
}

/// A further listener, which uses the server's certificate unless it has one.
pub(super) fn listener(
    raw: &RawListener,
    server: &Server,
    at: &str,
    problems: &mut Problems,
) -> Option<Listener> {
    let own = tls(&raw.tls_cert, &raw.tls_key, at, problems);
    let listener = Listener {
        address: address(raw.listen.as_deref()?),
        tls: own.or_else(|| server.listener.tls.clone()),
        insecure: raw.insecure,
    };
    check_reach(&listener, at, problems);
    Some(listener)
}

/// The throttle.
pub(super) fn throttle(raw: &RawThrottle, server: &Server, problems: &mut Problems) -> Throttle {
    let listener = RawListener {
        listen: raw.listen.clone(),
        tls_cert: raw.tls_cert.clone(),
        tls_key: raw.tls_key.clone(),
        insecure: raw.insecure,
    };
    Throttle {
        listener: self::listener(&listener, server, "/throttle", problems),
        connections_max: raw.connections_max,
        grants_log: raw.grants_log.as_ref().map(PathBuf::from),
    }
}

fn tls(
    cert: &Option<String>,
    key: &Option<String>,
    at: &str,
    problems: &mut Problems,
) -> Option<TlsFiles> {
    match (cert, key) {
        (Some(cert), Some(key)) => Some(TlsFiles {
            cert: PathBuf::from(cert),
            key: PathBuf::from(key),
        }),
        (Some(_), None) => {
            problems.add(
                format!("{at}/tls_cert"),
                "needs its key: write tls_key beside it",
            );
            None
        }
        (None, Some(_)) => {
            problems.add(
                format!("{at}/tls_key"),
                "needs a certificate: write tls_cert beside it",
            );
            None
        }
        (None, None) => None,
    }
}

/// Tokens and passwords go over it, so others must not be able to listen in
/// because somebody forgot.
fn check_reach(listener: &Listener, at: &str, problems: &mut Problems) {
    let is_local = listener.address.ip().to_canonical().is_loopback();
    if is_local || listener.tls.is_some() || listener.insecure {
        return;
    }
    problems.add(
        format!("{at}/listen"),
        format!(
            "{} can be reached from other machines, without TLS: write tls_cert and tls_key, or \
             insecure = true if something in front of it protects it, or listen on 127.0.0.1",
            listener.address
        ),
    );
}

pub(super) fn store(raw: &RawStore) -> Store {
    Store {
        url: raw.url.as_deref().map(Secret::new),
        segment_bytes: size(&raw.segment_size),
        body_segment_bytes: size(&raw.body_segment_size),
        reserve_bytes: size(&raw.reserve_size),
        receipts: match raw.receipts.as_str() {
            "failures" => KeptReceipts::Failures,
            "none" => KeptReceipts::None,
            _ => KeptReceipts::All,
        },
    }
}

pub(super) fn ledger(raw: &RawLedger) -> Ledger {
    Ledger {
        url: raw.url.as_deref().map(Secret::new),
        is_cluster: raw.cluster,
        prefix: raw.prefix.clone(),
        timeout: span(&raw.timeout),
    }
}

pub(super) fn retention(raw: &RawRetention) -> Retention {
    Retention {
        bodies: match raw.bodies.as_str() {
            "settled" => Nanos::ZERO,
            length => span(length),
        },
        receipts: span(&raw.receipts),
        dead_letters: span(&raw.dead_letters),
        idempotency: span(&raw.idempotency),
        history: span(&raw.history),
        history_rows: raw.history_rows,
        audit: span(&raw.audit),
        audit_rows: raw.audit_rows,
    }
}

pub(super) fn log(raw: &RawLog) -> Log {
    let levels = [Level::Error, Level::Warn, Level::Debug, Level::Trace];
    let level = levels.into_iter().find(|level| level.as_str() == raw.level);
    Log {
        json: raw.format == "json",
        level: level.unwrap_or(Level::Info),
        recipients: raw.recipients,
        attempts: raw.attempts.as_ref().map(PathBuf::from),
        sandbox: raw.sandbox.as_ref().map(PathBuf::from),
    }
}

pub(super) fn metrics(raw: &RawMetrics) -> Metrics {
    Metrics {
        destinations: raw.destinations,
        limits: raw.limits,
        accounts: raw.accounts,
    }
}
