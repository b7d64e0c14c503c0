//! `POST /messages`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, header};
use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::engine::admission::{FlowCap, FlowField, TooManyFlows};
use outflow_core::message::State;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::intake::Refused;
use outflow_ports::letter::{Content, Envelope};
use outflow_ports::query::LiveMessage;
use serde_json::{Value, json};

use crate::world::{Answer, START, World, message};

const PATH: &str = "/api/v1/messages";

fn opened(live: &LiveMessage) -> (Envelope, Content) {
    live.parcel
        .as_ref()
        .unwrap()
        .read()
        .unwrap()
        .open()
        .unwrap()
}

async fn with_key(world: &World, key: &str, body: &Value) -> Answer {
    let request = Request::post(PATH)
        .header(header::AUTHORIZATION, format!("Bearer {}", world.admin))
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", key);
    world
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

#[tokio::test]
async fn one_message_is_accepted_with_its_defaults() {
    let world = World::new();
    let answer = world
        .post(PATH, message(json!({ "to": "User@EXAMPLE.com" })))
        .await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    assert_eq!(answer.json()["state"], "queued");
    let messages = world.node.messages();
    let [live] = messages.as_slice() else {
        panic!("one message, not {}", messages.len());
    };
    assert_eq!(live.key.destination, Destination::unresolved("example.com"));
    assert_eq!(live.key.class, Class::Normal);
    assert_eq!(live.key.tenant.as_str(), "default");
    assert_eq!(live.key.pool.as_str(), "default");
    assert_eq!(
        live.key.sender_domain.as_ref().unwrap().as_str(),
        "shop.example"
    );
    assert_eq!(live.expires_at, Wall::NEVER);
    let (envelope, content) = opened(live);
    assert_eq!(envelope.to, "User@example.com");
    assert_eq!(envelope.from, "orders@shop.example");
    assert_eq!(content.from, "\"Shop\" <orders@shop.example>");
    assert_eq!(content.date, START.0 / 1_000_000_000);
    assert!(content.message_id.ends_with("@shop.example>"));

    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let shown = world.get(&format!("{PATH}/{id}")).await.json();
    assert_eq!(shown["to"], "User@example.com");
    assert_eq!(shown["destination"], "domain:example.com");
}

#[tokio::test]
async fn recipients_fan_out_and_share_one_body() {
    let world = World::new();
    let fields = json!({
        "to": ["a@example.com", "B <b@example.org>"],
        "cc": ["c@example.com", "a@example.com"],
        "bcc": ["d@example.net"],
        "idempotency_key": "k",
    });
    let answer = world.post(PATH, message(fields)).await;
    let json = answer.json();
    let to: Vec<&str> = json["accepted"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["to"].as_str().unwrap())
        .collect();
    assert_eq!(
        to,
        [
            "a@example.com",
            "b@example.org",
            "c@example.com",
            "d@example.net"
        ]
    );
    let messages = world.node.messages();
    let parcels: Vec<_> = messages
        .iter()
        .map(|live| live.parcel.as_ref().unwrap().read().unwrap())
        .collect();
    assert!(
        parcels
            .windows(2)
            .all(|pair| Arc::ptr_eq(&pair[0].body, &pair[1].body))
    );
    let (_, content) = opened(&messages[3]);
    assert_eq!(content.to, ["a@example.com", "\"B\" <b@example.org>"]);
    assert_eq!(content.cc, ["c@example.com", "a@example.com"]);
    assert!(
        !parcels[0]
            .body
            .windows(13)
            .any(|part| part == b"d@example.net")
    );
}

#[tokio::test]
async fn a_batch_accepts_what_it_can() {
    let world = World::new();
    let batch = json!({ "messages": [
        message(json!({})),
        message(json!({ "to": "nobody" })),
        message(json!({ "clas": "low" })),
        message(json!({ "class": "critical" })),
        7,
    ]});
    let answer = world.post(PATH, batch).await;
    assert_eq!(answer.status, 202);
    let json = answer.json();
    let accepted: Vec<u64> = numbers(&json["accepted"]);
    let rejected: Vec<u64> = numbers(&json["rejected"]);
    assert_eq!((accepted, rejected), (vec![0, 3], vec![1, 2, 4]));
    let error = &json["rejected"][0]["error"];
    assert_eq!(error["code"], "invalid");
    assert_eq!(error["errors"][0]["pointer"], "/messages/1/to");

    let nothing =
        json!({ "messages": [message(json!({ "to": "x" })), message(json!({ "from": 1 }))]});
    let answer = world.post(PATH, nothing).await;
    assert_eq!(answer.status, 422);
    assert_eq!(answer.pointers(), ["/messages/0/to", "/messages/1/from"]);
    for empty in [
        json!({ "messages": [] }),
        json!({ "messages": 1 }),
        json!([]),
    ] {
        assert_eq!(world.post(PATH, empty).await.status, 422);
    }
}

#[tokio::test]
async fn a_batch_that_is_wrong_everywhere_gets_a_bounded_answer() {
    let world = World::new();
    let wrong = message(json!({ "to": vec!["x"; 200], "headers": { "a ".repeat(5_000): "" } }));
    let mut messages = vec![wrong; 50];
    messages.push(message(json!({})));
    let sent = json!({ "messages": messages });
    let answer = world.post(PATH, sent.clone()).await;
    assert_eq!(answer.status, 202);
    let rejected = &answer.json()["rejected"];
    assert_eq!(numbers(rejected), (0..50).collect::<Vec<_>>());
    let told = rejected.as_array().unwrap().iter().map(|one| {
        let errors = one["error"]["errors"].as_array();
        assert!(!one["error"]["detail"].as_str().unwrap().is_empty());
        errors.map_or(0, Vec::len)
    });
    assert_eq!(told.sum::<usize>(), 100, "as of one message");
    let bytes = answer.text.len();
    assert!(bytes < 80_000, "{bytes} of {}", sent.to_string().len());
    let all_wrong = json!({ "messages": sent["messages"].as_array().unwrap()[..50] });
    let answer = world.post(PATH, all_wrong).await;
    assert_eq!(
        (answer.status.as_u16(), answer.pointers().len()),
        (422, 100)
    );
    assert!(answer.text.len() < 80_000);
}

fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one["index"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn lines_are_a_batch() {
    let world = World::new();
    let lines = format!(
        "{}\n\n{}\r\n{{\"to\":\n",
        message(json!({})),
        message(json!({ "to": "b@example.com" }))
    );
    let request = Request::post(PATH)
        .header(header::AUTHORIZATION, format!("Bearer {}", world.admin))
        .header(header::CONTENT_TYPE, "application/x-ndjson");
    let answer = world.send(request.body(Body::from(lines)).unwrap()).await;
    let json = answer.json();
    assert_eq!(numbers(&json["accepted"]), [0, 1]);
    assert_eq!(json["rejected"][0]["index"], 2);
    assert_eq!(json["rejected"][0]["error"]["code"], "invalid_json");
}

#[tokio::test]
async fn all_that_is_wrong_is_said_at_once() {
    let world = World::new();
    let cases = [
        (json!({ "from": null, "to": [] }), vec!["/from", "/to"]),
        (
            json!({ "to": ["a@b.example", "x"], "cc": ["y"] }),
            vec!["/to/1", "/cc/0"],
        ),
        (
            json!({ "class": "urgent", "channel": "fax" }),
            vec!["/channel", "/class"],
        ),
        (
            json!({ "tenant": "", "pool": "*", "campaign": " x" }),
            vec!["/tenant", "/campaign", "/pool"],
        ),
        (
            json!({ "not_before": "soon", "expires_at": "2001-01-01T00:00:00Z" }),
            vec!["/not_before", "/expires_at"],
        ),
        (
            json!({ "headers": { "X~a/b": "x\r\nBcc: e@f.example", "Subject": "x" } }),
            vec!["/headers/Subject", "/headers/X~0a~1b"],
        ),
        (
            json!({ "attachments": [{ "filename": "a", "content_type": "x", "content": "*" }] }),
            vec!["/attachments/0/content_type", "/attachments/0/content"],
        ),
        (json!({ "raw": "aGk=" }), vec!["/subject", "/text"]),
        (
            json!({ "tags": { "k": "a\nb" }, "idempotency_key": "" }),
            vec!["/idempotency_key", "/tags/k"],
        ),
        (
            json!({ "attachments": [{ "filename": 1 }] }),
            vec!["/attachments/0/filename"],
        ),
    ];
    for (fields, pointers) in cases {
        let answer = world.post(PATH, message(fields.clone())).await;
        assert_eq!(answer.status, 422, "{fields}: {}", answer.text);
        assert_eq!(answer.pointers(), pointers, "{fields}");
    }
    let deep = "Content-Type: message/rfc822\r\n\r\n".repeat(60_000);
    let bomb = json!({
        "from": "a@b.example", "to": "c@d.example", "raw": STANDARD.encode(deep),
    });
    assert_eq!(world.post(PATH, bomb).await.pointers(), ["/raw"]);
    assert!(world.node.messages().is_empty());
    let nothing = json!({ "from": "a@b.example", "to": "c@d.example" });
    assert_eq!(world.post(PATH, nothing).await.pointers(), ["/text"]);
}

#[tokio::test]
async fn no_field_can_begin_a_line_of_its_own() {
    let world = World::new();
    let fields = [
        "from",
        "to",
        "reply_to",
        "return_path",
        "subject",
        "tenant",
        "campaign",
        "pool",
    ];
    for field in fields {
        for evil in [
            "a@b.example\r\nBcc: c@d.example",
            "a@b.example\nX: y",
            "a\0@b.example",
            "A\r <a@b.example>",
        ] {
            let answer = world.post(PATH, message(json!({ field: evil }))).await;
            assert_eq!(answer.status, 422, "{field}: {evil:?}");
            assert_eq!(answer.pointers(), [format!("/{field}")], "{evil:?}");
        }
    }
    for name in [
        "X Y",
        "X:Y",
        "X\nY",
        "",
        "Content-Type",
        "bcc",
        "X-Outflow-Tenant",
        "é",
    ] {
        let answer = world
            .post(PATH, message(json!({ "headers": { name: "x" } })))
            .await;
        assert_eq!(answer.status, 422, "{name:?}");
    }
    let kept = message(json!({ "headers": { "List-Unsubscribe": "<https://x.example/u>" } }));
    assert_eq!(world.post(PATH, kept).await.status, 202);
    assert_eq!(world.node.messages().len(), 1);
}

#[tokio::test]
async fn the_same_key_is_one_message_unless_its_content_differs() {
    let world = World::new();
    let body = message(json!({}));
    let first = with_key(&world, "k1", &body).await;
    assert_eq!(first.status, 202);
    world.clock.advance(Nanos::from_secs(60));
    let again = with_key(&world, "k1", &body).await;
    assert_eq!(again.status, 202);
    assert_eq!(again.json()["id"], first.json()["id"]);
    let other = with_key(&world, "k1", &message(json!({ "text": "Other" }))).await;
    assert_eq!(
        (other.status.as_u16(), other.code()),
        (409, "idempotency_conflict".to_owned())
    );
    // Keys are each tenant's own.
    let elsewhere = with_key(&world, "k1", &message(json!({ "tenant": "b" }))).await;
    assert_ne!(elsewhere.json()["id"], first.json()["id"]);
    // A settled message is compared by its receipt, and says what became of it.
    let live = world.node.messages().remove(0);
    crate::replays::settle(&world, &live, State::Delivered);
    let settled = with_key(&world, "k1", &body).await;
    assert_eq!(settled.json()["state"], "delivered");
    let other = with_key(&world, "k1", &message(json!({ "text": "Other" }))).await;
    assert_eq!(other.status, 409);
}

#[tokio::test]
async fn a_key_in_the_header_covers_the_batch() {
    let world = World::new();
    let batch = |text: &str| json!({ "messages": [message(json!({})), message(json!({})), message(json!({ "text": text }))]});
    let first = with_key(&world, "b1", &batch("x")).await.json();
    assert_eq!(
        world.node.messages().len(),
        3,
        "the same message twice is two"
    );
    let again = with_key(&world, "b1", &batch("x")).await.json();
    assert_eq!(first, again);
    let other = with_key(&world, "b1", &batch("y")).await.json();
    assert_eq!(numbers(&other["accepted"]), [0, 1]);
    assert_eq!(
        other["rejected"][0]["error"]["code"],
        "idempotency_conflict"
    );
    assert_eq!(world.node.messages().len(), 3);
    let both = with_key(&world, "k2", &message(json!({ "idempotency_key": "k3" }))).await;
    assert_eq!(both.pointers(), ["/idempotency_key"]);
}

#[tokio::test]
async fn what_cannot_be_stored_is_to_be_tried_again() {
    let world = World::new();
    let cases = [
        (Refused::Busy, "busy"),
        (Refused::NotStored, "not_stored"),
        (Refused::Closing, "closing"),
    ];
    for (refused, code) in cases {
        world.node.state.lock().unwrap().refuse = Some(refused);
        let answer = world.post(PATH, message(json!({}))).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (503, code.to_owned())
        );
        assert!(answer.headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn too_many_values_are_refused_message_by_message() {
    let world = World::new();
    let why = |field| TooManyFlows {
        cap: FlowCap::Tenant(7),
        field,
    };
    let crowded = [
        ("new".to_owned(), why(FlowField::Campaign)),
        ("far".to_owned(), why(FlowField::RecipientDomain)),
    ];
    world.node.state.lock().unwrap().crowded = crowded.into();
    let one = |campaign: &str| message(json!({ "campaign": campaign }));

    let answer = world.post(PATH, one("new")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (429, "too_many_flows".to_owned())
    );
    assert_eq!(answer.headers["retry-after"], "5");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(answer.pointers(), ["/campaign"]);
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    for words in ["campaigns", "the tenant has 7 live flows"] {
        assert!(detail.contains(words), "{detail}");
    }
    assert_eq!(world.post(PATH, one("far")).await.pointers(), ["/to"]);

    let several = [one("old"), one("new"), one("far"), one("old")];
    let answer = world.post(PATH, json!({ "messages": several })).await;
    assert_eq!(answer.status, 202);
    let batch = answer.json();
    let indexes = |list: &str| -> Vec<u64> {
        let all = batch[list].as_array().unwrap().iter();
        all.map(|one| one["index"].as_u64().unwrap()).collect()
    };
    assert_eq!(
        (indexes("accepted"), indexes("rejected")),
        (vec![0, 3], vec![1, 2])
    );
    let error = &batch["rejected"][1]["error"];
    assert_eq!(
        (&error["code"], &error["status"]),
        (&json!("too_many_flows"), &json!(429))
    );
    assert_eq!(error["errors"][0]["pointer"], "/messages/2/to");

    let answer = world.post(PATH, json!({ "messages": [one("new")] })).await;
    assert_eq!(
        (answer.status.as_u16(), answer.pointers()),
        (429, vec!["/messages/0/campaign".to_owned()])
    );
    assert!(answer.headers.contains_key("retry-after"));
    let lines = format!("{}\n{}\n", one("new"), one("old"));
    let request = Request::post(PATH)
        .header(header::AUTHORIZATION, format!("Bearer {}", world.admin))
        .header(header::CONTENT_TYPE, "application/x-ndjson");
    let answer = world.send(request.body(Body::from(lines)).unwrap()).await;
    assert_eq!(answer.status, 202);
    let rejected = &answer.json()["rejected"][0];
    assert_eq!(rejected["error"]["errors"][0]["pointer"], "/0/campaign");
    let to_two = message(json!({ "campaign": "new", "to": ["a@example.com", "b@example.com"] }));
    let answer = world.post(PATH, to_two).await;
    assert_eq!(
        (answer.status.as_u16(), answer.pointers()),
        (429, vec!["/campaign".to_owned()])
    );
    assert_eq!(
        world.node.messages().len(),
        3,
        "nothing is left of the others"
    );
}

#[tokio::test]
async fn too_much_is_refused_before_it_is_read() {
    let bounds = outflow_api::Bounds {
        request_bytes_max: 4_096,
        message_bytes_max: 2_048,
        ..outflow_api::Bounds::default()
    };
    let world = World::with(outflow_api::StartValues::default(), bounds);
    let long = message(json!({ "text": "x".repeat(3_000) }));
    let answer = world.post(PATH, long.clone()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (413, "too_large".to_owned())
    );
    let batch = world
        .post(PATH, json!({ "messages": [long, message(json!({}))] }))
        .await
        .json();
    assert_eq!(batch["rejected"][0]["error"]["code"], "too_large");
    let answer = world
        .post(PATH, message(json!({ "text": "x".repeat(5_000) })))
        .await;
    assert_eq!(answer.status, 413);
    let many: Vec<Value> = (0..10_001).map(|_| json!(0)).collect();
    let world = World::new();
    let answer = world.post(PATH, json!({ "messages": many })).await;
    assert_eq!(
        (answer.status.as_u16(), answer.pointers()),
        (422, vec!["/messages".to_owned()])
    );
}
