//! The incident runbook at work: what it writes down and what it sets.

use std::sync::Arc;

use outflow_api::{Bounds, Clock, StartValues, chores, runbook};
use outflow_config::valid::runbook::{Canary, Detour, Runbook};
use outflow_config::{RawAccount, RawPolicy};
use outflow_core::class::Class;
use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::RateOrShare;
use outflow_core::policy::scope::Scope;
use outflow_core::tally::{Counter, Window};
use outflow_core::time::Nanos;
use outflow_ports::query::TallyView;
use outflow_ports::receipts::Receipt;
use outflow_ports::registry::Kind;
use serde_json::{Value, json};

use crate::world::World;

fn start() -> StartValues {
    let policy = |value: Value| RawPolicy::read(&value).unwrap();
    let mut runbook = Runbook {
        paused_classes: vec![Class::Low, Class::Normal],
        detour: Some(Detour {
            pool: Name::from("backup"),
            permille: 100,
        }),
        ..Runbook::default()
    };
    runbook.course.can_pause = true;
    runbook.course.can_detour = true;
    StartValues {
        policies: vec![
            policy(json!({ "match": { "isp": "google" }, "rate": "20/s", "burst": 10 })),
            policy(json!({ "match": { "isp": "*", "ip": "*" }, "rate": "10/s" })),
            policy(json!({ "match": { "isp": "yahoo" }, "rate": "5/s" })),
            policy(json!({ "match": { "tenant": "*" }, "rate": "7/s" })),
        ],
        runbook,
        ..StartValues::default()
    }
}

/// What was counted at Google in every window.
fn count(world: &World, attempts: u64, too_fast: u64) {
    count_at(world, &["google"], attempts, too_fast);
}

fn count_at(world: &World, places: &[&str], attempts: u64, too_fast: u64) {
    let mut counts = [[0; Counter::ALL.len()]; Window::ALL.len()];
    for window in &mut counts {
        window[Counter::Attempts as usize] = attempts;
        window[Counter::Reply429 as usize] = too_fast;
    }
    let of = |scope, name: &str| TallyView {
        key: Arc::new(LimitKey::of(scope, name)),
        counts,
    };
    let tallies = places.iter().map(|place| of(Scope::Isp, place));
    let tallies = tallies.chain([of(Scope::Tenant, "acme")]).collect();
    world.node.state.lock().unwrap().tallies = tallies;
}

async fn turn(world: &World) {
    let now = world.clock.now();
    runbook::turn(&world.state, now).await.unwrap();
    chores::turn(&world.state, now).await.unwrap();
}

/// Looks every 10 s for so long.
async fn pass(world: &World, secs: u64) {
    for _ in 0..secs / 10 {
        world.clock.advance(Nanos::from_secs(10));
        turn(world).await;
    }
}

async fn get(world: &World, path: &str) -> Value {
    let path = format!("/api/v1{path}");
    let answer = world.call(&world.admin, "GET", &path, Value::Null).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// The rate that the engine was told, in thousandths of a message per second.
fn rate(world: &World, matches: &str) -> Option<u64> {
    let state = world.node.state.lock().unwrap();
    let matches: Match = matches.parse().unwrap();
    match state.policies.get(&matches)?.rate? {
        RateOrShare::Rate(rate) => Some(u64::from(rate.count) * 1_000_000_000_000 / rate.per.0),
        RateOrShare::Share { .. } => None,
    }
}

/// Up to what the engine is to learn it.
fn most(world: &World, matches: &str) -> Option<f64> {
    let state = world.node.state.lock().unwrap();
    let policy = state.policies.get(&matches.parse().unwrap())?;
    policy.max_rate.map(|rate| rate.in_a_second())
}

/// All live messages are delivered.
fn deliver(world: &World) {
    let live = std::mem::take(&mut world.node.state.lock().unwrap().messages);
    let mut receipts = world.papers.receipts.lock().unwrap();
    for (seq, live) in live {
        let receipt = Receipt {
            seq,
            key: (*live.key).clone(),
            state: State::Delivered,
            accepted_at: live.accepted_at,
            settled_at: live.accepted_at,
            attempts: 1,
            account: None,
            error: None,
            cause: None,
            envelope: Vec::new(),
            events: Vec::new(),
        };
        receipts.insert(seq, receipt);
    }
}

fn pauses(world: &World) -> Vec<String> {
    let state = world.node.state.lock().unwrap();
    state
        .pauses
        .values()
        .map(|(matches, _)| matches.to_string())
        .collect()
}

#[tokio::test]
async fn an_incident_is_opened_mitigated_taken_back_and_closed() {
    let world = World::with(start(), Bounds::default());
    count(&world, 1_000, 0);
    pass(&world, 60).await;
    assert_eq!(get(&world, "/incidents").await["incidents"], json!([]));
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    let shown = get(&world, "/incidents/1").await;
    assert_eq!(shown["state"], "mitigating", "{shown}");
    assert_eq!(shown["destination"], "isp:google");
    assert_eq!(shown["evidence"][0]["part"], 50);
    assert_eq!(rate(&world, "isp:google"), Some(10_000));
    assert_eq!(
        rate(&world, "isp:google/ip:*"),
        Some(5_000),
        "and what is about all"
    );
    assert_eq!(rate(&world, "isp:*/ip:*"), Some(10_000));
    assert_eq!(rate(&world, "isp:yahoo"), Some(5_000));
    assert_eq!(rate(&world, "tenant:*"), Some(7_000));
    assert_eq!(pauses(&world).len(), 2);
    assert!(
        pauses(&world)[0].contains("isp:google"),
        "{:?}",
        pauses(&world)
    );
    let policy = get(&world, "/policies/isp/google").await;
    let reason = policy["mitigation_reason"].as_str().unwrap();
    assert!(
        reason.starts_with("incident 1: too fast: 50 of 1000"),
        "{reason}"
    );
    assert_eq!(policy["burst"], 5);
    let audit = get(&world, "/audit").await;
    let actors: Vec<&str> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["action"] == "policy.set" || it["action"] == "pause.add")
        .map(|it| it["actor"].as_str().unwrap())
        .collect();
    assert_eq!(actors, ["rule:runbook"; 4]);

    // A process that starts in the midst of it sends no faster.
    let again = world.restart(start());
    assert_eq!(rate(&again, "isp:google"), Some(10_000));
    count(&again, 1_000, 0);
    pass(&again, 1_790).await;
    assert_eq!(rate(&again, "isp:google"), Some(10_000));
    assert_eq!(pauses(&again).len(), 2, "not twice");
    pass(&again, 60).await;
    assert_eq!(rate(&again, "isp:google"), Some(12_000));
    assert_eq!(rate(&again, "isp:google/ip:*"), Some(6_000));
    assert_eq!(pauses(&again), Vec::<String>::new());
    assert_eq!(
        get(&again, "/incidents?state=recovering").await["incidents"][0]["id"],
        "1"
    );
    pass(&again, 2_500).await;
    assert_eq!(rate(&again, "isp:google"), Some(20_000));
    assert_eq!(
        rate(&again, "isp:google/ip:*"),
        None,
        "it was made for the incident"
    );
    let shown = get(&again, "/incidents/1").await;
    assert_eq!(
        (&shown["state"], &shown["rate_permille"]),
        (&json!("closed"), &json!(1_000))
    );
    assert_eq!(
        get(&again, "/incidents?state=open,mitigating").await["incidents"],
        json!([])
    );
    let actions = again.shelf.actions();
    for action in ["incident.open", "incident.recover", "incident.close"] {
        assert!(
            actions.iter().any(|it| it == action),
            "{action}: {actions:?}"
        );
    }
}

#[tokio::test]
async fn what_a_person_set_is_left_alone_and_a_person_can_end_it() {
    let world = World::with(start(), Bounds::default());
    let own = json!({
        "rate": "15/s", "mitigation_reason": "mine", "cooldown_until": "2026-09-22T00:00:00Z",
    });
    let path = "/api/v1/policies/isp/google";
    assert_eq!(
        world.call(&world.admin, "PATCH", path, own).await.status,
        200
    );
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    assert_eq!(rate(&world, "isp:google"), Some(15_000));
    assert_eq!(rate(&world, "isp:google/ip:*"), Some(5_000));
    let path = "/api/v1/incidents/1/close";
    let closed = world.call(&world.admin, "POST", path, Value::Null).await;
    assert_eq!(closed.json()["state"], "closed", "{}", closed.text);
    assert_eq!(rate(&world, "isp:google"), Some(15_000));
    assert_eq!(rate(&world, "isp:google/ip:*"), None);
    assert_eq!(pauses(&world), Vec::<String>::new());
    let again = world.call(&world.admin, "POST", path, Value::Null).await;
    assert_eq!(again.status, 404);
}

#[tokio::test]
async fn a_runbook_that_is_switched_off_leaves_nothing_in_force() {
    let world = World::with(start(), Bounds::default());
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    let mut off = start();
    off.runbook.course.enabled = false;
    let again = world.restart(off);
    turn(&again).await;
    assert_eq!(rate(&again, "isp:google"), Some(20_000));
    assert_eq!(pauses(&again), Vec::<String>::new());
    assert_eq!(get(&again, "/incidents/1").await["state"], "closed");
}

#[tokio::test]
async fn what_only_looks_like_an_incident_is_somebody_elses() {
    for reason in [
        "incident report 12",
        "incident 9: mine",
        "incident 1x: mine",
    ] {
        let world = World::with(start(), Bounds::default());
        let own = json!({
            "rate": "15/s", "mitigation_reason": reason, "cooldown_until": "2026-09-22T00:00:00Z",
        });
        let path = "/api/v1/policies/isp/google";
        let answer = world.call(&world.admin, "PATCH", path, own).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        count(&world, 1_000, 50);
        pass(&world, 10).await;
        assert_eq!(rate(&world, "isp:google"), Some(15_000), "{reason}");
    }
}

#[tokio::test]
async fn what_an_incident_that_is_over_left_behind_is_taken_over() {
    let world = World::with(start(), Bounds::default());
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    let both = [Kind::Policy, Kind::Pause];
    world.shelf.broken.lock().unwrap().extend(both);
    let path = "/api/v1/incidents/1/close";
    let closed = world.call(&world.admin, "POST", path, Value::Null).await;
    assert_eq!(closed.status, 200, "{}", closed.text);
    assert_eq!(
        rate(&world, "isp:google"),
        Some(10_000),
        "it could not be lifted"
    );
    let world = world.restart(start());
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    let policy = get(&world, "/policies/isp/google").await;
    let reason = policy["mitigation_reason"].as_str().unwrap();
    assert!(reason.starts_with("incident 2: "), "{reason}");
    assert_eq!(pauses(&world).len(), 2, "{:?}", pauses(&world));
}

#[tokio::test]
async fn what_cannot_be_written_is_done_later_and_holds_up_nothing_else() {
    let world = World::with(start(), Bounds::default());
    count_at(&world, &["google", "yahoo"], 1_000, 50);
    world.shelf.broken.lock().unwrap().push(Kind::Incident);
    pass(&world, 10).await;
    assert_eq!(rate(&world, "isp:google"), Some(20_000), "not written down");
    assert_eq!(rate(&world, "isp:yahoo"), Some(2_500));
    world.shelf.broken.lock().unwrap().push(Kind::Pause);
    pass(&world, 10).await;
    assert_eq!(rate(&world, "isp:google"), Some(10_000));
    assert_eq!(pauses(&world).len(), 2, "of one destination");
    pass(&world, 10).await;
    assert_eq!(pauses(&world).len(), 4);
    let opened = world.shelf.actions();
    let opened = opened.iter().filter(|it| *it == "incident.open");
    assert_eq!(opened.count(), 2);

    // Nor is anything forgotten that is to be taken back.
    let path = "/api/v1/incidents/1/close";
    world.shelf.broken.lock().unwrap().push(Kind::Incident);
    let answer = world.call(&world.admin, "POST", path, Value::Null).await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert_eq!(get(&world, "/incidents/1").await["state"], "mitigating");
    world.shelf.broken.lock().unwrap().push(Kind::Policy);
    let answer = world.call(&world.admin, "POST", path, Value::Null).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(rate(&world, "isp:google"), Some(10_000));
    pass(&world, 10).await;
    assert_eq!(rate(&world, "isp:google"), Some(20_000));
    assert_eq!(pauses(&world).len(), 2);
}

#[tokio::test]
async fn where_no_policy_has_a_rate_what_was_sent_is_cut() {
    let mut start = start();
    start.policies.truncate(1);
    start.policies[0].rate = None;
    start.policies[0].burst = None;
    start.policies[0].concurrency = Some(5);
    let world = World::with(start, Bounds::default());
    // 40 a second in the last minute.
    count(&world, 2_400, 100);
    pass(&world, 10).await;
    assert_eq!(get(&world, "/incidents/1").await["state"], "mitigating");
    assert_eq!(rate(&world, "isp:google"), Some(20_000));
    assert_eq!(get(&world, "/policies/isp/google").await["concurrency"], 5);
    count(&world, 2_400, 0);
    pass(&world, 1_850).await;
    assert_eq!(rate(&world, "isp:google"), Some(24_000));
    pass(&world, 2_500).await;
    assert_eq!(rate(&world, "isp:google"), None, "as it was");
    assert_eq!(get(&world, "/policies/isp/google").await["concurrency"], 5);
}

#[tokio::test]
async fn what_is_learnt_holds_on_in_an_incident_and_below_a_mitigation() {
    let mut start = start();
    let policy = json!({ "match": { "isp": "google" }, "rate": "50/s", "max_rate": "100/s" });
    start.policies = vec![RawPolicy::read(&policy).unwrap()];
    let world = World::with(start.clone(), Bounds::default());
    let both = |world: &World| (rate(world, "isp:google"), most(world, "isp:google"));
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    assert_eq!(both(&world), (Some(25_000), Some(50.0)));
    count(&world, 1_000, 0);
    pass(&world, 1_850).await;
    assert_eq!(both(&world), (Some(30_000), Some(60.0)));
    // Nobody looks any more: both come back by themselves.
    for _ in 0..10 {
        world.clock.advance(Nanos::from_secs(600));
        chores::turn(&world.state, world.clock.now()).await.unwrap();
        let (rate, most) = both(&world);
        assert_eq!(rate.map(|rate| rate as f64 / 500.0), most);
    }
    assert_eq!(both(&world), (Some(50_000), Some(100.0)));

    // What a person writes is the most from then on.
    let world = World::with(start, Bounds::default());
    let path = "/api/v1/policies/isp/google";
    let over = json!({
        "rate": "25/s", "mitigation_reason": "421", "cooldown_until": "2026-09-22T00:00:00Z",
    });
    let answer = world.call(&world.admin, "PATCH", path, over).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(both(&world), (Some(25_000), Some(25.0)));
    let day = Nanos::from_secs(86_400);
    let mut before = 25.0;
    for _ in 0..200 {
        world.clock.advance(Nanos(day.0 / 100));
        chores::turn(&world.state, world.clock.now()).await.unwrap();
        let (rate, most) = both(&world);
        let (rate, most) = (rate.unwrap() as f64 / 1_000.0, most.unwrap());
        assert!(rate <= most && before <= most, "{rate} {most} {before}");
        before = most;
    }
    assert_eq!(both(&world), (Some(50_000), Some(100.0)));
    let higher = json!({ "rate": "80/s", "mitigation_reason": "more" });
    let answer = world.call(&world.admin, "PATCH", path, higher).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(both(&world), (Some(80_000), Some(80.0)));
}

/// Settings with canaries at Google.
fn with_canaries() -> StartValues {
    let mut start = start();
    let canary = Canary {
        to: vec!["seed@gmail.com".to_owned(), "other@gmail.com".to_owned()],
        from: "canary@shop.example".to_owned(),
        pool: Name::from("default"),
    };
    let runbook = &mut start.runbook;
    runbook.canaries.insert("isp:google".to_owned(), canary);
    runbook.course.canaries.insert("isp:google".to_owned());
    let account = json!({ "id": "main", "transport": "sandbox" });
    start.accounts.push(RawAccount::read(&account).unwrap());
    start
}

#[tokio::test]
async fn an_answer_to_a_canary_is_not_forgotten_while_it_is_loud() {
    let world = World::with(with_canaries(), Bounds::default());
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    count(&world, 1_000, 0);
    pass(&world, 1_850).await;
    assert_eq!(world.node.messages().len(), 2);
    deliver(&world);
    // Too much to go on, too little to slow down.
    count(&world, 1_000, 8);
    pass(&world, 700).await;
    assert_eq!(rate(&world, "isp:google"), Some(10_000));
    count(&world, 1_000, 0);
    pass(&world, 10).await;
    assert_eq!(rate(&world, "isp:google"), Some(12_000));
    pass(&world, 600).await;
    assert_eq!(world.node.messages().len(), 2, "others go before the next");
}

#[tokio::test]
async fn canaries_without_an_account_hold_nothing_up() {
    let mut start = with_canaries();
    start.accounts.clear();
    let world = World::with(start, Bounds::default());
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    count(&world, 1_000, 0);
    pass(&world, 1_850).await;
    assert_eq!(world.node.messages().len(), 0);
    assert_eq!(rate(&world, "isp:google"), Some(12_000));
}

#[tokio::test]
async fn a_canary_goes_before_each_step_and_holds_it_if_it_is_refused() {
    let world = World::with(with_canaries(), Bounds::default());
    count(&world, 1_000, 50);
    pass(&world, 10).await;
    count(&world, 1_000, 0);
    pass(&world, 1_850).await;
    let sent = world.node.messages();
    assert_eq!(sent.len(), 2, "one for each address");
    assert_eq!(sent[0].key.tenant.as_str(), "canary");
    assert_eq!(sent[0].key.class, Class::Critical);
    assert_eq!(
        rate(&world, "isp:google"),
        Some(10_000),
        "it waits for them"
    );
    {
        let mut node = world.node.state.lock().unwrap();
        for live in node.messages.values_mut() {
            (live.state, live.attempts) = (State::Deferred, 1);
        }
    }
    pass(&world, 100).await;
    assert_eq!(rate(&world, "isp:google"), Some(10_000));
    let lines = get(&world, "/incidents/1").await["lines"].clone();
    let why = lines.as_array().unwrap().last().unwrap()["why"].clone();
    assert!(why.as_str().unwrap().contains("refused"), "{why}");
    world.node.state.lock().unwrap().messages.clear();
    pass(&world, 600).await;
    let sent = world.node.messages();
    assert_eq!(sent.len(), 2, "others go before the next");
    deliver(&world);
    pass(&world, 20).await;
    assert_eq!(rate(&world, "isp:google"), Some(12_000));
}
