//! Nodes as tests see them: a clock, a ledger over Redis, and answers.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Now, Wall};
use outflow_ledger_redis::{RedisLedger, RedisLink, Wake};
use outflow_ports::ledger::{Ledger, LedgerWork};
use tokio::runtime::Runtime;

/// The machine's clocks, and a bell that rings when a ledger has something.
#[derive(Clone)]
pub struct Clock {
    start: Instant,
    bell: Arc<(Mutex<bool>, Condvar)>,
}

impl Clock {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            bell: Arc::default(),
        }
    }

    pub fn now(&self) -> Now {
        let mono = u64::try_from(self.start.elapsed().as_nanos()).expect("a short test");
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.expect("a clock after 1970").as_nanos();
        Now {
            mono: Mono(mono),
            wall: Wall(i64::try_from(wall).expect("a clock before 2262")),
            entropy: Entropy(0),
        }
    }

    pub fn wake(&self) -> Wake {
        let bell = Arc::clone(&self.bell);
        Arc::new(move || {
            *bell.0.lock().expect("a bell") = true;
            bell.1.notify_all();
        })
    }

    /// Waits until a time, or until the bell rings.
    pub fn wait(&self, to: Mono) {
        let time = Duration::from_nanos(to.since(self.now().mono).0);
        let rung = self.bell.0.lock().expect("a bell");
        let waited = self.bell.1.wait_timeout_while(rung, time, |rung| !*rung);
        *waited.expect("a bell").0 = false;
    }
}

/// A link that never shows what came after the moment it is asked at: else what
/// is used at that moment would be debited later.
pub struct RealLink {
    link: RedisLink,
    clock: Clock,
    came: Vec<(Mono, Event)>,
    _ledger: RedisLedger,
}

impl RealLink {
    pub fn new(ledger: &RedisLedger, clock: &Clock) -> Self {
        Self {
            link: ledger.link(clock.wake()),
            clock: clock.clone(),
            came: Vec::new(),
            _ledger: ledger.clone(),
        }
    }
}

impl Ledger for RealLink {
    fn submit(&mut self, now: &Now, work: LedgerWork) {
        self.link.submit(now, work);
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        let (past, future) = std::mem::take(&mut self.came)
            .into_iter()
            .partition(|(at, _)| *at <= now.mono);
        let _: &Vec<(Mono, Event)> = &past;
        done.extend(past.into_iter().map(|(_, event)| event));
        self.came = future;
        let mut fresh = Vec::new();
        self.link.complete(now, &mut fresh);
        let at = self.clock.now().mono;
        self.came.extend(fresh.into_iter().map(|event| (at, event)));
    }

    fn next_completion(&self) -> Mono {
        match self.came.first() {
            Some((at, _)) => *at,
            None => self.link.next_completion(),
        }
    }
}

/// A runtime for the ledgers of one test.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}
