//! `throttle`: acquires a second, 50 connections over loopback, one hot key and
//! 10,000 keys, all measured in one run:
//!
//! - a token bucket in Lua, called by `EVALSHA`, as teams write it;
//! - this server over the Redis protocol, and over HTTP;
//! - in this process, over tokens leased from a real Redis: the way that a
//!   dispatcher's sends take;
//! - throttlecrab over the Redis protocol.
//!
//! Everything that speaks the Redis protocol is measured by `redis-benchmark`.
//! Last, how many round trips to Redis a granted token costs at 10,000 a second.

mod client;
mod leased;
mod peers;

use std::io;

use serde_json::{Value, json};

use self::client::{Load, Speed, measure};
use self::peers::{Crab, Script};
use crate::figures::{exact, median, short};
use crate::redis::Redis;
use crate::server::{Scratch, block_on, progress};

/// How a run goes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Acquires of each measurement.
    pub requests: u64,
    pub rounds: usize,
    /// Whether throttlecrab stands beside.
    pub has_crab: bool,
}

const LOADS: [Load; 4] = [
    Load {
        keys: 1,
        pipeline: 1,
    },
    Load {
        keys: 10_000,
        pipeline: 1,
    },
    Load {
        keys: 1,
        pipeline: 16,
    },
    Load {
        keys: 10_000,
        pipeline: 16,
    },
];

/// What one contestant reached, by load.
struct Row {
    name: &'static str,
    speeds: Vec<Speed>,
}

/// Measures all.
pub fn run(plan: Plan) -> io::Result<Value> {
    let scratch = Scratch::new("throttle")?;
    let redis = Redis::start(&scratch.path().join("redis"), &[])?;
    let script = Script::load(&redis)?;
    let server = block_on(crate::throttle::client::Target::start(scratch.path()))?;
    let crab = match plan.has_crab {
        true => Some(Crab::start(scratch.path())?),
        false => None,
    };
    let mut rows = vec![
        Row {
            name: "lua",
            speeds: Vec::new(),
        },
        Row {
            name: "resp",
            speeds: Vec::new(),
        },
        Row {
            name: "throttlecrab",
            speeds: Vec::new(),
        },
    ];
    for load in LOADS {
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for _ in 0..plan.rounds {
            // In turn, so that a noisy neighbour hits all alike.
            redis.command(&["FLUSHALL"])?;
            rounds[0].push(measure(
                redis.port,
                None,
                load,
                plan.requests,
                &script.words(load),
            )?);
            let words = client::throttle_words("CL.THROTTLE", load);
            let token = Some(server.token.as_str());
            rounds[1].push(measure(server.resp, token, load, plan.requests, &words)?);
            if let Some(crab) = &crab {
                let words = client::throttle_words("THROTTLE", load);
                rounds[2].push(measure(crab.port, None, load, plan.requests, &words)?);
            }
        }
        for (row, rounds) in rows.iter_mut().zip(&rounds) {
            row.speeds.push(Speed {
                load,
                per_s: median(rounds),
            });
        }
        progress(&format!(
            "{} keys, {} at once: lua {:.0}/s, outflow {:.0}/s, throttlecrab {:.0}/s",
            load.keys,
            load.pipeline,
            median(&rounds[0]),
            median(&rounds[1]),
            median(&rounds[2])
        ));
    }
    let http: Vec<f64> = (0..plan.rounds)
        .map(|_| block_on(client::over_http(&server, 10_000, plan.requests / 4)))
        .collect::<io::Result<_>>()?;
    let http = median(&http);
    drop(server);
    let leased = leased::in_process(&redis)?;
    let trips = leased::round_trips(&redis)?;
    progress(&format!(
        "http {http:.0}/s; in process over leases: one key {:.0}/s, 10,000 keys {:.0}/s; \
         {:.5} round trips a token at 10,000/s burst 2,000",
        leased.hot, leased.many, trips
    ));
    Ok(summary(&rows, http, &leased, trips))
}

fn summary(rows: &[Row], http: f64, leased: &leased::Leased, trips: f64) -> Value {
    let of = |name: &str, keys: u32, pipeline: u32| {
        let row = rows.iter().find(|row| row.name == name);
        let speeds = row.map(|row| row.speeds.as_slice()).unwrap_or_default();
        let speed = speeds.iter().find(|it| it.load == Load { keys, pipeline });
        speed.map_or(f64::NAN, |speed| speed.per_s)
    };
    println!(
        "{:<14} {:>11} {:>11} {:>11} {:>11}",
        "acquires/s", "hot", "10k keys", "hot x16", "10k x16"
    );
    for row in rows {
        let figures: Vec<String> = row
            .speeds
            .iter()
            .map(|it| format!("{:>11.0}", it.per_s))
            .collect();
        println!("{:<14} {}", row.name, figures.join(" "));
    }
    println!("{:<14} {:>11} {:>11.0}", "http", "", http);
    println!(
        "{:<14} {:>11.0} {:>11.0}",
        "leased", leased.hot, leased.many
    );
    // Of one key and many, the one at which this server does worse counts.
    let worse = |ours: &str, theirs: &str, pipeline: u32, base: u32| {
        let ratio = |keys| of(ours, keys, pipeline) / of(theirs, keys, base);
        ratio(1).min(ratio(10_000))
    };
    let lua = of("lua", 10_000, 1);
    json!({
        "bench": "throttle",
        "lua_per_s": short(lua),
        "lua_hot_per_s": short(of("lua", 1, 1)),
        "lua_pipelined_per_s": short(of("lua", 10_000, 16)),
        "resp_per_s": short(of("resp", 10_000, 1)),
        "resp_ratio": exact(worse("resp", "lua", 1, 1)),
        "resp_pipelined_ratio": exact(worse("resp", "lua", 16, 16)),
        "resp_pipelined_to_plain_ratio": exact(worse("resp", "lua", 16, 1)),
        "http_per_s": short(http),
        "http_ratio": exact(http / lua),
        "leased_per_s": short(leased.many),
        "leased_hot_per_s": short(leased.hot),
        "leased_ratio": exact(leased.hot / of("lua", 1, 1)),
        "leased_many_ratio": exact(leased.many / lua),
        "throttlecrab_per_s": short(of("throttlecrab", 10_000, 1)),
        "throttlecrab_ratio": exact(worse("resp", "throttlecrab", 1, 1)),
        "throttlecrab_pipelined_ratio": exact(worse("resp", "throttlecrab", 16, 16)),
        "round_trips_per_token": exact(trips),
    })
}
