//! The suite that every ledger passes, in real time, all cases at once, each
//! under a prefix of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outflow_core::time::{Mono, Nanos, Now};
use outflow_ledger_redis::{RedisLedger, RedisSettings};
use outflow_ports::conformance::ledger::{self, Harness};
use redis::Connection;
use tokio::runtime::Handle;

use crate::node::{Clock, RealLink, runtime};
use crate::server::RedisServer;

/// Begins all epochs of a prefix an hour ago: a ledger that is not new.
const AGE: &str = r"
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local time = redis.call('TIME')
local start = time[1] * 1000000 + time[2] - 3600000000
for tag = 0, 63 do
  redis.call('HSET', string.format('%s:epoch:{%02d}', ARGV[1], tag),
    'number', start, 'start', start, 'wall', start, 'run', run, 'offset', 0, 'seen', start)
end";

/// Forgets all that is kept under a prefix.
const FORGET: &str = r"
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. ':*')) do
  redis.call('DEL', key)
end";

struct Real {
    clock: Clock,
    ledgers: Vec<RedisLedger>,
    links: usize,
    prefix: String,
    connection: Connection,
}

impl Real {
    fn new(runtime: &Handle, server: &RedisServer) -> Self {
        static NO: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("case{}", NO.fetch_add(1, Ordering::Relaxed));
        let settings = RedisSettings::new(&server.url()).expect("a URL");
        let settings = settings.prefix(&prefix).expect("a prefix");
        // A busy machine may keep a server from answering for a while.
        let settings = settings.timeout(Duration::from_secs(1));
        let settings = settings.expect("a time-out");
        let mut real = Self {
            clock: Clock::new(),
            ledgers: Vec::new(),
            links: 0,
            prefix,
            connection: server.connect(),
        };
        real.script(AGE);
        for _ in 0..2 {
            let ledger = RedisLedger::start(runtime, settings.clone());
            real.ledgers.push(ledger);
        }
        real
    }

    fn script(&mut self, source: &str) {
        let mut command = redis::cmd("EVAL");
        command.arg(source).arg(0).arg(&self.prefix);
        command
            .exec(&mut self.connection)
            .expect("the script of a test");
    }
}

impl Harness for Real {
    type Link = RealLink;

    fn link(&mut self) -> RealLink {
        self.links += 1;
        let place = self.links % self.ledgers.len();
        let ledger = self.ledgers.get(place).expect("one of the two");
        RealLink::new(ledger, &self.clock)
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn advance(&mut self, to: Mono) {
        self.clock.wait(to);
    }

    fn lose_state(&mut self) {
        self.script(FORGET);
    }

    fn seeds(&self) -> u64 {
        1
    }

    fn least(&self, tokens: u64) -> u64 {
        tokens * 7 / 10
    }

    fn late(&self) -> Nanos {
        Nanos::from_millis(1)
    }
}

#[test]
fn a_ledger_in_redis_does_what_every_ledger_must() {
    let (server, runtime) = (Arc::new(RedisServer::start(&[])), runtime());
    let only = std::env::var("OUTFLOW_CASE").unwrap_or_default();
    let cases = ledger::cases::<Real>().into_iter();
    let cases = cases.filter(|(name, _)| name.contains(&only));
    let threads = cases.map(|(name, case)| {
        let (server, handle) = (Arc::clone(&server), runtime.handle().clone());
        let run = move || {
            let make = || Real::new(&handle, &server);
            catch_unwind(AssertUnwindSafe(|| case(&make))).is_ok()
        };
        (name, std::thread::spawn(run))
    });
    let threads: Vec<_> = threads.collect();
    let failed: Vec<_> = threads
        .into_iter()
        .filter_map(|(name, thread)| (!thread.join().unwrap_or(false)).then_some(name))
        .collect();
    assert!(failed.is_empty(), "these cases failed: {failed:?}");
}
