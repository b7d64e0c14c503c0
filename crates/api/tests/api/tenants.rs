//! A tenant's token: its own, and nothing else.

use axum::body::Body;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outflow_core::message::State;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{World, message};

#[tokio::test]
async fn a_tenants_token_speaks_for_its_tenant_only() {
    let world = World::new();
    let acme = world
        .token(json!({ "scope": "submit", "tenant": "acme" }))
        .await;
    let body = message(json!({ "tenant": "other" }));
    let sent = world.call(&acme, "POST", "/api/v1/messages", body).await;
    assert_eq!(sent.status, 202);
    assert_eq!(
        world.node.messages()[0].key.tenant.as_str(),
        "acme",
        "its tenant overrides"
    );
    let theirs = world
        .post("/api/v1/messages", message(json!({ "tenant": "other" })))
        .await
        .json();
    let theirs = theirs["id"].as_str().unwrap();
    for (method, path) in [
        ("GET", format!("/api/v1/messages/{theirs}")),
        ("GET", format!("/api/v1/messages/{theirs}/explain")),
        ("DELETE", format!("/api/v1/messages/{theirs}")),
        ("GET", "/api/v1/messages?tenant=other".to_owned()),
    ] {
        let answer = world.call(&acme, method, &path, Value::Null).await;
        assert_eq!(answer.status, 404, "{method} {path}");
    }
    let listed = world
        .call(&acme, "GET", "/api/v1/messages", Value::Null)
        .await
        .json();
    let tenants: Vec<&Value> = listed["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["tenant"])
        .collect();
    assert_eq!(tenants, ["acme"]);
    let own = sent.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/messages/{own}");
    let gone = world.call(&acme, "DELETE", &path, Value::Null).await;
    assert_eq!(gone.json()["state"], "cancelled");

    // Settled messages of others do not exist either.
    let live = world.node.messages().remove(0);
    crate::replays::settle(&world, &live, State::Bounced);
    let path = format!("/api/v1/messages/{theirs}");
    assert_eq!(
        world.call(&acme, "GET", &path, Value::Null).await.status,
        404
    );
    let done = world
        .call(&acme, "GET", "/api/v1/messages?state=bounced", Value::Null)
        .await;
    assert_eq!(done.json()["messages"], json!([]));
    assert_eq!(world.get(&path).await.json()["state"], "bounced");
}

/// A token that only submits and names no tenant submits for any, but sees only
/// what names no tenant either.
#[tokio::test]
async fn a_submit_token_without_a_tenant_sees_no_tenants_messages() {
    let world = World::new();
    let token = world.token(json!({ "scope": "submit" })).await;
    let send = async |fields: Value| {
        let sent = world
            .call(&token, "POST", "/api/v1/messages", message(fields))
            .await;
        assert_eq!(sent.status, 202, "{}", sent.text);
        format!("/api/v1/messages/{}", sent.json()["id"].as_str().unwrap())
    };
    let own = send(json!({})).await;
    let theirs = send(json!({ "tenant": "acme" })).await;
    for (method, path, status) in [
        ("GET", own.clone(), 200),
        ("GET", theirs.clone(), 404),
        ("GET", format!("{theirs}/explain"), 404),
        ("DELETE", theirs.clone(), 404),
        ("GET", "/api/v1/messages?tenant=acme".to_owned(), 404),
        ("DELETE", own, 200),
    ] {
        let answer = world.call(&token, method, &path, Value::Null).await;
        assert_eq!(answer.status, status, "{method} {path}");
    }
    send(json!({ "subject": "another" })).await;
    let listed = world
        .call(&token, "GET", "/api/v1/messages", Value::Null)
        .await
        .json();
    let listed = listed["messages"].as_array().unwrap();
    assert!(!listed.is_empty());
    assert!(listed.iter().all(|one| one["tenant"] == "default"));
    assert_eq!(
        world.get(&theirs).await.status,
        200,
        "for operators it is there"
    );
}

#[tokio::test]
async fn a_token_covers_its_classes_pools_and_domains() {
    let world = World::new();
    let token = world
        .token(json!({
            "scope": "submit",
            "classes": ["low"],
            "pools": ["bulk"],
            "from_domains": ["SHOP.example"],
        }))
        .await;
    let good = json!({ "class": "low", "pool": "bulk" });
    let cases = [
        (json!({}), 202),
        (json!({ "class": "critical" }), 403),
        (json!({ "pool": "default" }), 403),
        (json!({ "from": "a@sub.shop.example" }), 403),
        (json!({ "from": "a@SHOP.example" }), 202),
    ];
    for (fields, status) in cases {
        let mut body = message(good.clone());
        let into = body.as_object_mut().unwrap();
        into.extend(fields.as_object().unwrap().clone());
        let answer = world.call(&token, "POST", "/api/v1/messages", body).await;
        assert_eq!(answer.status, status, "{fields}: {}", answer.text);
    }
    // Whom a whole message names counts as well: it would be signed for them.
    let raw = |text: &str| {
        let raw = STANDARD.encode(text);
        json!({
            "class": "low", "pool": "bulk", "from": "a@shop.example", "to": "b@example.org",
            "raw": raw,
        })
    };
    let cases = [
        (raw("From: a@shop.example\r\n\r\nx"), 202),
        (raw("From: ceo@victim.example\r\n\r\nx"), 403),
        (
            raw("From: a@shop.example, ceo@victim.example\r\n\r\nx"),
            403,
        ),
        (
            raw("From: a@shop.example\nSender: ceo@victim.example\n\nx"),
            403,
        ),
        (raw("X: y\rFrom: ceo@victim.example\r\n\r\nx"), 403),
        (raw("Subject: nobody\r\n\r\nx"), 422),
    ];
    for (body, status) in cases {
        let answer = world.call(&token, "POST", "/api/v1/messages", body).await;
        assert_eq!(answer.status, status, "{}", answer.text);
    }
    let mut bounces = message(good.clone());
    bounces["from"] = json!("a@shop.example");
    bounces["return_path"] = json!("b@victim.example");
    let answer = world
        .call(&token, "POST", "/api/v1/messages", bounces)
        .await;
    assert_eq!(answer.status, 403, "{}", answer.text);
    let wrong = json!({ "name": "x", "scope": "admin", "tenant": "acme", "classes": ["x"], "from_domains": [".."] });
    let answer = world.post("/api/v1/tokens", wrong).await;
    assert_eq!(
        answer.pointers(),
        ["/tenant", "/classes/0", "/from_domains/0"]
    );
}

#[tokio::test]
async fn a_tenants_operator_pauses_and_moves_its_own() {
    let world = World::new();
    let acme = world
        .token(json!({ "scope": "operator", "tenant": "acme" }))
        .await;
    let pause = |matches: Value| json!({ "match": matches, "reason": "storm" });
    let paths = "/api/v1/pauses";
    let made = world
        .call(&acme, "POST", paths, pause(json!({ "isp": "Gmail" })))
        .await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(
        made.json()["match"],
        json!({ "tenant": "acme", "isp": "google" })
    );
    let others = world
        .call(&acme, "POST", paths, pause(json!({ "tenant": "b" })))
        .await;
    assert_eq!(others.status, 404);
    let account = world
        .call(&acme, "POST", paths, pause(json!({ "account": "ses-1" })))
        .await;
    assert_eq!(account.status, 403);
    let wide = world
        .post(paths, pause(json!({ "class": "low" })))
        .await
        .json();
    let seen = world.call(&acme, "GET", paths, Value::Null).await.json();
    assert_eq!(seen["pauses"].as_array().unwrap().len(), 1);
    let path = format!("{paths}/{}", wide["id"].as_str().unwrap());
    assert_eq!(
        world.call(&acme, "DELETE", &path, Value::Null).await.status,
        404
    );
    assert_eq!(
        world
            .call(&world.admin, "DELETE", &path, Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(world.node.state.lock().unwrap().pauses.len(), 1);

    let bulk = json!({ "action": "cancel", "match": { "campaign": "q4" }, "dry_run": true });
    let answer = world
        .call(&acme, "POST", "/api/v1/messages/bulk", bulk)
        .await;
    assert_eq!(
        answer.json(),
        json!({ "action": "cancel", "matched": 0, "dry_run": true })
    );
    let bulks = world.node.state.lock().unwrap().bulks.clone();
    assert_eq!(
        bulks,
        [(
            "Cancel".to_owned(),
            "tenant:acme/campaign:q4".to_owned(),
            true
        )]
    );
    let all = json!({ "action": "cancel", "match": {} });
    assert_eq!(
        world.post("/api/v1/messages/bulk", all).await.pointers(),
        ["/match"]
    );
}

#[tokio::test]
async fn one_tenant_leaves_room_for_others() {
    let world = World::new();
    let mut tokens = Vec::new();
    for tenant in ["acme", "other"] {
        let fields = json!({ "scope": "operator", "tenant": tenant });
        tokens.push(world.token(fields).await);
    }
    let [acme, other] = [&tokens[0], &tokens[1]];
    // The world's throttle keeps 1,000 keys, and its list 10,000 entries.
    let ask = |no: usize| {
        let key = format!("k{no}");
        json!({ "limits": [{ "key": key, "rate": "1/day", "burst": 2 }] })
    };
    let path = "/api/v1/throttle/acquire";
    for no in 0..889 {
        let answer = world.call(acme, "POST", path, ask(no)).await;
        assert_eq!(answer.status, 200, "{no}: {}", answer.text);
    }
    let refused = world.call(acme, "POST", path, ask(889)).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str()),
        (429, "quota_exhausted")
    );
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(world.call(other, "POST", path, ask(0)).await.status, 200);

    let mut listening = Vec::new();
    let listen = |token: &String| {
        let request = Request::get("/api/v1/events").header("x-api-token", token);
        world
            .router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
    };
    for _ in 0..57 {
        let stream = listen(acme).await.unwrap();
        assert_eq!(stream.status(), 200);
        listening.push(stream);
    }
    assert_eq!(listen(acme).await.unwrap().status(), 429);
    listening.push(listen(other).await.unwrap());
    assert_eq!(listening.last().unwrap().status(), 200);

    let pause = json!({ "match": { "isp": "google" } });
    let made = world.call(acme, "POST", "/api/v1/pauses", pause).await;
    assert_eq!(made.status, 201);
    let usage = "/api/v1/tenants/acme/usage";
    let shown = world.call(acme, "GET", usage, Value::Null).await.json();
    let of = |used: u64, left: u64| json!({ "used": used, "left": left, "limit": used + left });
    let wanted = json!({
        "tenant": "acme",
        "connections": of(0, 3_641),
        "bytes_in_flight": of(0, 128 << 20),
        "flows": of(3, 7),
        "permits": of(0, 888_889),
        "waiters": of(0, 88_889),
        "throttle_keys": of(889, 0),
        "suppressions": of(0, 8_889),
        "pauses": of(1, 7_999),
        "listeners": of(57, 0),
    });
    assert_eq!(shown, wanted);
    let hidden = world.call(other, "GET", usage, Value::Null).await;
    assert_eq!(hidden.status, 404);
}
