//! One node that asks, and what it hears.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_core::class::Class;
use outflow_core::engine::action::{GiveBack, LeaseRequest, Receipt};
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::handle::{AccountLimitId, LimitId};
use outflow_core::ledger::debits::RecalledDebits;
use outflow_core::limit::{Headroom, LimitSpec};
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::pool::ClassMask;
use outflow_core::time::Nanos;
use outflow_ledger_redis::{RedisLedger, RedisLink, RedisSettings};
use outflow_ports::ledger::{Ledger, LedgerWork};
use tokio::runtime::Runtime;

use crate::node::{Clock, runtime};

/// Whatever is waited for comes within this time.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A node of its own: a process, as far as Redis can tell.
pub struct Node {
    pub ledger: RedisLedger,
    link: RedisLink,
    clock: Clock,
    heard: Vec<Event>,
    requests: u32,
    pub class: Class,
    runtime: Runtime,
}

pub fn spec(text: &str) -> LimitSpec {
    LimitSpec::parse(text).expect("a limit as people write it")
}

pub fn key(name: &str) -> Arc<LimitKey> {
    Arc::new(LimitKey::of(Scope::Tenant, name))
}

/// How many tokens an answer brings.
pub fn tokens(answer: LeaseAnswer) -> u32 {
    match answer {
        LeaseAnswer::Leased { tokens, .. } => tokens,
        LeaseAnswer::Refused { .. } | LeaseAnswer::Away => 0,
    }
}

pub fn receipt(answer: LeaseAnswer) -> Receipt {
    match answer {
        LeaseAnswer::Leased { receipt, .. } => receipt,
        other => unreachable!("no lease: {other:?}"),
    }
}

impl Node {
    pub fn new(url: &str) -> Self {
        // A busy machine may keep a server from answering for a while.
        let settings = RedisSettings::new(url).expect("a URL");
        let settings = settings.timeout(Duration::from_secs(2));
        Self::with(settings.expect("a time-out"))
    }

    pub fn with(settings: RedisSettings) -> Self {
        let (runtime, clock) = (runtime(), Clock::new());
        let ledger = RedisLedger::start(runtime.handle(), settings);
        Self {
            link: ledger.link(clock.wake()),
            ledger,
            clock,
            heard: Vec::new(),
            requests: 0,
            class: Class::Normal,
            runtime,
        }
    }

    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    fn request(&mut self, key: &Arc<LimitKey>, spec: &LimitSpec) -> LeaseRequest {
        self.requests += 1;
        LeaseRequest {
            limit: LimitId::Account(AccountLimitId(1)),
            no: self.requests,
            key: Arc::clone(key),
            spec: spec.clone(),
            headroom: Headroom::default(),
            class: self.class,
            waiting: ClassMask::of(self.class),
            tokens: 1,
            at_least: 1,
            at_most: 1,
            held: 0,
            version: 0,
        }
    }

    /// What it hears when it asks for so many.
    pub fn ask(&mut self, name: &str, spec: &LimitSpec, tokens: u32) -> LeaseAnswer {
        let request = self.request(&key(name), spec);
        self.hear(LeaseRequest { tokens, ..request })
    }

    /// The same with all that a request may say.
    pub fn ask_with(
        &mut self,
        name: &str,
        spec: &LimitSpec,
        change: impl FnOnce(&mut LeaseRequest),
    ) -> LeaseAnswer {
        let mut request = self.request(&key(name), spec);
        change(&mut request);
        self.hear(request)
    }

    /// Asks until something is leased, which it must be at last.
    pub fn ask_until_leased(&mut self, name: &str, spec: &LimitSpec, tokens: u32) -> LeaseAnswer {
        self.wait_for(|node| {
            let answer = node.ask(name, spec, tokens);
            matches!(answer, LeaseAnswer::Leased { .. }).then_some(answer)
        })
    }

    fn hear(&mut self, request: LeaseRequest) -> LeaseAnswer {
        let no = request.no;
        self.link
            .submit(&self.clock.now(), LedgerWork::Lease(request));
        self.wait_for(|node| {
            let place = node.heard.iter().position(
                |event| matches!(event, Event::Granted { no: answered, .. } if *answered == no),
            )?;
            match node.heard.remove(place) {
                Event::Granted { answer, .. } => Some(answer),
                _ => None,
            }
        })
    }

    pub fn give_back(&mut self, name: &str, spec: &LimitSpec, tokens: u32, receipt: Receipt) {
        let back = GiveBack {
            key: key(name),
            spec: spec.clone(),
            tokens,
            receipt,
        };
        self.link
            .submit(&self.clock.now(), LedgerWork::GiveBack(back));
    }

    /// Tells it what an earlier process used.
    pub fn recall(&mut self, recalled: RecalledDebits) {
        self.link
            .submit(&self.clock.now(), LedgerWork::Recall(recalled));
    }

    pub fn pause(&mut self, name: &str, lasts: Nanos) {
        let key = key(name);
        self.link
            .submit(&self.clock.now(), LedgerWork::Pause { key, lasts });
    }

    /// Whether it heard that a limit is paused.
    pub fn heard_of_pause(&mut self, name: &str) -> bool {
        self.listen();
        let key = key(name);
        let is_it = |event: &Event| matches!(event, Event::Paused { key: of, .. } if *of == key);
        self.heard.iter().any(is_it)
    }

    fn listen(&mut self) {
        self.link.complete(&self.clock.now(), &mut self.heard);
    }

    /// Waits until something is so.
    pub fn wait_for<T>(&mut self, mut is_so: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            self.listen();
            if let Some(it) = is_so(self) {
                return it;
            }
            assert!(Instant::now() < deadline, "it never came to be so");
            let soon = self.clock.now().mono + Nanos::from_millis(5);
            self.clock.wait(soon);
        }
    }

    /// Waits until it is connected.
    pub fn connected(mut self) -> Self {
        self.wait_for(|node| node.ledger.status().server.map(drop));
        self
    }
}
