//! What every handler has at hand.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::detours::Detours;
use arc_swap::ArcSwap;
use bytes::Bytes;
use outflow_connections::places::Places;
use outflow_core::time::Wall;
use outflow_ports::control::Control;
use outflow_ports::fleet::Fleet;
use outflow_ports::hearing::Hearing;
use outflow_ports::history::History;
use outflow_ports::intake::{Intake, Then};
use outflow_ports::query::Query;
use outflow_ports::receipts::Receipts;
use outflow_ports::registry::{Kind, Registry, RegistryError};
use outflow_ports::suppression::Suppressions;
use outflow_ports::throttle::Throttling;
use outflow_telemetry::Sink;
use tokio::sync::Semaphore;

use crate::body_memory::BodyMemory;
use crate::book::{AccountSink, Book, StartValues};
use crate::dead_letters::replay::Replays;
use crate::doors::{Caps, Doors};
use crate::events::Events;
use crate::grant::{Known, Tokens};
use crate::messages::naming::{self, Naming};
use crate::pauses::Pause;
use crate::runbook::Runbooks;
use crate::stamp::Stamp;
use crate::warm_ups::WarmUps;

/// Reads the wall clock.
pub trait Clock: Send + Sync {
    /// What it says.
    fn now(&self) -> Wall;
}

/// Writes the metrics of the process.
pub trait Metrics: Send + Sync {
    /// All of them, in the text format of Prometheus. Much of it is asked of the
    /// node, so the answer is given to `then`.
    fn render(&self, then: Then<String>);
}

/// Says whether the server can do its work.
pub trait Readiness: Send + Sync {
    /// Why it cannot, in words; empty if it can.
    fn reasons(&self) -> Vec<String>;

    /// What is amiss though it can, in words.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What one server takes at a time.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of one request.
    pub request_bytes_max: usize,
    /// Bytes of one message in it, as JSON.
    pub message_bytes_max: usize,
    /// Bytes of all requests that are being worked on together. One token has
    /// half of them at most, and an eighth is kept for administrators.
    pub held_bytes_max: usize,
    /// Requests that are being worked on together.
    pub requests_max: usize,
    /// How long one request may take.
    pub request_timeout: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            request_bytes_max: 64 << 20,
            message_bytes_max: 36 << 20,
            held_bytes_max: 256 << 20,
            requests_max: 4_096,
            request_timeout: Duration::from_secs(30),
        }
    }
}

/// What the API stands on.
#[expect(missing_docs, reason = "the types say it")]
pub struct Parts {
    pub intake: Arc<dyn Intake>,
    pub query: Arc<dyn Query>,
    pub control: Arc<dyn Control>,
    pub registry: Arc<dyn Registry>,
    pub receipts: Arc<dyn Receipts>,
    pub suppressions: Arc<dyn Suppressions>,
    pub hearing: Arc<dyn Hearing>,
    pub history: Arc<dyn History>,
    pub metrics: Arc<dyn Metrics>,
    pub readiness: Arc<dyn Readiness>,
    pub clock: Arc<dyn Clock>,
    pub throttle: Arc<dyn Throttling>,
    pub start: StartValues,
    pub account_sink: Arc<dyn AccountSink>,
    /// Whom policies are shared with; none on a machine of its own.
    pub fleet: Option<Arc<dyn Fleet>>,
    /// Where the API tells of requests.
    pub telemetry: Arc<dyn Sink>,
    /// Which messages go through another pool for a while.
    pub detours: Arc<Detours>,
    /// Where notices are published; a telemetry sink, to be given to the node.
    pub events: Arc<Events>,
    pub bounds: Bounds,
}

/// What every handler has at hand; cloning copies a pointer.
#[derive(Clone)]
pub struct ApiState(Arc<Inner>);

/// What an [`ApiState`] points at.
pub struct Inner {
    pub(crate) intake: Arc<dyn Intake>,
    pub(crate) query: Arc<dyn Query>,
    pub(crate) control: Arc<dyn Control>,
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) receipts: Arc<dyn Receipts>,
    pub(crate) suppressions: Arc<dyn Suppressions>,
    pub(crate) hearing: Arc<dyn Hearing>,
    pub(crate) history: Arc<dyn History>,
    pub(crate) metrics: Arc<dyn Metrics>,
    pub(crate) readiness: Arc<dyn Readiness>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) throttle: Arc<dyn Throttling>,
    pub(crate) fleet: Option<Arc<dyn Fleet>>,
    pub(crate) bounds: Bounds,
    pub(crate) tokens: ArcSwap<Tokens>,
    pub(crate) naming: Naming,
    pub(crate) book: Book,
    pub(crate) replays: Replays,
    pub(crate) runbooks: Runbooks,
    pub(crate) warm_ups: WarmUps,
    pub(crate) openapi: OnceLock<Bytes>,
    pub(crate) body_memory: Arc<BodyMemory>,
    pub(crate) requests: Semaphore,
    pub(crate) telemetry: Arc<dyn Sink>,
    pub(crate) detours: Arc<Detours>,
    /// Where notices are published.
    pub events: Arc<Events>,
    /// Who is connected.
    pub doors: Arc<Doors>,
    /// Who is connected elsewhere.
    pub listeners: Listeners,
}

/// The places of other listeners, which are there after the API is.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Of the submission port.
    pub smtp: OnceLock<Arc<Places>>,
    /// Of the throttle's port.
    pub throttle: OnceLock<Arc<Places>>,
}

impl Deref for ApiState {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// Why the API cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What operators set cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// There is no randomness to be had.
    #[error(transparent)]
    Entropy(#[from] crate::grant::NoEntropy),
}

impl ApiState {
    /// Reads what operators set and puts it in force. Waits for the disk.
    pub fn new(parts: Parts) -> Result<Self, StartError> {
        let tokens = Tokens::of(&parts.registry.list(Kind::Token)?);
        let now = parts.clock.now();
        let control = Arc::clone(&parts.control);
        let documents = parts.registry.list(Kind::WarmUp)?;
        let (warm_ups, beside) = WarmUps::of(&parts.start, &documents, now);
        let book = Book::open(
            parts.start,
            &*parts.registry,
            control,
            parts.account_sink,
            beside,
            now,
        )?;
        for document in parts.registry.list(Kind::Pause)? {
            if let Some((id, matches, pause)) = Pause::of(&document)
                && !pause.is_over(now)
            {
                let until = pause.until.map(|Stamp(until)| until);
                parts.control.pause(id, matches, until);
                // There is room: nobody else can have asked yet.
                let _ = pause.tell_throttle(&*parts.throttle, now);
            }
        }
        let runbooks = Runbooks::of(book.start(), &parts.registry.list(Kind::Incident)?, now);
        let Bounds {
            held_bytes_max,
            request_bytes_max,
            requests_max,
            ..
        } = parts.bounds;
        Ok(Self(Arc::new(Inner {
            intake: parts.intake,
            query: parts.query,
            control: parts.control,
            registry: parts.registry,
            receipts: parts.receipts,
            suppressions: parts.suppressions,
            hearing: parts.hearing,
            history: parts.history,
            metrics: parts.metrics,
            readiness: parts.readiness,
            clock: parts.clock,
            throttle: parts.throttle,
            fleet: parts.fleet,
            bounds: parts.bounds,
            tokens: ArcSwap::from_pointee(tokens),
            naming: naming::of_this_process()?,
            book,
            replays: Replays::default(),
            runbooks,
            warm_ups,
            openapi: OnceLock::new(),
            body_memory: BodyMemory::new(held_bytes_max, request_bytes_max),
            requests: Semaphore::new(requests_max),
            telemetry: parts.telemetry,
            detours: parts.detours,
            events: parts.events,
            doors: Doors::new(Caps::default()),
            listeners: Listeners::default(),
        })))
    }

    /// Whom a token stands for.
    pub fn find_token(&self, token: &str) -> Option<Arc<Known>> {
        self.tokens.load().find(token)
    }

    /// Ends all streams of events, so that a shutdown need not wait for them.
    pub fn close(&self) {
        self.events.close();
    }
}
