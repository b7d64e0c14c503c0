//! Submission over SMTP: the listener of `[smtp]`, with the API's tokens at its
//! door.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_api::ApiState;
use outflow_api::grant::Scope;
use outflow_config::Settings;
use outflow_config::valid::machine::Listener;
use outflow_core::time::Wall;
use outflow_intake_smtp::{
    Clock, Doorkeeper, Happened, Observer, Parts, Pass, Returns, SmtpIntake,
};
use outflow_ports::hearing::Hearing;
use outflow_ports::intake::Intake;
use outflow_ports::naming::Naming;
use outflow_telemetry::catalogue::{self, Event, Level};
use outflow_telemetry::sink::Sink;
use tokio::runtime::Runtime;

use super::paced::{Paced, and_more};
use super::relays::machine_name;
use super::server::ServeError;
use super::tls::Certificate;
use super::wiring::SystemClock;

/// Refused tokens are logged so often.
const REFUSED_EVERY: Duration = Duration::from_secs(60);

/// The tokens of the API, at the door of another listener.
struct Door(ApiState);

impl Doorkeeper for Door {
    fn admit(&self, token: &str) -> Option<Pass> {
        let known = self.0.find_token(token)?;
        (known.scope >= Scope::Submit).then(|| Pass {
            party: known.party().to_owned(),
            name: known.name.clone(),
            tenant: known.tenant.clone(),
            classes: known.classes.clone(),
            pools: known.pools.clone(),
            from_domains: known.from_domains.clone(),
        })
    }
}

/// Counts what happens, and has tokens that are not known logged.
struct Watch {
    sink: Arc<dyn Sink>,
    refused: Paced,
}

impl Observer for Watch {
    fn happened(&self, peer: IpAddr, what: Happened) {
        let reply;
        let what = match what {
            Happened::Connected => catalogue::Submission::Connected { peer },
            Happened::Left => catalogue::Submission::Left { peer },
            Happened::LoggedIn => catalogue::Submission::LoggedIn { peer },
            Happened::LoginRefused => {
                self.note_refused(peer);
                catalogue::Submission::LoginRefused { peer }
            }
            Happened::Taken { recipients } => {
                let recipients = recipients as u64;
                catalogue::Submission::Taken { peer, recipients }
            }
            // It is counted where it is heard.
            Happened::Reported => return,
            Happened::Refused { code, status } => {
                reply = format!("{code} {status}");
                let reply = reply.trim_end();
                catalogue::Submission::Refused { peer, reply }
            }
        };
        self.sink.emit(&Event::Submission(what));
    }
}

impl Watch {
    fn note_refused(&self, peer: IpAddr) {
        if let Some(left_out) = self.refused.pass(Instant::now()) {
            let more = and_more(left_out);
            let text = format!("a client at {peer} showed a token that is not known{more}");
            self.sink.emit(&Event::Noted {
                level: Level::Warn,
                part: "submission",
                text: &text,
            });
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Wall {
        outflow_api::Clock::now(self)
    }
}

/// The listener of `[smtp]`: bound, not yet serving.
pub struct Submission {
    /// Takes messages in.
    pub smtp: SmtpIntake,
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
    (intake, hearing): (Arc<dyn Intake>, Arc<dyn Hearing>),
    sink: Arc<dyn Sink>,
) -> Result<Submission, ServeError> {
    let (certificate, speaking) =
        Certificate::read("smtp", listener.tls.as_ref(), &[], Arc::clone(&sink))?;
    let process = getrandom::u64().map_err(|error| ServeError::System(io::Error::other(error)))?;
    let parts = Parts {
        intake,
        doorkeeper: Arc::new(Door(state.clone())),
        clock: Arc::new(SystemClock),
        naming: Naming::of(process),
        observer: Arc::new(Watch {
            sink: Arc::clone(&sink),
            refused: Paced::every(REFUSED_EVERY),
        }),
        tls: speaking,
        hearing: Some(Arc::clone(&hearing)),
    };
    let mut rules = outflow_intake_smtp::Settings::at(listener.address);
    rules.insecure = listener.insecure;
    rules.rules.hostname = machine_name();
    let domain = settings.feedback.bounce_domain.as_deref();
    rules.rules.returns = domain.map(|domain| {
        Returns::at(domain, move |address| {
            hearing.return_address(address).is_some()
        })
    });
    let bytes = settings.server.message_bytes_max;
    rules.rules.message_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
    let address = listener.address;
    let failed = |error| ServeError::Listen {
        address,
        setting: "smtp.listen",
        error,
    };
    let smtp = runtime.block_on(SmtpIntake::bind(rules, parts));
    let smtp = smtp.map_err(failed)?;
    let address = smtp.local_addr().map_err(failed)?;
    // There is one such listener.
    let _ = state.listeners.smtp.set(smtp.places());
    Ok(Submission {
        smtp,
        address,
        certificate,
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::{Arc, Mutex};

    use outflow_intake_smtp::{Happened, Observer};
    use outflow_telemetry::catalogue::Event;
    use outflow_telemetry::sink::Sink;

    use super::{Paced, REFUSED_EVERY, Watch};

    #[derive(Debug, Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Sink for Notes {
        fn emit(&self, event: &Event<'_>) {
            if let Event::Noted { text, .. } = event {
                self.0.lock().unwrap().push((*text).to_owned());
            }
        }
    }

    #[test]
    fn refused_tokens_are_noted_once_in_a_while() {
        let notes = Arc::new(Notes::default());
        let watch = Watch {
            sink: Arc::clone(&notes) as Arc<dyn Sink>,
            refused: Paced::every(REFUSED_EVERY),
        };
        for _ in 0..5 {
            watch.happened(IpAddr::from([192, 0, 2, 1]), Happened::LoginRefused);
        }
        let notes = notes.0.lock().unwrap();
        let [note] = notes.as_slice() else {
            panic!("{notes:?}");
        };
        assert!(note.contains("192.0.2.1"), "{note}");
    }
}
