//! A server, with a node that keeps what it is given in memory.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use outflow_core::engine::admission::TooManyFlows;
use outflow_core::message::Seq;
use outflow_core::time::Wall;
use outflow_intake_smtp::{
    Clock, Doorkeeper, Happened, Observer, Parts, Pass, Settings, SmtpIntake,
};
use outflow_ports::intake::{Given, Intake, Refused, Submission, Taken, Then};
use outflow_ports::naming::Naming;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const NOW: Wall = Wall(1_700_000_000_000_000_000);

type Answer = Then<Result<Vec<Taken>, Refused>>;
type Held = Vec<(Answer, Vec<Taken>)>;

/// What the node was given, and what it says.
#[derive(Default)]
pub struct Memory {
    batches: Mutex<Vec<Vec<Submission>>>,
    refusal: Mutex<Option<Refused>>,
    /// Why there is no room for messages.
    crowded: Mutex<Option<TooManyFlows>>,
    /// Recipients of batches that were to be taken as a whole.
    whole: Mutex<Vec<usize>>,
    /// Answers that wait, if they are to.
    held: Mutex<Option<Held>>,
}

impl Memory {
    pub fn batches(&self) -> Vec<Vec<Submission>> {
        self.batches.lock().unwrap().clone()
    }

    pub fn refuse(&self, refusal: Option<Refused>) {
        *self.refusal.lock().unwrap() = refusal;
    }

    /// There is no room for anything.
    pub fn crowd(&self, why: TooManyFlows) {
        *self.crowded.lock().unwrap() = Some(why);
    }

    pub fn whole(&self) -> Vec<usize> {
        self.whole.lock().unwrap().clone()
    }

    /// Nothing is durable until it is let go.
    pub fn hold(&self) {
        *self.held.lock().unwrap() = Some(Vec::new());
    }

    /// How many answers wait.
    pub fn holding(&self) -> usize {
        self.held.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    pub fn let_go(&self) {
        for (then, given) in self.held.lock().unwrap().take().unwrap() {
            then(Ok(given));
        }
    }
}

impl Intake for Memory {
    fn submit_whole(&self, batch: Vec<Submission>, then: Answer) {
        self.whole.lock().unwrap().push(batch.len());
        self.submit(batch, then);
    }

    fn submit(&self, batch: Vec<Submission>, then: Answer) {
        if let Some(refusal) = *self.refusal.lock().unwrap() {
            return then(Err(refusal));
        }
        if let Some(why) = *self.crowded.lock().unwrap() {
            return then(Ok(vec![Err(why); batch.len()]));
        }
        let mut batches = self.batches.lock().unwrap();
        let before: usize = batches.iter().map(Vec::len).sum();
        let given = (before..before + batch.len()).map(|seq| {
            Ok(Given {
                seq: Seq(seq as u64),
                accepted_at: NOW,
                known: false,
            })
        });
        let given = given.collect();
        batches.push(batch);
        match self.held.lock().unwrap().as_mut() {
            Some(held) => held.push((then, given)),
            None => then(Ok(given)),
        }
    }
}

#[derive(Default)]
pub struct Tokens(pub Mutex<BTreeMap<String, Pass>>);

impl Doorkeeper for Tokens {
    fn admit(&self, token: &str) -> Option<Pass> {
        self.0.lock().unwrap().get(token).cloned()
    }
}

/// What happened, in order.
#[derive(Default)]
pub struct Seen(pub Mutex<Vec<Happened>>);

impl Observer for Seen {
    fn happened(&self, peer: IpAddr, what: Happened) {
        assert!(peer.is_loopback());
        self.0.lock().unwrap().push(what);
    }
}

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Wall {
        NOW
    }
}

/// A certificate for `localhost` in PEM, and how a server shows it.
pub fn certificate() -> (String, Arc<ServerConfig>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (cert.pem(), Arc::new(config))
}

pub struct World {
    pub runtime: Runtime,
    pub address: SocketAddr,
    pub memory: Arc<Memory>,
    pub tokens: Arc<Tokens>,
    pub seen: Arc<Seen>,
    pub tls: watch::Sender<Option<Arc<ServerConfig>>>,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl World {
    pub fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let memory = Arc::new(Memory::default());
        let tokens = Arc::new(Tokens::default());
        let seen = Arc::new(Seen::default());
        let (tls, watch) = watch::channel(None);
        let mut settings = Settings::at(([127, 0, 0, 1], 0).into());
        settings.rules.hostname = "mail.example.com".to_owned();
        settings.login_delay = std::time::Duration::from_millis(1);
        change(&mut settings);
        let parts = Parts {
            hearing: None,
            intake: Arc::clone(&memory) as Arc<dyn Intake>,
            doorkeeper: Arc::clone(&tokens) as Arc<dyn Doorkeeper>,
            clock: Arc::new(Fixed),
            naming: Naming::of(7),
            observer: Arc::clone(&seen) as Arc<dyn Observer>,
            tls: watch,
        };
        let server = runtime.block_on(SmtpIntake::bind(settings, parts)).unwrap();
        let address = server.local_addr().unwrap();
        let (shutdown, done) = oneshot::channel::<()>();
        let serving = runtime.spawn(server.serve(async move {
            let _ = done.await;
        }));
        let world = Self {
            runtime,
            address,
            memory,
            tokens,
            seen,
            tls,
            shutdown: Some(shutdown),
            serving,
        };
        world.token("token", Pass::default());
        world
    }

    /// Makes a token known.
    pub fn token(&self, token: &str, pass: Pass) {
        self.tokens.0.lock().unwrap().insert(token.to_owned(), pass);
    }

    /// Begins to shut down.
    pub fn shut_down(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }

    /// Waits until it is down.
    pub fn wait(self) {
        self.runtime.block_on(self.serving).unwrap();
    }
}
