//! Accounts and policies: what is in force, and where it came from.

use axum::body::Body;
use axum::http::{Request, header};
use outflow_api::{Bounds, Clock, StartValues, chores};
use outflow_config::{RawAccount, RawPolicy};
use outflow_core::limit::spec::Rate;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::RateOrShare;
use outflow_core::time::Nanos;
use outflow_ports::query::LaneView;
use serde_json::{Value, json};

use crate::world::World;

const SECRET: &str = "correct-horse-battery";

fn raw_account(value: Value) -> RawAccount {
    RawAccount::read(&value).unwrap()
}

fn start() -> StartValues {
    StartValues {
        accounts: vec![raw_account(json!({
            "id": "primary", "host": "smtp.example.com", "user": "u", "password": SECRET,
        }))],
        policies: vec![
            RawPolicy::read(&json!({ "match": { "isp": "google" }, "rate": "20/s" })).unwrap(),
        ],
        ..StartValues::default()
    }
}

fn implicit() -> StartValues {
    StartValues {
        implicit: Some(RawAccount::default_sandbox()),
        ..StartValues::default()
    }
}

fn accounts(world: &World) -> Vec<String> {
    let state = world.node.state.lock().unwrap();
    state.accounts.keys().cloned().collect()
}

/// The rate that the engine was told, per second.
fn rate(world: &World, matches: &str) -> Option<u32> {
    let state = world.node.state.lock().unwrap();
    let matches: Match = matches.parse().unwrap();
    match state.policies.get(&matches)?.rate? {
        RateOrShare::Rate(Rate { count, .. }) => Some(count),
        RateOrShare::Share { .. } => None,
    }
}

async fn call(world: &World, method: &str, path: &str, body: Value) -> Value {
    let answer = world
        .call(&world.admin, method, &format!("/api/v1{path}"), body)
        .await;
    assert!(
        answer.status.is_success(),
        "{method} {path}: {}",
        answer.text
    );
    if answer.text.is_empty() {
        Value::Null
    } else {
        answer.json()
    }
}

#[tokio::test]
async fn what_is_written_takes_the_place_of_what_is_built_in() {
    let read = |value: Value| RawPolicy::read(&value).unwrap();
    let start = StartValues {
        built_in: vec![
            read(json!({ "match": { "isp": "google" }, "rate": "1/s" })),
            read(json!({ "match": { "isp": "yahoo" }, "rate": "2/s" })),
        ],
        ..start()
    };
    let world = World::with(start, Bounds::default());
    assert_eq!(rate(&world, "isp:google"), Some(20), "the file's");
    assert_eq!(rate(&world, "isp:yahoo"), Some(2));
    let shown = call(&world, "GET", "/policies/isp/yahoo", Value::Null).await;
    assert_eq!(shown["origin"], "built_in", "{shown}");
    let patch = json!({ "rate": "5/s" });
    let shown = call(&world, "PATCH", "/policies/isp/yahoo", patch).await;
    assert_eq!(shown["origin"], "api", "{shown}");
    assert_eq!(rate(&world, "isp:yahoo"), Some(5));
}

#[tokio::test]
async fn what_the_api_sets_wins_over_the_file_and_survives() {
    let world = World::with(start(), Bounds::default());
    let shown = call(&world, "GET", "/accounts/primary", Value::Null).await;
    assert_eq!(
        (&shown["origin"], &shown["version"]),
        (&json!("file"), &json!(0))
    );

    let patch = json!({ "limit_per_minute": 600 });
    let shown = call(&world, "PATCH", "/accounts/primary", patch).await;
    assert_eq!(
        (&shown["origin"], &shown["version"]),
        (&json!("api"), &json!(1))
    );
    assert_eq!(shown["host"], "smtp.example.com", "the rest stays");
    assert_eq!(
        world.node.state.lock().unwrap().accounts["primary"]
            .limits
            .len(),
        1
    );
    call(
        &world,
        "PUT",
        "/accounts/second",
        json!({ "transport": "sandbox" }),
    )
    .await;
    assert_eq!(accounts(&world), ["primary", "second"]);

    let later = world.restart(start());
    assert_eq!(
        later.node.state.lock().unwrap().accounts["primary"]
            .limits
            .len(),
        1
    );
    call(&later, "DELETE", "/accounts/primary", Value::Null).await;
    assert_eq!(accounts(&later), ["second"]);
    let last = later.restart(start());
    assert_eq!(
        accounts(&last),
        ["second"],
        "what was taken away does not come back"
    );
    assert_eq!(last.get("/api/v1/accounts/primary").await.status, 404);
    // It can be made again.
    call(
        &last,
        "PUT",
        "/accounts/primary",
        json!({ "transport": "sandbox" }),
    )
    .await;
    assert_eq!(accounts(&last), ["primary", "second"]);
    let sink = last.sink.0.lock().unwrap().clone();
    assert_eq!(sink, ["put second", "put primary"]);
}

#[tokio::test]
async fn the_sandbox_leaves_when_the_first_account_comes_and_stays_away() {
    let world = World::with(implicit(), Bounds::default());
    assert_eq!(accounts(&world), ["sandbox"]);
    let shown = call(&world, "GET", "/accounts/sandbox", Value::Null).await;
    assert_eq!(shown["origin"], "implicit");
    let wrong = json!({ "host": "smtp.example.com", "prot": 25 });
    let refused = world
        .call(&world.admin, "PUT", "/api/v1/accounts/real", wrong)
        .await;
    assert_eq!(refused.pointers(), ["/prot"]);
    assert_eq!(
        accounts(&world),
        ["sandbox"],
        "nothing changes if it is refused"
    );
    call(
        &world,
        "PUT",
        "/accounts/real",
        json!({ "host": "smtp.example.com" }),
    )
    .await;
    assert_eq!(accounts(&world), ["real"]);
    assert_eq!(
        *world.sink.0.lock().unwrap(),
        ["put sandbox", "remove sandbox", "put real"]
    );
    call(&world, "DELETE", "/accounts/real", Value::Null).await;
    assert!(
        accounts(&world).is_empty(),
        "real mail waits, and is not swallowed"
    );
    assert!(accounts(&world.restart(implicit())).is_empty());
}

#[tokio::test]
async fn a_secret_goes_in_and_never_comes_out() {
    let world = World::with(start(), Bounds::default());
    let body = json!({ "host": "smtp.example.com", "user": "u", "password": SECRET });
    call(&world, "PUT", "/accounts/b", body).await;
    // What was shown can be sent back.
    let shown = call(
        &world,
        "PATCH",
        "/accounts/b",
        json!({ "password": "(hidden)" }),
    )
    .await;
    assert_eq!(shown["password"], "(hidden)");
    let wrong = json!({ "host": 1, "password": SECRET, "prot": SECRET });
    let mut answers = vec![
        world
            .call(&world.admin, "PUT", "/api/v1/accounts/c", wrong)
            .await,
    ];
    let fresh = json!({ "host": "h.example", "user": "u", "password": "(hidden)" });
    let refused = world
        .call(&world.admin, "PUT", "/api/v1/accounts/d", fresh)
        .await;
    assert_eq!(refused.pointers(), ["/password"]);
    for path in [
        "accounts",
        "accounts/primary",
        "accounts/b",
        "audit",
        "tokens",
        "policies",
    ] {
        answers.push(world.get(&format!("/api/v1/{path}")).await);
    }
    call(&world, "DELETE", "/accounts/b", Value::Null).await;
    answers.push(world.get("/api/v1/audit").await);
    let token = world.token(json!({ "scope": "submit" })).await;
    answers.push(world.get("/api/v1/tokens").await);
    for answer in answers {
        assert!(!answer.text.contains(SECRET), "{}", answer.text);
        assert!(!answer.text.contains(&token), "{}", answer.text);
        assert!(!answer.text.contains("sha256"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_patch_makes_a_policy_and_says_what_it_governs() {
    let world = World::with(start(), Bounds::default());
    world.node.state.lock().unwrap().lanes = vec![LaneView {
        name: "default/isp:att".to_owned(),
        pool: "default".into(),
        waiting: [0, 0, 3, 0],
        in_flight: 0,
        sessions: 0,
        sent: 0,
        waiting_on: Vec::new(),
        paused: false,
        oldest_age: None,
        broken: 0,
        half_open: 0,
        sessions_welcome: None,
    }];
    let made = call(
        &world,
        "PATCH",
        "/policies/ISP/AT%26T",
        json!({ "rate": "5/s" }),
    )
    .await;
    assert_eq!(made["path"], "isp/att");
    assert_eq!(made["matches"]["lanes"], 1);
    assert_eq!(made["matches"]["samples"], json!(["lane:default/isp:att"]));
    assert_eq!(rate(&world, "isp:att"), Some(5));
    let typo = call(&world, "PATCH", "/policies/isp/gogle", json!({ "rate": 5 })).await;
    assert_eq!(typo["matches"]["lanes"], 0);
    let pair = call(
        &world,
        "PATCH",
        "/policies/account/primary/isp/att",
        json!({ "concurrency": 2 }),
    )
    .await;
    assert_eq!(
        (&pair["matches"]["accounts"], &pair["matches"]["lanes"]),
        (&json!(1), &json!(1))
    );
    call(
        &world,
        "POST",
        "/messages",
        crate::world::message(json!({ "tenant": "acme" })),
    )
    .await;
    let tenant = call(
        &world,
        "PUT",
        "/policies/tenant/acme",
        json!({ "rate": "100/s", "weight": 2 }),
    )
    .await;
    assert_eq!(tenant["matches"]["flows"], 1);

    let wrong = world
        .call(
            &world.admin,
            "PATCH",
            "/api/v1/policies/isp/att",
            json!({ "rate": "fast", "weight": 1 }),
        )
        .await;
    assert_eq!(wrong.pointers(), ["/rate"]);
    let kind = world.get("/api/v1/policies/ips/x").await;
    assert_eq!(kind.status, 404);
    assert!(kind.text.contains("did you mean"), "{}", kind.text);

    // Survives, and the file's is shown beside it.
    let later = world.restart(start());
    let listed = call(&later, "GET", "/policies", Value::Null).await;
    let paths: Vec<(&str, &str)> = listed["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["path"].as_str().unwrap(),
                one["origin"].as_str().unwrap(),
            )
        })
        .collect();
    assert!(paths.contains(&("isp/google", "file")) && paths.contains(&("isp/att", "api")));
    assert_eq!(
        (rate(&later, "isp:att"), rate(&later, "isp:google")),
        (Some(5), Some(20))
    );
    call(&later, "DELETE", "/policies/isp/Gmail", Value::Null).await;
    assert_eq!(rate(&later, "isp:google"), None);
    assert_eq!(rate(&later.restart(start()), "isp:google"), None);
    let over = json!({ "concurrency": 3, "mitigation_reason": "x" });
    call(&later, "PATCH", "/policies/isp/google", over).await;
    assert_eq!(rate(&later, "isp:google"), None, "nor below an override");
}

#[tokio::test]
async fn a_mitigation_is_taken_back_by_itself_step_by_step() {
    let world = World::with(start(), Bounds::default());
    let patch = |until: &str| json!({ "rate": "2/s", "mitigation_reason": "421 storm", "cooldown_until": until });
    let past = patch("2026-09-21T10:00:00Z");
    let refused = world
        .call(&world.admin, "PATCH", "/api/v1/policies/isp/google", past)
        .await;
    assert_eq!(refused.pointers(), ["/cooldown_until"]);
    let until = "2026-09-21T15:00:00Z";
    let shown = call(&world, "PATCH", "/policies/isp/google", patch(until)).await;
    assert_eq!(
        (&shown["rate"], &shown["base"]["rate"]),
        (&json!("2/s"), &json!("20/s"))
    );
    assert_eq!(shown["origin"], "file");
    assert!(shown["why"].as_str().unwrap().contains(until));
    assert_eq!(rate(&world, "isp:google"), Some(2));
    // The base can be changed meanwhile.
    call(
        &world,
        "PATCH",
        "/policies/isp/google",
        json!({ "rate": "30/s" }),
    )
    .await;
    assert_eq!(rate(&world, "isp:google"), Some(2));

    let later = world.restart(start());
    assert_eq!(rate(&later, "isp:google"), Some(2), "it survives a restart");
    chores::turn(&later.state, later.clock.now()).await.unwrap();
    assert_eq!(rate(&later, "isp:google"), Some(2));
    // 13 minutes after the cooldown: the second step.
    later.clock.advance(Nanos::from_secs(3_600));
    assert_eq!(
        rate(&later.restart(start()), "isp:google"),
        Some(8),
        "the time alone says how far it is"
    );
    chores::turn(&later.state, later.clock.now()).await.unwrap();
    assert_eq!(rate(&later, "isp:google"), Some(8));
    let shown = call(&later, "GET", "/policies/isp/google", Value::Null).await;
    assert_eq!(
        (&shown["rate"], &shown["base"]["rate"]),
        (&json!("8/s"), &json!("30/s"))
    );
    assert_eq!(shown["ramp"]["next_at"], "2026-09-21T15:20:00.000Z");
    assert_eq!(shown["ramp"]["next_rate"], "11/s");
    assert_eq!(shown["ramp"]["over_at"], "2026-09-21T16:30:00.000Z");
    let ramps = |world: &World| {
        let actions = world.shelf.actions();
        actions.iter().filter(|it| *it == "policy.ramp").count()
    };
    assert_eq!(ramps(&later), 1);
    chores::turn(&later.state, later.clock.now()).await.unwrap();
    let again = later.restart(start());
    chores::turn(&again.state, again.clock.now()).await.unwrap();
    assert_eq!(
        ramps(&again),
        1,
        "each step is told once, also over a restart"
    );
    for (minutes, wanted) in [(10, 11), (10, 14), (30, 23), (20, 29)] {
        later.clock.advance(Nanos::from_secs(minutes * 60));
        chores::turn(&later.state, later.clock.now()).await.unwrap();
        assert_eq!(rate(&later, "isp:google"), Some(wanted));
    }
    // The base can be changed also while it comes back, and so can the rest.
    let comment = json!({ "comment": "agreed" });
    call(&later, "PATCH", "/policies/isp/google", comment).await;
    assert_eq!(rate(&later, "isp:google"), Some(29));
    later.clock.advance(Nanos::from_secs(600));
    chores::turn(&later.state, later.clock.now()).await.unwrap();
    assert_eq!(rate(&later, "isp:google"), Some(30));
    assert!(
        later
            .shelf
            .actions()
            .contains(&"policy.cooldown_over".to_owned())
    );
    // Each line begins where the one before it ended.
    let audit = call(&later, "GET", "/audit", Value::Null).await;
    let entries = audit["entries"].as_array().unwrap().iter().rev();
    let steps = entries.filter(|it| {
        let action = it["action"].as_str().unwrap();
        ["policy.ramp", "policy.cooldown_over"].contains(&action)
    });
    let steps = steps.map(|it| {
        let rate = |side: &str| it["detail"][side]["rate"].as_str().unwrap().to_owned();
        format!("{}-{}", rate("before"), rate("after"))
    });
    let steps: Vec<String> = steps.collect();
    let wanted = [
        "2/s-8/s",
        "8/s-11/s",
        "11/s-14/s",
        "14/s-23/s",
        "23/s-29/s",
        "29/s-30/s",
    ];
    assert_eq!(steps, wanted, "{audit}");
    let shown = call(&later, "GET", "/policies/isp/google", Value::Null).await;
    assert_eq!(shown["base"], Value::Null);

    let forever = json!({ "rate": 1, "mitigation_reason": "x" });
    call(&later, "PATCH", "/policies/isp/google", forever).await;
    assert_eq!(rate(&later, "isp:google"), Some(1));
    call(
        &later,
        "PATCH",
        "/policies/isp/google",
        json!({ "mitigation_reason": null }),
    )
    .await;
    assert_eq!(rate(&later, "isp:google"), Some(30));
}

#[tokio::test]
async fn a_change_to_an_old_version_is_refused() {
    let world = World::with(start(), Bounds::default());
    call(
        &world,
        "PATCH",
        "/accounts/primary",
        json!({ "max_connections": 25 }),
    )
    .await;
    for (version, status) in [("\"7\"", 409), ("\"1\"", 200), ("\"1\"", 409), ("*", 200)] {
        let request = Request::patch("/api/v1/accounts/primary")
            .header(header::AUTHORIZATION, format!("Bearer {}", world.admin))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::IF_MATCH, version);
        let answer = world
            .send(
                request
                    .body(Body::from(r#"{"max_connections":26}"#))
                    .unwrap(),
            )
            .await;
        assert_eq!(answer.status, status, "{version}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_lane_is_paused_until_a_time_and_resumed() {
    let world = World::new();
    let path = "/lanes/default%2Fisp:Gmail";
    let until = json!({ "reason": "storm", "until": "2026-09-21T15:00:00Z" });
    let paused = call(&world, "POST", &format!("{path}/pause"), until).await;
    assert_eq!(paused["match"], json!({ "lane": "default/isp:google" }));
    call(&world, "POST", &format!("{path}/pause"), Value::Null).await;
    assert_eq!(world.node.state.lock().unwrap().pauses.len(), 2);
    let later = world.restart(StartValues::default());
    assert_eq!(
        later.node.state.lock().unwrap().pauses.len(),
        2,
        "pauses survive"
    );
    later.clock.advance(Nanos::from_secs(3_600));
    let listed = call(&later, "GET", "/pauses", Value::Null).await;
    assert_eq!(listed["pauses"].as_array().unwrap().len(), 1);
    chores::clear_pauses(&later.state, later.clock.now())
        .await
        .unwrap();
    assert_eq!(later.node.state.lock().unwrap().pauses.len(), 1);
    let resumed = call(&later, "POST", &format!("{path}/resume"), Value::Null).await;
    assert_eq!(resumed["lifted"], 1);
    assert!(later.node.state.lock().unwrap().pauses.is_empty());
    let wrong = later.post("/api/v1/lanes/nowhere/pause", Value::Null).await;
    assert_eq!(wrong.status, 404);
}
