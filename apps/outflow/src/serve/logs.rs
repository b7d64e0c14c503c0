//! Where everything that happens goes: metrics, logs, the log of attempts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outflow_api::Clock as _;
use outflow_config::Settings;
use outflow_config::valid::machine;
use outflow_ports::registry::Registry;
use outflow_telemetry::catalogue::Level;
use outflow_telemetry::logs::Format;
use outflow_telemetry::metrics::Bounds;
use outflow_telemetry::writer::Writer;
use outflow_telemetry::{AttemptLog, Lately, LogSettings, Logs, Metrics, Sink};

use super::audit_trail::AuditTrail;
use super::wiring::SystemClock;

/// A log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be written: {error}", path = .path.display())]
pub struct LogError {
    path: PathBuf,
    error: io::Error,
}

/// Counts and writes what happens.
#[derive(Clone, Debug)]
pub struct Telling {
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The server's log.
    pub logs: Arc<Logs>,
    /// The log of attempts.
    pub attempts: Option<Arc<AttemptLog>>,
    /// What was sent where lately.
    pub lately: Arc<Lately>,
    /// What rules did, for the audit.
    pub trail: Option<Arc<AuditTrail>>,
}

impl Telling {
    /// As the settings say; the server's log goes to `out`.
    pub fn open(
        settings: &Settings,
        out: impl io::Write + Send + 'static,
    ) -> Result<Self, LogError> {
        let bounds = Bounds {
            destinations: settings.metrics.destinations,
            limits: settings.metrics.limits,
            accounts: settings.metrics.accounts,
        };
        let log = LogSettings {
            format: match settings.log.json {
                true => Format::Json,
                false => Format::Text,
            },
            level: level(settings.log.level),
            addresses: settings.log.recipients,
        };
        let failed = |path: &Path| {
            let path = path.to_owned();
            |error| LogError { path, error }
        };
        let writer = Writer::new("log", out).map_err(failed(Path::new("the log")))?;
        let attempts = settings.log.attempts.as_ref().map(|path| {
            let writer = Writer::to_file("attempt-log", path).map_err(failed(path))?;
            Ok::<_, LogError>(Arc::new(AttemptLog::new(writer)))
        });
        Ok(Self {
            metrics: Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"), bounds)),
            logs: Arc::new(Logs::new(log, writer)),
            attempts: attempts.transpose()?,
            lately: Arc::new(Lately::new(bounds.destinations)),
            trail: None,
        })
    }

    /// Writes what rules do into the audit as well.
    pub fn audited(self, registry: Arc<dyn Registry>) -> io::Result<Self> {
        let log = Arc::clone(&self.logs) as Arc<dyn Sink>;
        let trail = AuditTrail::start(registry, log, || SystemClock.now())?;
        Ok(Self {
            trail: Some(Arc::new(trail)),
            ..self
        })
    }
}

const fn level(level: machine::Level) -> Level {
    match level {
        machine::Level::Error => Level::Error,
        machine::Level::Warn => Level::Warn,
        machine::Level::Info => Level::Info,
        machine::Level::Debug | machine::Level::Trace => Level::Debug,
    }
}
