//! In this process, over tokens leased from a real Redis: no acquire leaves the
//! process, only leases do.

use std::io;
use std::time::{Duration, Instant};

use outflow_core::class::Class;
use outflow_core::limit::LimitSpec;
use outflow_core::policy::policy::WhenAway;
use outflow_core::throttle;
use outflow_core::time::Nanos;
use outflow_ledger_redis::{RedisLedger, RedisSettings};
use outflow_ports::throttle::{Acquire, Acquired, Asked, Reply, Throttling as _};
use outflow_throttle::{Service, Settings};
use tokio::runtime::{Builder, Runtime};

use crate::redis::Redis;

/// How long each part is measured.
const LENGTH: Duration = Duration::from_secs(4);
/// Limits begin empty, and leases grow with their use.
const WARM_UP: Duration = Duration::from_secs(2);
/// Far away, so that every acquire is a grant.
const FAR: &str = "100000000/s burst 100000000";

/// Acquires a second.
pub struct Leased {
    pub hot: f64,
    pub many: f64,
}

struct Desk {
    /// Drives the connection to Redis.
    _runtime: Runtime,
    ledger: RedisLedger,
    service: std::sync::Arc<Service>,
}

impl Desk {
    fn open(redis: &Redis, prefix: &str) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let settings = RedisSettings::new(&redis.url()).and_then(|it| it.prefix(prefix));
        let settings = settings.map_err(io::Error::other)?;
        let ledger = RedisLedger::start(runtime.handle(), settings);
        let linked = ledger.clone();
        let service = Service::start(Settings {
            throttle: throttle::Settings::default(),
            seed: 7,
            grants_log: None,
            link: Some(Box::new(move |wake| Box::new(linked.link(wake)))),
            lender: None,
            sink: None,
        })?;
        Ok(Self {
            _runtime: runtime,
            ledger,
            service,
        })
    }

    fn acquire(&self, key: &str, limits: &[LimitSpec]) -> bool {
        let asked = [Asked {
            key,
            cost: 1,
            limits,
            when_away: WhenAway::Closed,
        }];
        let acquire = Acquire {
            tenant: None,
            limits: &asked,
            class: Class::Normal,
            wait: Nanos::ZERO,
            ttl: Nanos::from_secs(60),
        };
        let reply = self.service.acquire(&acquire, &mut || Box::new(drop));
        matches!(reply, Reply::Now(Ok(Acquired::Granted(_))))
    }

    /// Grants over these keys in turn: how many, in how long.
    fn grants(&self, keys: &[String], limit: &LimitSpec, length: Duration) -> (u64, Duration) {
        let limits = std::slice::from_ref(limit);
        let began = Instant::now();
        let (mut granted, mut turn) = (0, 0_usize);
        while began.elapsed() < length {
            // The clock is not asked for every acquire.
            for _ in 0..512 {
                let key = &keys[turn % keys.len()];
                turn = turn.wrapping_add(7_919);
                granted += u64::from(self.acquire(key, limits));
            }
        }
        (granted, began.elapsed())
    }

    fn per_s(&self, keys: &[String], limit: &LimitSpec) -> f64 {
        self.grants(keys, limit, WARM_UP);
        let (granted, took) = self.grants(keys, limit, LENGTH);
        granted as f64 / took.as_secs_f64()
    }
}

/// Acquires a second on one key and on many.
pub fn in_process(redis: &Redis) -> io::Result<Leased> {
    let limit = LimitSpec::parse(FAR).map_err(io::Error::other)?;
    let keys = |count: u32| (0..count).map(|no| format!("k:{no}")).collect::<Vec<_>>();
    let hot = Desk::open(redis, "hot")?.per_s(&keys(1), &limit);
    let many = Desk::open(redis, "many")?.per_s(&keys(10_000), &limit);
    Ok(Leased { hot, many })
}

/// Round trips to Redis for each token at 10,000 a second, burst 2,000.
pub fn round_trips(redis: &Redis) -> io::Result<f64> {
    let limit = LimitSpec::parse("10000/s burst 2000").map_err(io::Error::other)?;
    let desk = Desk::open(redis, "trips")?;
    let keys = ["hot".to_owned()];
    let limits = std::slice::from_ref(&limit);
    let paced = |length: Duration| {
        let began = Instant::now();
        let mut granted = 0;
        while began.elapsed() < length {
            granted += u64::from(desk.acquire(&keys[0], limits));
            // As fast as the limit lets anybody, without burning the core that
            // Redis needs.
            std::thread::sleep(Duration::from_micros(20));
        }
        granted
    };
    paced(WARM_UP);
    let before = desk.ledger.status().round_trips;
    let granted = paced(LENGTH);
    let trips = desk.ledger.status().round_trips - before;
    Ok(trips as f64 / granted.max(1) as f64)
}
