//! Senders that are being warmed up: limits by day, what counts, what goes
//! elsewhere.

use std::sync::Arc;

use outflow_api::{Bounds, Clock, StartValues, warm_ups};
use outflow_config::valid::warm_up::WarmUp;
use outflow_config::{RawAccount, RawPolicy};
use outflow_core::engine::explain::Obstacle;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::tally::{Counter, Window};
use outflow_core::time::Nanos;
use outflow_core::warmup::{Bar, Plan};
use outflow_ports::query::{LaneView, TallyView};
use serde_json::{Value, json};

use crate::world::World;

const PAIR: &str = "ip:192.0.2.7/isp:google";
const HOUR: Nanos = Nanos::from_secs(3_600);

fn start() -> StartValues {
    let account = |id: &str, pool: &str, ip: &str| {
        let value = json!({ "id": id, "transport": "sandbox", "pool": pool, "ip": ip });
        RawAccount::read(&value).unwrap()
    };
    let policy = |value: Value| RawPolicy::read(&value).unwrap();
    StartValues {
        accounts: vec![
            account("a", "new", "192.0.2.7"),
            account("b", "new", "192.0.2.7"),
            account("c", "warm", "192.0.2.8"),
        ],
        policies: vec![policy(json!({
            "match": { "isp": "google", "ip": "*" }, "rate": "2/s", "limits": ["5k/h"],
        }))],
        warm_ups: vec![WarmUp {
            matches: PAIR.parse().unwrap(),
            destination: Some("isp:google".to_owned()),
            plan: Plan::by_day("test", &[100, 200]),
            first_day: 0,
            overflow: Some(Name::from("warm")),
            bar: Bar::default(),
        }],
        ..StartValues::default()
    }
}

/// The limits that the engine was told.
fn limits(world: &World) -> Vec<String> {
    let state = world.node.state.lock().unwrap();
    let matches: Match = PAIR.parse().unwrap();
    let policy = state.policies.get(&matches);
    let limits = policy
        .map(|policy| policy.limits.clone())
        .unwrap_or_default();
    limits
        .iter()
        .map(outflow_config::policy::text::limit)
        .collect()
}

/// So many were sent in each of the last windows through each account.
fn count(world: &World, attempts: u64, bounced: u64) {
    let mut counts = [[0; Counter::ALL.len()]; Window::ALL.len()];
    for window in &mut counts {
        window[Counter::Attempts as usize] = attempts;
        window[Counter::Accepted as usize] = attempts - bounced;
        window[Counter::Bounced as usize] = bounced;
    }
    let of = |key: &str| TallyView {
        key: Arc::new(key.parse::<LimitKey>().unwrap()),
        counts,
    };
    let keys = [
        "account:a/isp:google",
        "account:b/isp:google",
        "account:a/isp:yahoo",
    ];
    world.node.state.lock().unwrap().tallies = keys.map(of).to_vec();
}

async fn turn(world: &World) {
    warm_ups::turn(&world.state, world.clock.now())
        .await
        .unwrap();
}

async fn shown(world: &World) -> Value {
    let answer = world.get("/api/v1/warm-ups").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["warm_ups"][0].clone()
}

#[tokio::test]
async fn a_day_that_went_well_raises_the_quota_and_one_that_did_not_does_not() {
    let world = World::with(start(), Bounds::default());
    let first = ["5000/h", "100/day@UTC", "10/h"];
    assert_eq!(
        limits(&world),
        first,
        "before anything is sent, beside what was there"
    );
    count(&world, 20, 0);
    world.clock.advance(Nanos::from_secs(299));
    turn(&world).await;
    assert_eq!(shown(&world).await["today"]["attempts"], 0);
    world.clock.advance(Nanos::from_secs(1));
    turn(&world).await;
    assert_eq!(
        shown(&world).await["today"]["attempts"],
        40,
        "of both accounts"
    );
    count(&world, 0, 0);
    let world = world.restart(start());
    assert_eq!(limits(&world), first);
    assert_eq!(
        shown(&world).await["today"]["attempts"],
        40,
        "it survives a restart"
    );
    count(&world, 5, 0);
    world.clock.advance(HOUR);
    turn(&world).await;
    count(&world, 0, 0);
    world.clock.advance(HOUR.times(24));
    turn(&world).await;
    let now = shown(&world).await;
    assert_eq!(
        (&now["day"], &now["quota_per_day"]),
        (&json!(2), &json!(200)),
        "{now}"
    );
    assert_eq!(now["yesterday"]["good"], true);
    assert_eq!(limits(&world), ["5000/h", "200/day@UTC", "20/h"]);

    // Too many bounce.
    count(&world, 100, 5);
    world.clock.advance(HOUR);
    turn(&world).await;
    count(&world, 0, 0);
    world.clock.advance(HOUR.times(24));
    turn(&world).await;
    let now = shown(&world).await;
    assert_eq!(
        (&now["day"], &now["yesterday"]["good"]),
        (&json!(2), &json!(false)),
        "{now}"
    );
    count(&world, 100, 0);
    world.clock.advance(HOUR);
    turn(&world).await;
    count(&world, 0, 0);
    world.clock.advance(HOUR.times(24));
    turn(&world).await;
    assert_eq!(shown(&world).await["day"], Value::Null, "it is over");
    assert_eq!(limits(&world), Vec::<String>::new());
    assert!(limits(&world.restart(start())).is_empty());
    let days = world.shelf.actions();
    assert_eq!(days.iter().filter(|it| *it == "warm_up.day").count(), 3);
}

/// A lane of a pool to Google, at which messages wait for a limit.
fn lane(pool: &str, key: &str) -> LaneView {
    LaneView {
        name: format!("{pool}/isp:google"),
        pool: Name::from(pool),
        waiting: [0, 0, 3, 0],
        in_flight: 0,
        sessions: 1,
        sent: 100,
        waiting_on: vec![Obstacle::Limit {
            key: Arc::new(key.parse().unwrap()),
            until: None,
        }],
        paused: false,
        oldest_age: None,
        broken: 0,
        half_open: 0,
        sessions_welcome: None,
    }
}

#[tokio::test]
async fn what_waits_at_another_limit_of_the_sender_waits() {
    let world = World::with(start(), Bounds::default());
    for facet in ["", "#learnt", "#concurrency", "#minute", "#day"] {
        world.node.state.lock().unwrap().lanes = vec![lane("new", &format!("{PAIR}{facet}"))];
        turn(&world).await;
        let bulks = world.node.state.lock().unwrap().bulks.clone();
        assert!(bulks.is_empty(), "{facet}: {bulks:?}");
    }
    for (count, facet) in [(1, "#hour"), (2, "#day@UTC")] {
        world.node.state.lock().unwrap().lanes = vec![lane("new", &format!("{PAIR}{facet}"))];
        turn(&world).await;
        assert_eq!(
            world.node.state.lock().unwrap().bulks.len(),
            count,
            "{facet}"
        );
    }
}

/// All came in one hour: the day could not be used better.
#[tokio::test]
async fn a_day_counts_as_used_if_more_was_to_be_sent() {
    let world = World::with(start(), Bounds::default());
    world.node.state.lock().unwrap().lanes = vec![lane("new", &format!("{PAIR}#hour"))];
    turn(&world).await;
    let world = world.restart(start());
    count(&world, 5, 0);
    world.clock.advance(HOUR);
    turn(&world).await;
    count(&world, 0, 0);
    world.clock.advance(HOUR.times(24));
    turn(&world).await;
    let now = shown(&world).await;
    assert_eq!(now["yesterday"]["counted"]["attempts"], 10, "{now}");
    assert_eq!(
        (&now["yesterday"]["good"], &now["day"]),
        (&json!(true), &json!(2)),
        "{now}"
    );
}

#[tokio::test]
async fn what_is_over_the_quota_goes_to_the_pool_that_is_warm() {
    let world = World::with(start(), Bounds::default());
    let day = format!("{PAIR}#day@UTC");
    let lanes = vec![
        lane("new", &day),
        lane("other", "isp:google"),
        lane("warm", &day),
    ];
    world.node.state.lock().unwrap().lanes = lanes;
    turn(&world).await;
    let bulks = world.node.state.lock().unwrap().bulks.clone();
    assert_eq!(bulks.len(), 1, "{bulks:?}");
    assert!(
        bulks[0].0.contains("warm") && bulks[0].1.contains("new"),
        "{bulks:?}"
    );
}
