//! Pauses that are asked of the throttle: who may, and what becomes of them.

use outflow_core::limit::spec::Rate;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;
use serde_json::{Value, json};

use crate::world::World;

const PAUSE: &str = "/api/v1/throttle/pause";
const ACQUIRE: &str = "/api/v1/throttle/acquire";

/// Policies that limit google, and each tenant.
fn policies() -> Policies {
    let mut policies = Policies::default();
    for (scope, name) in [("isp", "google"), ("tenant", "*")] {
        let mut policy = Policy::new(Match::from_pairs([(scope, name)]).unwrap());
        policy.rate = Some(RateOrShare::Rate(Rate::per_second(100)));
        policies.insert(policy).unwrap();
    }
    policies
}

fn world() -> World {
    let world = World::new();
    world.throttle.set_policies(policies());
    world
}

fn for_an_hour(key: &str) -> Value {
    json!({ "key": key, "retry_after_ms": 3_600_000 })
}

async fn status(world: &World, token: &str, key: &str) -> u16 {
    let answer = world.call(token, "POST", PAUSE, for_an_hour(key)).await;
    answer.status.as_u16()
}

/// Whether something of a key is granted.
async fn is_granted(world: &World, key: &str) -> bool {
    let wanted = json!({ "limits": [{ "key": key }] });
    let answer = world.post(ACQUIRE, wanted).await;
    assert!(
        [200, 429].contains(&answer.status.as_u16()),
        "{}",
        answer.text
    );
    answer.status == 200
}

/// What the node holds back.
fn held(world: &World) -> Vec<String> {
    let state = world.node.state.lock().unwrap();
    let pauses = state.pauses.values();
    pauses.map(|(matches, _)| matches.to_string()).collect()
}

#[tokio::test]
async fn who_submits_cannot_pause_what_policies_limit() {
    let world = world();
    let submit = world.token(json!({ "scope": "submit" })).await;
    let bound = json!({ "scope": "submit", "tenant": "acme" });
    let bound = world.token(bound).await;
    for key in ["isp:google", "isp:gmail", "isp:Google", "tenant:acme"] {
        assert_eq!(status(&world, &submit, key).await, 403, "{key}");
    }
    assert_eq!(status(&world, &bound, "tenant:acme").await, 403);
    // What is nobody else's is theirs, whatever it is called.
    assert_eq!(status(&world, &submit, "api").await, 200);
    assert_eq!(status(&world, &bound, "isp:google").await, 200);
    assert!(is_granted(&world, "isp:google").await);
    assert_eq!(held(&world), Vec::<String>::new());

    let own = json!({ "scope": "operator", "tenant": "acme" });
    let own = world.token(own).await;
    assert_eq!(status(&world, &own, "tenant:acme").await, 200);
    assert_eq!(status(&world, &own, "isp:google").await, 200);
    assert_eq!(held(&world), ["tenant:acme"]);
    assert!(is_granted(&world, "isp:google").await);
}

#[tokio::test]
async fn a_pause_of_a_limit_is_written_down_listed_and_lifted() {
    let world = world();
    let operator = json!({ "name": "ops", "scope": "operator" });
    let operator = world.token(operator).await;
    let by = format!("ops ({})", operator.split('_').nth(1).unwrap());
    // Nothing has used the limit yet.
    let answer = world.call(&operator, "POST", PAUSE, for_an_hour("isp:gmail"));
    let id = answer.await.json()["pause"].as_str().unwrap().to_owned();
    assert_eq!(held(&world), ["isp:google"], "mail is held");
    assert!(!is_granted(&world, "isp:google").await);

    let listed = world.get("/api/v1/pauses").await.json();
    assert_eq!(listed["pauses"][0]["id"], json!(id));
    assert_eq!(listed["pauses"][0]["limit"], "isp:google");
    assert_eq!(listed["pauses"][0]["by"], by);
    let audit = world.get("/api/v1/audit").await.json();
    let entries = audit["entries"].as_array().unwrap().iter();
    let actions: Vec<_> = entries.map(|it| it["action"].as_str().unwrap()).collect();
    assert!(actions.contains(&"pause.add"), "{actions:?}");

    // The later of two holds, as one pause.
    let short = json!({ "key": "isp:google", "retry_after_ms": 1 });
    assert_eq!(world.post(PAUSE, short).await.json()["pause"], json!(id));
    let long = json!({ "key": "isp:google", "retry_after_ms": 7_200_000 });
    assert_eq!(world.post(PAUSE, long).await.json()["pause"], json!(id));
    assert_eq!(held(&world).len(), 1);

    world.clock.advance(Nanos::from_secs(3_700));
    let later = world.restart(outflow_api::StartValues::default());
    later.throttle.set_policies(policies());
    assert_eq!(held(&later), ["isp:google"], "a restart remembers it");
    assert!(!is_granted(&later, "isp:google").await);
    let path = format!("/api/v1/pauses/{id}");
    let lifted = later.call(&later.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(lifted.status, 204);
    assert_eq!(held(&later), Vec::<String>::new());
    assert!(is_granted(&later, "isp:google").await);
}
