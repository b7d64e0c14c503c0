//! The suppression list, and what others tell of messages.

use axum::body::Body;
use axum::http::{Request, header};
use outflow_core::class::Class;
use outflow_core::flow::FlowKey;
use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::tally::Counter;
use outflow_ports::draft;
use outflow_ports::suppression::Screen as _;
use serde_json::{Value, json};

use crate::world::{Answer, World, message};

const PATH: &str = "/api/v1/suppressions";

fn stops(world: &World, tenant: &str, class: Class, to: &str) -> Option<&'static str> {
    let mut key = FlowKey::to(outflow_core::destination::Destination::isp("x"));
    key.tenant = Name::from(tenant);
    key.class = class;
    let stopped = world.list.stops(&key, draft::recipient(to));
    stopped.map(|stopped| stopped.reason.as_str())
}

async fn send(world: &World, token: &str, path: &str, media: &str, body: &str) -> Answer {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, media);
    world
        .send(request.body(Body::from(body.to_owned())).unwrap())
        .await
}

async fn recipients(world: &World, token: &str, query: &str) -> Vec<String> {
    let path = format!("{PATH}{query}");
    let answer = world.call(token, "GET", &path, Value::Null).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let page = answer.json();
    let entries = page["suppressions"].as_array().unwrap();
    let name = |entry: &Value| entry["recipient"].as_str().unwrap().to_owned();
    entries.iter().map(name).collect()
}

#[tokio::test]
async fn an_entry_is_put_shown_and_taken_away() {
    let world = World::new();
    let form = json!({ "recipient": "User@Example.com", "tenant": "acme", "reason": "complaint" });
    let added = world.post(PATH, form).await;
    assert_eq!(added.status, 201, "{}", added.text);
    let entry = added.json();
    assert_eq!(entry["recipient"], "user@example.com");
    assert_eq!(
        (&entry["state"], &entry["source"]),
        (&json!("active"), &json!("api"))
    );
    assert_eq!(
        stops(&world, "acme", Class::Low, "USER@example.com"),
        Some("complaint")
    );
    assert_eq!(
        stops(&world, "acme", Class::Critical, "user@example.com"),
        None
    );
    assert_eq!(stops(&world, "other", Class::Low, "user@example.com"), None);
    // Again: it stays as it was.
    world
        .clock
        .advance(outflow_core::time::Nanos::from_secs(60));
    let again = json!({ "recipient": "user@example.com", "tenant": "acme", "reason": "complaint" });
    assert_eq!(
        world.post(PATH, again).await.json()["since"],
        entry["since"]
    );

    let path = format!("{PATH}?recipient=user%40example.com");
    let removed = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(removed.json(), json!({ "changed": 1 }));
    assert_eq!(stops(&world, "acme", Class::Low, "user@example.com"), None);
    let gone = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(gone.status, 404);
    let actions = world.shelf.actions();
    assert_eq!(
        actions.last().map(String::as_str),
        Some("suppressions.remove")
    );
}

#[tokio::test]
async fn what_is_no_entry_is_refused() {
    let world = World::new();
    for (form, pointer) in [
        (json!({ "recipient": "nobody" }), "/recipient"),
        (json!({ "recipient": "a@b.c", "reason": "spam" }), "/reason"),
        (json!({ "recipient": "a@b.c", "tenant": " " }), "/tenant"),
        (json!({ "recipient": "a@b.c", "detail": "a\nb" }), "/detail"),
        (json!({}), ""),
    ] {
        let answer = world.post(PATH, form.clone()).await;
        assert_eq!(answer.status, 422, "{form}: {}", answer.text);
        assert_eq!(answer.pointers(), [pointer], "{form}");
    }
    for query in [
        "?cursor=x",
        "?limit=0",
        "?since=yesterday",
        "?recipient=x",
        "?what=1",
    ] {
        let answer = world.get(&format!("{PATH}{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.text);
    }
}

#[tokio::test]
async fn tenants_see_and_change_their_own_only() {
    let world = World::new();
    let acme = json!({ "scope": "operator", "tenant": "acme" });
    let acme = world.token(acme).await;
    for (tenant, to) in [("acme", "a@b.c"), ("other", "o@b.c")] {
        let form = json!({ "recipient": to, "tenant": tenant });
        assert_eq!(world.post(PATH, form).await.status, 201);
    }
    assert_eq!(recipients(&world, &acme, "").await, ["a@b.c"]);
    assert_eq!(
        recipients(&world, &world.admin, "").await,
        ["a@b.c", "o@b.c"]
    );
    let path = format!("{PATH}?tenant=other");
    let theirs = world.call(&acme, "GET", &path, Value::Null).await;
    assert_eq!(theirs.status, 404);
    let form = json!({ "recipient": "x@b.c", "tenant": "other" });
    assert_eq!(world.call(&acme, "POST", PATH, form).await.status, 422);
    let path = format!("{PATH}?recipient=o%40b.c");
    assert_eq!(
        world.call(&acme, "DELETE", &path, Value::Null).await.status,
        404
    );
    let lines = "recipient,tenant\nx@b.c,other\ny@b.c,\n";
    let answer = send(&world, &acme, &format!("{PATH}/import"), "text/csv", lines).await;
    let answer = answer.json();
    assert_eq!(
        (&answer["added"], &answer["rejected"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(recipients(&world, &acme, "").await, ["a@b.c", "y@b.c"]);
    let exported = world
        .call(&acme, "GET", &format!("{PATH}/export"), Value::Null)
        .await;
    assert_eq!(exported.text.lines().count(), 2);
    let form = json!({ "decision": "discard", "tenant": "other" });
    let path = format!("{PATH}/review");
    assert_eq!(world.call(&acme, "POST", &path, form).await.status, 404);
}

#[tokio::test]
async fn lists_go_on_where_they_ended() {
    let world = World::new();
    let lines: String = (0..25).map(|no| format!("{no:02}@b.c\n")).collect();
    let path = format!("{PATH}/import");
    let answer = send(&world, &world.admin, &path, "text/csv", &lines).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("{PATH}?limit=10{cursor}")).await.json();
        let entries = page["suppressions"].as_array().unwrap();
        let names = entries
            .iter()
            .map(|it| it["recipient"].as_str().unwrap().to_owned());
        seen.extend(names);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let wanted: Vec<String> = (0..25).map(|no| format!("{no:02}@b.c")).collect();
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn what_is_exported_can_be_imported() {
    let world = World::new();
    let lines = concat!(
        "{\"recipient\":\"A@b.c\",\"reason\":\"opt_out\",\"since\":\"2026-01-02T03:04:05Z\"}\n",
        "not json\n\n",
        "{\"recipient\":\"b@b.c\",\"state\":\"held\",\"reason\":\"hard_bounce\",\"detail\":\"says \\\"no, never\\\"\"}\r\n",
        "{\"recipient\":\"b@b.c\",\"colour\":\"red\"}"
    );
    let path = format!("{PATH}/import");
    let answer = send(&world, &world.admin, &path, "application/x-ndjson", lines).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let answer = answer.json();
    assert_eq!(
        (&answer["added"], &answer["rejected"]),
        (&json!(2), &json!(2))
    );
    let wrong: Vec<&Value> = answer["errors"].as_array().unwrap().iter().collect();
    assert_eq!([&wrong[0]["line"], &wrong[1]["line"]], [2, 5]);
    for (format, media) in [("ndjson", "application/x-ndjson"), ("csv", "text/csv")] {
        let exported = world.get(&format!("{PATH}/export?format={format}")).await;
        assert_eq!(exported.status, 200);
        let other = World::new();
        let answer = send(&other, &other.admin, &path, media, &exported.text).await;
        assert_eq!(answer.json()["added"], 2, "{}", answer.text);
        let again = other.get(&format!("{PATH}/export?format={format}")).await;
        // Only where it comes from has changed.
        let came = |text: &str| text.replace("api", "import");
        assert_eq!(came(&again.text), came(&exported.text));
        assert_eq!(
            stops(&other, "default", Class::Critical, "a@b.c"),
            Some("opt_out")
        );
        assert_eq!(
            stops(&other, "default", Class::Critical, "b@b.c"),
            None,
            "held"
        );
    }
    let actions = world.shelf.actions();
    assert!(
        actions.contains(&"suppressions.import".to_owned()),
        "{actions:?}"
    );
    let answer = send(&world, &world.admin, &path, "application/json", "{}").await;
    assert_eq!(answer.status, 415);
}

#[tokio::test]
async fn what_is_held_is_reviewed_and_what_was_learnt_is_undone() {
    let world = World::new();
    let line = |to: &str, state: &str, destination: &str| {
        json!({ "recipient": to, "state": state, "reason": "hard_bounce",
                "destination": destination })
    };
    let lines = [
        line("a@b.c", "held", "isp:google"),
        line("b@b.c", "held", "isp:yahoo"),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n");
    let path = format!("{PATH}/import");
    send(&world, &world.admin, &path, "application/x-ndjson", &lines).await;
    let review = |decision: &str, destination: &str, dry_run: bool| json!({ "decision": decision, "destination": destination, "dry_run": dry_run });
    let path = format!("{PATH}/review");
    let dry = world
        .post(&path, review("approve", "isp:google", true))
        .await;
    assert_eq!(dry.json(), json!({ "changed": 1 }));
    assert_eq!(
        recipients(&world, &world.admin, "?state=held").await.len(),
        2
    );
    let done = world
        .post(&path, review("approve", "isp:google", false))
        .await;
    assert_eq!(done.json(), json!({ "changed": 1 }));
    assert_eq!(
        stops(&world, "default", Class::Low, "a@b.c"),
        Some("hard_bounce")
    );
    world
        .post(&path, review("discard", "isp:yahoo", false))
        .await;
    assert_eq!(recipients(&world, &world.admin, "").await, ["a@b.c"]);

    // Only what the server learnt by itself is undone, and never all of it.
    let events = json!({ "events": [
        { "type": "bounce", "recipient": "learnt@b.c" },
        { "type": "complaint", "recipient": "learnt@b.c" },
    ] });
    let told = world.post("/api/v1/feedback/events", events).await;
    assert_eq!(
        told.json(),
        json!({ "read": 2, "matched": 2, "suppressed": 2 })
    );
    let path = format!("{PATH}/undo");
    assert_eq!(world.post(&path, json!({})).await.status, 422);
    let undone = world
        .post(&path, json!({ "since": "2020-01-01T00:00:00Z" }))
        .await;
    assert_eq!(undone.json(), json!({ "changed": 1 }));
    assert_eq!(
        stops(&world, "default", Class::Low, "learnt@b.c"),
        Some("complaint")
    );
    assert_eq!(
        stops(&world, "default", Class::Critical, "learnt@b.c"),
        None
    );
    let actions = world.shelf.actions();
    for action in [
        "suppressions.approve",
        "suppressions.discard",
        "suppressions.undo",
    ] {
        assert!(
            actions.contains(&action.to_owned()),
            "{action}: {actions:?}"
        );
    }
}

async fn settled(world: &World, to: &str) -> String {
    let form = message(json!({ "to": to, "tenant": "acme" }));
    let sent = world.post("/api/v1/messages", form).await.json();
    let live = world.node.messages().pop().unwrap();
    crate::replays::settle(world, &live, State::Delivered);
    sent["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn events_about_messages_count_and_suppress() {
    let world = World::new();
    let id = settled(&world, "user@example.com").await;
    let path = "/api/v1/feedback/events";
    let events = json!([
        { "type": "open", "message_id": id },
        { "type": "complaint", "message_id": id, "reason": "abuse" },
    ]);
    let acme = world
        .token(json!({ "scope": "submit", "tenant": "acme" }))
        .await;
    let other = world
        .token(json!({ "scope": "submit", "tenant": "other" }))
        .await;
    let theirs = world.call(&other, "POST", path, events.clone()).await;
    assert_eq!(
        theirs.json(),
        json!({ "read": 2, "matched": 0, "suppressed": 0 })
    );
    let own = world.call(&acme, "POST", path, events).await;
    assert_eq!(
        own.json(),
        json!({ "read": 2, "matched": 2, "suppressed": 1 })
    );
    let heard: Vec<Counter> = {
        let state = world.node.state.lock().unwrap();
        state.heard.iter().map(|(_, _, counter)| *counter).collect()
    };
    assert_eq!(heard, [Counter::Opened, Counter::Complained]);
    assert_eq!(world.node.state.lock().unwrap().feedback.len(), 1);
    assert_eq!(
        stops(&world, "acme", Class::Low, "user@example.com"),
        Some("complaint")
    );
    for (events, pointer) in [
        (
            json!({ "events": [{ "type": "open", "recipient": "a@b.c" }] }),
            "/events/0/message_id",
        ),
        (
            json!({ "events": [{ "type": "bounce" }] }),
            "/events/0/message_id",
        ),
        (
            json!({ "events": [{ "type": "bounce", "message_id": "x" }] }),
            "/events/0/message_id",
        ),
        (
            json!({ "events": [{ "type": "bounce", "recipient": "x" }] }),
            "/events/0/recipient",
        ),
    ] {
        let answer = world.post(path, events.clone()).await;
        assert_eq!(answer.pointers(), [pointer], "{events}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_report_is_taken_as_it_came() {
    let world = World::new();
    let id = settled(&world, "user@example.com").await;
    let paths =
        outflow_feedback::ReturnPaths::new("bounces.example", &[b"a key that is long enough"]);
    let address = paths.unwrap().address(id.parse().unwrap());
    let mail = format!(
        "From: mailer-daemon@example.com\r\nTo: {address}\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; mx.example.com\r\n\r\n\
         Final-Recipient: rfc822; user@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\n\
         Diagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n--b--\r\n"
    );
    let path = "/api/v1/feedback/dsn";
    let told = send(&world, &world.admin, path, "message/rfc822", &mail).await;
    assert_eq!(
        told.json(),
        json!({ "read": 1, "matched": 1, "suppressed": 1 })
    );
    assert_eq!(
        stops(&world, "acme", Class::Critical, "user@example.com"),
        Some("hard_bounce")
    );
    let none = send(
        &world,
        &world.admin,
        path,
        "message/rfc822",
        "Subject: hi\r\n\r\nhello",
    )
    .await;
    assert_eq!(none.status, 422, "{}", none.text);
    let unknown = send(
        &world,
        &world.admin,
        "/api/v1/feedback/nobody",
        "text/plain",
        "x",
    )
    .await;
    assert_eq!(unknown.status, 404);
}
