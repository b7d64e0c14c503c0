//! Messages, asked about and withdrawn.

use std::sync::Arc;

use outflow_core::engine::explain::{Explanation, Obstacle};
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::reply::Enhanced;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::receipts::Happening;
use serde_json::{Value, json};

use crate::replays::settle;
use crate::world::{START, World, message};

async fn submitted(world: &World, fields: Value) -> (Seq, String) {
    let answer = world.post("/api/v1/messages", message(fields)).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let seq = world.node.messages().last().unwrap().seq;
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    (seq, format!("/api/v1/messages/{id}"))
}

fn rate_limited() -> Explanation {
    Explanation {
        waiting_on: vec![Obstacle::Limit {
            key: Arc::new(LimitKey::of(Scope::Isp, "google")),
            until: Some(START + Nanos::from_secs(30)),
        }],
        ahead_in_flow: 4,
        flows_waiting: 2,
        earliest: Some(START + Nanos::from_secs(30)),
    }
}

#[tokio::test]
async fn a_waiting_message_says_on_what_and_until_when() {
    let world = World::new();
    let (seq, path) = submitted(&world, json!({})).await;
    world.node.state.lock().unwrap().explanation = Some(rate_limited());
    let at = "2026-09-21T14:13:50.000Z";
    let unix = START.0 / 1_000_000_000 + 30;

    let shown = world.get(&path).await.json();
    assert_eq!(shown["deferred_until"], at);
    assert_eq!(shown["deferred_ts"], unix);
    assert_eq!(
        shown["waiting_on"],
        json!([{
            "reason": "limit", "limit": "isp:google", "until": at,
            "account": null, "detail": null,
        }])
    );
    assert_eq!(shown["eta"], at);
    let explained = world.get(&format!("{path}/explain")).await.json();
    assert_eq!(explained["ahead_in_flow"], 4);
    assert_eq!(
        explained["summary"],
        format!(
            "It waits on the limit isp:google until {at}, 4 messages ahead of it. It can go at {at} at the earliest."
        )
    );
    let listed = world.get("/api/v1/messages?state=queued").await.json();
    assert_eq!(listed["messages"][0]["deferred_until"], at);
    assert_eq!(listed["messages"][0]["deferred_ts"], unix);

    // A retry time, and what came before it.
    let until = START + Nanos::from_secs(300);
    {
        let mut state = world.node.state.lock().unwrap();
        let live = state.messages.get_mut(&seq).unwrap();
        (live.state, live.due_at, live.attempts) = (State::Deferred, Some(until), 1);
    }
    let failed = Happening {
        at: START,
        what: "deferred".to_owned(),
        account: Some("primary".to_owned()),
        until: Some(until),
        error: Some(LastError {
            code: Some(421),
            enhanced: Some(Enhanced(4, 7, 28)),
            class: ReplyClass::Rate,
            rule: Name::from("google-rate"),
            text: "too fast".to_owned(),
        }),
    };
    world
        .papers
        .events
        .lock()
        .unwrap()
        .insert(seq, vec![failed]);
    let shown = world.get(&path).await.json();
    assert_eq!(shown["state"], "deferred");
    assert_eq!(shown["deferred_ts"], START.0 / 1_000_000_000 + 300);
    assert_eq!(shown["account"], "primary");
    assert_eq!(
        shown["last_error"],
        json!({
            "code": "rate_limited", "smtp_status": 421, "enhanced": "4.7.28",
            "http_status": null, "provider_message": "too fast", "class": "rate",
        })
    );
    assert_eq!(shown["events"][0]["what"], "deferred");
    assert_eq!(shown["waiting_on"][0]["reason"], "due_time");
    let retried = world.post(&format!("{path}/retry"), Value::Null).await;
    assert_eq!(retried.json()["state"], "queued");
}

#[tokio::test]
async fn a_message_is_withdrawn_unless_it_is_too_late() {
    let world = World::new();
    let (seq, path) = submitted(&world, json!({})).await;
    let state = |to: State| {
        let mut state = world.node.state.lock().unwrap();
        state.messages.get_mut(&seq).unwrap().state = to;
    };
    state(State::Sending);
    let late = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(
        (late.status.as_u16(), late.code()),
        (409, "already_sending".to_owned())
    );
    state(State::Queued);
    let live = world.node.messages().remove(0);
    let gone = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(gone.json()["state"], "cancelled");
    settle(&world, &live, State::Cancelled);
    let again = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(
        (again.status.as_u16(), again.code()),
        (409, "already_settled".to_owned())
    );
    let explained = world.get(&format!("{path}/explain")).await.json();
    assert_eq!(explained["state"], "cancelled");
    assert_eq!(world.get(&format!("{path}/raw")).await.code(), "body_gone");
    assert!(world.shelf.actions().contains(&"message.cancel".to_owned()));
    // An id that was mistyped is told from one that was given.
    let wrong = path.replace("-7", "-8");
    for path in [wrong.as_str(), "/api/v1/messages/1", "/api/v1/messages/%00"] {
        assert_eq!(world.get(path).await.code(), "not_found", "{path}");
    }
}

#[tokio::test]
async fn administrators_read_the_content_and_it_is_audited() {
    let world = World::new();
    let (_, path) = submitted(&world, json!({ "tags": { "order": "7" } })).await;
    let raw = world.get(&format!("{path}/raw")).await;
    assert_eq!(raw.headers["content-type"], "message/rfc822");
    let mail = raw.text;
    let (header, body) = mail.split_once("\r\n\r\n").unwrap();
    assert!(header.contains("Message-ID: <"), "{header}");
    assert_eq!(body.trim_end(), "Hello!");
    let audit = world.get("/api/v1/audit?limit=1").await.json();
    assert_eq!(audit["entries"][0]["action"], "message.read");
    let id = world.admin.split('_').nth(1).unwrap();
    assert_eq!(audit["entries"][0]["actor"], format!("admin ({id})"));
    let next = audit["next_cursor"].as_u64().unwrap();
    let older = world
        .get(&format!("/api/v1/audit?cursor={next}"))
        .await
        .json();
    assert_eq!(older["entries"][0]["action"], "token.add");
}

#[tokio::test]
async fn leaving_a_list_and_pictures_in_html_have_fields_of_their_own() {
    let world = World::new();
    let more = json!({
        "html": "<img src=\"cid:logo\">",
        "unsubscribe": { "url": "https://shop.example/leave?u=7", "one_click": true },
        "attachments": [{
            "filename": "logo.png",
            "content_type": "image/png",
            "content": "iVBORw0KGgo=",
            "content_id": "logo",
        }],
    });
    let (_, path) = submitted(&world, more).await;
    let mail = world.get(&format!("{path}/raw")).await.text;
    for wanted in [
        "List-Unsubscribe: <https://shop.example/leave?u=7>\r\n",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n",
        "Content-ID: <logo>\r\n",
        "multipart/related",
    ] {
        assert!(mail.contains(wanted), "{wanted:?} is not in {mail}");
    }
    let wrong = json!({
        "from": "a@shop.example",
        "to": "user@gmail.com",
        "text": "Hello!",
        "unsubscribe": { "one_click": true },
        "attachments": [{
            "filename": "logo.png",
            "content_type": "image/png",
            "content": "",
            "content_id": "a> <b",
        }],
    });
    let answer = world
        .call(&world.admin, "POST", "/api/v1/messages", wrong)
        .await;
    assert_eq!(answer.status.as_u16(), 422);
    let pointers: Vec<_> = answer.json()["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["pointer"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(pointers, ["/attachments/0/content_id", "/unsubscribe"]);
}

#[tokio::test]
async fn a_list_goes_from_live_to_done_by_cursor() {
    let world = World::new();
    for number in 0..5 {
        let later = json!({ "to": format!("u{number}@example.com"), "campaign": "q4" });
        submitted(&world, later).await;
    }
    submitted(&world, json!({ "to": "other@example.com" })).await;
    for live in world.node.messages().iter().take(2) {
        settle(&world, live, State::Delivered);
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let path = format!("/api/v1/messages?campaign=q4&limit=2{cursor}");
        let page = world.get(&path).await.json();
        for one in page["messages"].as_array().unwrap() {
            seen.push(one["to"].as_str().unwrap().to_owned());
        }
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
        assert!(pages < 10, "the list does not end");
    }
    let order = ["u2", "u3", "u4", "u1", "u0"].map(|user| format!("{user}@example.com"));
    assert_eq!(seen, order);
    let bad = [
        "state=new",
        "limit=0",
        "limit=x",
        "cursor=zz",
        "class=x",
        "destination=google",
        "stat=queued",
    ];
    for query in bad {
        let answer = world.get(&format!("/api/v1/messages?{query}")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "invalid_query".to_owned()),
            "{query}"
        );
    }
    let none = world.get("/api/v1/messages?state=dead").await.json();
    assert_eq!(none, json!({ "messages": [], "next_cursor": null }));
}

#[tokio::test]
async fn a_message_can_be_put_off_and_can_expire() {
    let world = World::new();
    let fields = json!({
        "not_before": "2026-09-21T15:00:00+00:00",
        "expires_at": "2026-09-21T18:00:00+02:00",
    });
    let (seq, path) = submitted(&world, fields).await;
    let live = world.node.state.lock().unwrap().messages[&seq].clone();
    assert_eq!(live.due_at, Some(Wall(1_790_002_800_000_000_000)));
    assert_eq!(live.expires_at, Wall(1_790_006_400_000_000_000));
    let shown = world.get(&path).await.json();
    assert_eq!(shown["deferred_until"], "2026-09-21T15:00:00.000Z");
    assert_eq!(shown["expires_at"], "2026-09-21T16:00:00.000Z");
}
