//! In this process, on one thread, over tokens leased from a real Redis, as a
//! dispatcher has it: no acquire leaves the process, only leases do.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outflow_core::class::Class;
use outflow_core::engine::action::Action;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::limit::LimitSpec;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::policy::WhenAway;
use outflow_core::throttle::{Key, Owner, Request, Settings, Throttle, Verdict, Wanted};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ledger_redis::{RedisLedger, RedisLink, RedisSettings};
use outflow_ports::ledger::{Ledger as _, LedgerWork};
use tokio::runtime::{Builder, Runtime};

use crate::redis::Redis;
use crate::server::progress;

/// How long each part is measured.
const LENGTH: Duration = Duration::from_secs(4);
/// Limits begin empty, and leases grow with their use.
const WARM_UP: Duration = Duration::from_secs(3);
/// Far away, so that every acquire is a grant.
const FAR: &str = "100000000/s burst 100000000";
/// Acquires between two looks at the clock and the ledger: one turn.
const TURN: usize = 64;

/// Acquires a second.
pub struct Leased {
    pub hot: f64,
    pub many: f64,
}

struct Desk {
    /// Drives the connection to Redis.
    _runtime: Runtime,
    ledger: RedisLedger,
    link: RedisLink,
    throttle: Throttle,
    started: Instant,
    facet: Facet,
    events: Vec<Event>,
    actions: Vec<Action>,
}

impl Desk {
    fn open(redis: &Redis, prefix: &str, limit: &LimitSpec) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let settings = RedisSettings::new(&redis.url()).and_then(|it| it.prefix(prefix));
        let settings = settings.map_err(io::Error::other)?;
        let ledger = RedisLedger::start(runtime.handle(), settings);
        let started = Instant::now();
        let leased = Settings {
            leased: true,
            ..Settings::default()
        };
        Ok(Self {
            link: ledger.link(Arc::new(|| {})),
            _runtime: runtime,
            ledger,
            throttle: Throttle::new(&now(started), leased, 7),
            started,
            facet: Facet::of(limit),
            events: Vec::new(),
            actions: Vec::new(),
        })
    }

    /// What came from the ledger and what goes there; grants to those who had to
    /// wait for it.
    fn turn(&mut self, now: &Now) -> u64 {
        let mut told = Vec::new();
        self.link.complete(now, &mut self.events);
        for event in self.events.drain(..) {
            if let Event::Granted { limit, no, answer } = event {
                self.throttle.granted(now, (limit, no), answer, &mut told);
            }
        }
        self.throttle.wake(now, &mut told);
        self.throttle.take_actions(&mut self.actions);
        for action in self.actions.drain(..) {
            match action {
                Action::Lease(request) => self.link.submit(now, LedgerWork::Lease(request)),
                Action::GiveBack(back) => self.link.submit(now, LedgerWork::GiveBack(back)),
                _ => {}
            }
        }
        let granted = told.iter();
        let granted = granted.filter(|it| matches!(it.verdict, Verdict::Granted(_)));
        granted.count() as u64
    }

    /// One token of a key, if it is there.
    fn acquire(&mut self, now: &Now, key: &str, limit: &LimitSpec) -> u64 {
        let wants = [Wanted {
            key: Key {
                space: "",
                name: key,
                facet: &self.facet,
            },
            spec: limit,
            cost: 1,
            when_away: WhenAway::Closed,
            version: 0,
        }];
        let request = Request {
            wants: &wants,
            class: Class::Normal,
            wait: Nanos::ZERO,
            ttl: Nanos::from_secs(60),
            owner: Owner(0),
        };
        let mut told = Vec::new();
        let verdict = self.throttle.acquire(now, &request, &mut told);
        u64::from(matches!(verdict, Verdict::Granted(_)))
    }

    /// Grants over these keys in turn: how many, in how long.
    fn grants(&mut self, keys: &[String], limit: &LimitSpec, length: Duration) -> (u64, Duration) {
        let began = Instant::now();
        let (mut granted, mut turn) = (0, 0_usize);
        while began.elapsed() < length {
            let now = now(self.started);
            granted += self.turn(&now);
            for _ in 0..TURN {
                turn = turn.wrapping_add(7_919);
                granted += self.acquire(&now, &keys[turn % keys.len()], limit);
            }
        }
        (granted, began.elapsed())
    }

    fn per_s(&mut self, keys: &[String], limit: &LimitSpec) -> f64 {
        self.grants(keys, limit, WARM_UP);
        let before = self.ledger.status();
        let (granted, took) = self.grants(keys, limit, LENGTH);
        let after = self.ledger.status();
        let per_s = |count: u64| count as f64 / took.as_secs_f64();
        progress(&format!(
            "{} keys: {:.0} requests/s, {:.0} leases/s, {:.0} tokens leased/s, {:.0} round trips/s",
            keys.len(),
            per_s(after.requests - before.requests),
            per_s(after.leases - before.leases),
            per_s(after.tokens - before.tokens),
            per_s(after.round_trips - before.round_trips),
        ));
        per_s(granted)
    }
}

fn now(started: Instant) -> Now {
    let mono = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let wall = wall.map_or(0, |wall| wall.as_nanos());
    Now {
        mono: Mono(mono),
        wall: Wall(i64::try_from(wall).unwrap_or(i64::MAX)),
        entropy: Entropy(0),
    }
}

/// Acquires a second on one key and on many.
pub fn in_process(redis: &Redis) -> io::Result<Leased> {
    let limit = LimitSpec::parse(FAR).map_err(io::Error::other)?;
    let keys = |count: u32| (0..count).map(|no| format!("k:{no}")).collect::<Vec<_>>();
    let hot = Desk::open(redis, "hot", &limit)?.per_s(&keys(1), &limit);
    let many = Desk::open(redis, "many", &limit)?.per_s(&keys(10_000), &limit);
    Ok(Leased { hot, many })
}

/// Round trips to Redis for each token at 10,000 a second, burst 2,000.
pub fn round_trips(redis: &Redis) -> io::Result<f64> {
    let limit = LimitSpec::parse("10000/s burst 2000").map_err(io::Error::other)?;
    let mut desk = Desk::open(redis, "trips", &limit)?;
    let paced = |desk: &mut Desk, length: Duration| {
        let began = Instant::now();
        let mut granted = 0;
        while began.elapsed() < length {
            let now = now(desk.started);
            granted += desk.turn(&now);
            granted += desk.acquire(&now, "hot", &limit);
            // As fast as the limit lets anybody, without burning the core that
            // Redis needs.
            std::thread::sleep(Duration::from_micros(20));
        }
        granted
    };
    paced(&mut desk, WARM_UP);
    let before = desk.ledger.status().round_trips;
    let granted = paced(&mut desk, LENGTH);
    let trips = desk.ledger.status().round_trips - before;
    Ok(trips as f64 / granted.max(1) as f64)
}
