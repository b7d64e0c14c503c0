//! Dead letters: reviewed, then replayed at a pace, or discarded.

use outflow_core::message::State;
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Nanos;
use outflow_ports::letter::Envelope;
use outflow_ports::query::LiveMessage;
use outflow_ports::receipts::Receipt;
use serde_json::{Value, json};

use crate::world::{World, message};
use outflow_api::{Clock, StartValues, chores};

const REVIEWS: &str = "/api/v1/dead-letters/reviews";

/// A message is done with. A dead letter stays in the store.
pub fn settle(world: &World, live: &LiveMessage, state: State) {
    let mut node = world.node.state.lock().unwrap();
    match state {
        State::Dead => node.messages.get_mut(&live.seq).unwrap().state = State::Dead,
        _ => drop(node.messages.remove(&live.seq)),
    }
    let parcel = live.parcel.as_ref().unwrap();
    let receipt = Receipt {
        seq: live.seq,
        key: (*live.key).clone(),
        state,
        accepted_at: live.accepted_at,
        settled_at: world.clock.now(),
        attempts: 3,
        account: Some("primary".to_owned()),
        error: None,
        cause: (state == State::Dead).then_some(match live.seq.0 % 2 {
            0 => DeathCause::Age,
            _ => DeathCause::Attempts,
        }),
        envelope: parcel.read_envelope().unwrap().to_vec(),
        events: Vec::new(),
    };
    let mut receipts = world.papers.receipts.lock().unwrap();
    receipts.insert(live.seq, receipt);
}

async fn with_dead_letters(count: usize) -> World {
    let world = World::new();
    let one = |number: usize| {
        let tenant = if number % 10 == 9 { "b" } else { "acme" };
        message(json!({ "to": format!("u{number}@example.com"), "tenant": tenant }))
    };
    let batch: Vec<Value> = (0..count).map(one).collect();
    world
        .post("/api/v1/messages", json!({ "messages": batch }))
        .await;
    for live in world.node.messages() {
        settle(&world, &live, State::Dead);
    }
    world.clock.advance(Nanos::from_secs(1));
    world
}

fn queued(world: &World) -> Vec<LiveMessage> {
    let mut messages = world.node.messages();
    messages.retain(|live| live.state == State::Queued);
    messages
}

async fn turn(world: &World) {
    chores::turn(&world.state, world.clock.now()).await.unwrap();
}

#[tokio::test]
async fn a_review_shows_what_it_selects_and_decides_once() {
    let world = with_dead_letters(20).await;
    let acme = json!({ "match": { "tenant": "acme" } });
    let made = world.post(REVIEWS, acme).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let review = made.json();
    assert_eq!(review["selected"], 18);
    assert_eq!(review["samples"].as_array().unwrap().len(), 5);
    assert_eq!(review["pace"], 10.0);
    assert_eq!(review["state"], "open");
    let causes = review["causes"].as_array().unwrap().iter();
    assert_eq!(
        causes
            .map(|one| one["count"].as_u64().unwrap())
            .sum::<u64>(),
        18
    );
    let aged = world.post(REVIEWS, json!({ "cause": "age" })).await.json();
    assert_eq!(aged["selected"], 10);
    assert!(
        queued(&world).is_empty(),
        "nothing happens before it is approved"
    );
    turn(&world).await;
    assert!(queued(&world).is_empty());

    let path = format!("{REVIEWS}/{}", review["id"].as_str().unwrap());
    let fast = world
        .post(&format!("{path}/approve"), json!({ "pace": 0 }))
        .await;
    assert_eq!(fast.pointers(), ["/pace"]);
    assert_eq!(
        world
            .post(&format!("{path}/approve"), Value::Null)
            .await
            .status,
        200
    );
    let twice = world.post(&format!("{path}/discard"), Value::Null).await;
    assert_eq!(
        (twice.status.as_u16(), twice.code()),
        (409, "review_closed".to_owned())
    );

    let bound = world
        .token(json!({ "scope": "operator", "tenant": "b" }))
        .await;
    assert_eq!(
        world.call(&bound, "GET", &path, Value::Null).await.status,
        404
    );
    let own = world.call(&bound, "POST", REVIEWS, json!({})).await.json();
    assert_eq!(own["selected"], 2, "a tenant's operator reviews its own");
}

#[tokio::test]
async fn approved_dead_letters_re_enter_at_their_pace_also_over_a_restart() {
    let mut world = with_dead_letters(50).await;
    let made = world
        .post(REVIEWS, json!({ "match": { "class": "normal" } }))
        .await
        .json();
    let path = format!("{REVIEWS}/{}", made["id"].as_str().unwrap());
    world.post(&format!("{path}/approve"), Value::Null).await;
    turn(&world).await;
    assert_eq!(queued(&world).len(), 1, "the first goes at once");
    turn(&world).await;
    assert_eq!(queued(&world).len(), 1, "and no other before its time");
    for _ in 0..10 {
        world.clock.advance(Nanos::from_millis(100));
        turn(&world).await;
    }
    assert_eq!(queued(&world).len(), 11, "ten a second");

    // A crash forgets progress that was not saved, and nothing is sent twice.
    world = world.restart(StartValues::default());
    turn(&world).await;
    world.clock.advance(Nanos::from_secs(3_600));
    turn(&world).await;
    let after = queued(&world).len();
    assert!(
        (11..=22).contains(&after),
        "a long wait is not made up for: {after}"
    );
    for _ in 0..600 {
        world.clock.advance(Nanos::from_millis(100));
        turn(&world).await;
    }
    let entered = queued(&world);
    assert_eq!(entered.len(), 50);
    let mut to: Vec<String> = Vec::new();
    for live in &entered {
        let parcel = live.parcel.as_ref().unwrap();
        let envelope = Envelope::from_bytes(&parcel.read_envelope().unwrap()).unwrap();
        assert!(envelope.tags.contains_key("replay_of"));
        to.push(envelope.to);
    }
    to.sort();
    to.dedup();
    assert_eq!(to.len(), 50, "each once");
    let review = world.get(&path).await.json();
    assert_eq!(review["state"], "replayed");
    let dead = world.node.messages().into_iter();
    assert_eq!(dead.filter(|live| live.state == State::Dead).count(), 0);
}

#[tokio::test]
async fn a_store_that_refuses_holds_the_replay_and_loses_nothing() {
    let world = with_dead_letters(3).await;
    let made = world.post(REVIEWS, json!({ "pace": 1000 })).await.json();
    let path = format!("{REVIEWS}/{}", made["id"].as_str().unwrap());
    world.post(&format!("{path}/approve"), Value::Null).await;
    world.node.state.lock().unwrap().refuse = Some(outflow_ports::intake::Refused::NotStored);
    turn(&world).await;
    assert!(world.node.state.lock().unwrap().forgotten.is_empty());
    world.node.state.lock().unwrap().refuse = None;
    for _ in 0..5 {
        world.clock.advance(Nanos::from_secs(1));
        turn(&world).await;
    }
    assert_eq!(queued(&world).len(), 3);
}

#[tokio::test]
async fn discarded_dead_letters_are_forgotten() {
    let world = with_dead_letters(20).await;
    let made = world.post(REVIEWS, json!({ "cause": "age" })).await.json();
    let path = format!("{REVIEWS}/{}", made["id"].as_str().unwrap());
    world.post(&format!("{path}/discard"), Value::Null).await;
    turn(&world).await;
    turn(&world).await;
    let review = world.get(&path).await.json();
    assert_eq!(
        (&review["state"], &review["done"]),
        (&json!("discarded"), &json!(10))
    );
    let left = world.node.messages();
    assert!(
        left.iter().all(|live| live.seq.0 % 2 == 1),
        "only those of that cause"
    );
    let listed = world
        .get("/api/v1/dead-letters?tenant=acme&limit=3")
        .await
        .json();
    // The page looked at three, of which one is discarded.
    assert_eq!(listed["dead_letters"].as_array().unwrap().len(), 2);
    assert_eq!(listed["dead_letters"][0]["state"], "dead");
    assert!(listed["next_cursor"].is_u64());
    let again = world.post(REVIEWS, json!({})).await.json();
    assert_eq!(again["selected"], 10, "what is gone is not selected again");
    let causes = again["causes"].as_array().unwrap();
    assert!(causes.iter().all(|one| one["cause"] == "attempts"));
    assert_eq!(causes[0]["count"], 10);
}
