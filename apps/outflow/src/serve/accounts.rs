//! Accounts as the transports know them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_api::AccountSink;
use outflow_config::account::{Failure, HiddenRate, Latency, Sandbox};
use outflow_config::{Account, TransportSettings};
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::name::Name;
use outflow_core::reply::{Enhanced, Reply};
use outflow_core::time::Nanos;
use outflow_resolver_dns::Directory;
use outflow_telemetry::catalogue::{Event, Level};
use outflow_telemetry::sink::Sink;
use outflow_transport_sandbox::{self as sandbox, Answer, Behaviour, SandboxHandle};
use outflow_transport_smtp::SmtpHandle;

use super::relays;
use super::transports::{Carrier, Carriers};
use super::troubles::Troubles;

/// Tells transports which accounts there are.
pub struct Accounts {
    /// Who carries whose messages.
    pub carriers: Carriers,
    /// The sandbox.
    pub sandbox: SandboxHandle,
    /// SMTP.
    pub smtp: SmtpHandle,
    /// Who takes whose mail.
    pub directory: Arc<Directory>,
    /// Where it is said that an account cannot be used.
    pub sink: Arc<dyn Sink>,
    /// Why sessions do not open.
    pub troubles: Troubles,
    /// All accounts, to read their files again.
    pub known: Mutex<BTreeMap<Name, Account>>,
}

impl Accounts {
    /// Reads passwords, certificates and keys again. What cannot be read is
    /// left as it was.
    pub fn reload(&self) {
        for account in self.known().values() {
            self.relay(&account.spec.id, &account.transport);
        }
    }

    /// Tells SMTP how an account reaches its servers. Whether it can.
    fn relay(&self, id: &Name, transport: &TransportSettings) -> bool {
        let relay = match transport {
            TransportSettings::Smtp(settings) => relays::relay(settings),
            TransportSettings::Mx(settings) => relays::direct(settings, &self.directory),
            TransportSettings::Sandbox(_) => return false,
        };
        let told = relay.and_then(|relay| {
            let told = self.smtp.set(id, &relay);
            told.map_err(relays::RelayProblem::from)
        });
        if let Err(problem) = &told {
            let text = format!("account {id}: {problem}");
            self.sink.emit(&Event::Noted {
                level: Level::Error,
                part: "accounts",
                text: &text,
            });
        }
        told.is_ok()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Name, Account>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccountSink for Accounts {
    fn put(&self, account: &Account) {
        let id = &account.spec.id;
        self.known().insert(id.clone(), account.clone());
        self.troubles.put(id, &account.spec.pool);
        if !account.is_sandbox() {
            self.directory.begin_to_ask();
        }
        let carrier = match &account.transport {
            TransportSettings::Sandbox(settings) => {
                self.sandbox.set(id, behaviour(settings));
                Carrier::Sandbox
            }
            transport => match self.relay(id, transport) {
                true => Carrier::Smtp,
                // What is for it waits until its settings are mended.
                false => Carrier::None,
            },
        };
        self.carriers.put(id, carrier);
    }

    fn remove(&self, id: &str) {
        let id = Name::from(id);
        self.known().remove(&id);
        self.carriers.remove(&id);
        self.sandbox.forget(&id);
        self.smtp.forget(&id);
        self.troubles.remove(&id);
    }
}

/// What the sandbox does for these settings.
fn behaviour(settings: &Sandbox) -> Behaviour {
    Behaviour {
        latency: match settings.latency {
            Latency::Constant(time) => sandbox::Latency::about(time),
            Latency::Spread { p50, p99 } => sandbox::Latency { p50, p99 },
        },
        open_time: Nanos::ZERO,
        open_failures: 0,
        failures: settings.failures.iter().map(failure).collect(),
        hidden_rate: settings.hidden_rate.as_ref().map(hidden_rate),
        headers: settings.headers.clone(),
    }
}

fn failure(failure: &Failure) -> sandbox::Failure {
    // What is written must happen, however rarely.
    let permille = failure.share_ppm.div_ceil(1_000);
    sandbox::Failure {
        permille: u16::try_from(permille).unwrap_or(1_000),
        answer: answer(&failure.reply),
    }
}

fn hidden_rate(hidden: &HiddenRate) -> sandbox::HiddenRate {
    let (rate, burst) = rate_of(&hidden.limit);
    sandbox::HiddenRate {
        rate,
        burst,
        answer: answer(&hidden.over),
    }
}

/// A hidden rate is a bucket, whatever was written: a window lets its count
/// through at once and then its rate.
fn rate_of(limit: &LimitSpec) -> (Rate, u32) {
    let shape = limit.shape();
    let burst = match limit {
        LimitSpec::LeakyBucket { .. } => 1,
        _ => shape.capacity,
    };
    (shape.rate.unwrap_or(Rate::per_second(burst)), burst)
}

fn answer(reply: &Reply) -> Answer {
    match reply {
        Reply::Said {
            code,
            text,
            retry_after: Some(after),
            ..
        } => Answer::Http {
            status: *code,
            text: text.clone(),
            retry_after: Some(*after),
        },
        Reply::Said {
            stage,
            code,
            enhanced,
            text,
            ..
        } => Answer::Smtp {
            stage: *stage,
            code: *code,
            text: match enhanced {
                Some(Enhanced(class, subject, detail)) => {
                    format!("{class}.{subject}.{detail} {text}").into()
                }
                None => text.clone(),
            },
        },
        Reply::Network { text, .. } | Reply::Damaged { text } => {
            Answer::Network { text: text.clone() }
        }
        Reply::Uncertain => Answer::Silence { after: Nanos::ZERO },
    }
}
