//! What each scope cannot do, route by route. Every operation of the OpenAPI
//! document must be in the table.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::World;

/// Who may do something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Anybody, without a token.
    All,
    /// Tokens that submit, also those of a tenant.
    Submit,
    /// Operators, also those of a tenant.
    OperateOwn,
    /// Operators of all tenants.
    Operate,
    /// Administrators.
    Admin,
    /// Whoever reads metrics.
    Metrics,
}

const TABLE: &[(&str, &str, Who)] = &[
    ("get", "/healthz", Who::All),
    ("get", "/readyz", Who::All),
    ("get", "/openapi.json", Who::All),
    ("get", "/metrics", Who::Metrics),
    ("post", "/api/v1/messages", Who::Submit),
    ("get", "/api/v1/messages", Who::Submit),
    ("get", "/api/v1/messages/{id}", Who::Submit),
    ("delete", "/api/v1/messages/{id}", Who::Submit),
    ("get", "/api/v1/messages/{id}/explain", Who::Submit),
    ("post", "/api/v1/messages/{id}/retry", Who::OperateOwn),
    ("get", "/api/v1/messages/{id}/raw", Who::Admin),
    ("post", "/api/v1/messages/bulk", Who::OperateOwn),
    ("get", "/api/v1/events", Who::Submit),
    ("get", "/api/v1/pauses", Who::OperateOwn),
    ("post", "/api/v1/pauses", Who::OperateOwn),
    ("delete", "/api/v1/pauses/{id}", Who::OperateOwn),
    ("get", "/api/v1/dead-letters", Who::OperateOwn),
    ("get", "/api/v1/dead-letters/causes", Who::OperateOwn),
    ("get", "/api/v1/dead-letters/reviews", Who::OperateOwn),
    ("post", "/api/v1/dead-letters/reviews", Who::OperateOwn),
    ("get", "/api/v1/dead-letters/reviews/{id}", Who::OperateOwn),
    (
        "post",
        "/api/v1/dead-letters/reviews/{id}/approve",
        Who::OperateOwn,
    ),
    (
        "post",
        "/api/v1/dead-letters/reviews/{id}/discard",
        Who::OperateOwn,
    ),
    ("get", "/api/v1/accounts", Who::Operate),
    ("get", "/api/v1/accounts/{id}", Who::Operate),
    ("put", "/api/v1/accounts/{id}", Who::Admin),
    ("patch", "/api/v1/accounts/{id}", Who::Admin),
    ("delete", "/api/v1/accounts/{id}", Who::Admin),
    ("get", "/api/v1/policies", Who::Operate),
    ("get", "/api/v1/policies/{path}", Who::Operate),
    ("put", "/api/v1/policies/{path}", Who::Operate),
    ("patch", "/api/v1/policies/{path}", Who::Operate),
    ("delete", "/api/v1/policies/{path}", Who::Operate),
    ("get", "/api/v1/lanes", Who::Operate),
    ("post", "/api/v1/lanes/{lane}/pause", Who::Operate),
    ("post", "/api/v1/lanes/{lane}/resume", Who::Operate),
    ("get", "/api/v1/limits", Who::Operate),
    ("get", "/api/v1/limits/{key}", Who::Operate),
    ("patch", "/api/v1/limits/{key}", Who::Operate),
    ("post", "/api/v1/throttle/acquire", Who::Submit),
    ("post", "/api/v1/throttle/release", Who::Submit),
    ("post", "/api/v1/throttle/pause", Who::Submit),
    ("get", "/api/v1/audit", Who::Operate),
    ("get", "/api/v1/suppressions", Who::Submit),
    ("post", "/api/v1/suppressions", Who::Submit),
    ("delete", "/api/v1/suppressions", Who::OperateOwn),
    ("post", "/api/v1/suppressions/import", Who::OperateOwn),
    ("get", "/api/v1/suppressions/export", Who::OperateOwn),
    ("post", "/api/v1/suppressions/undo", Who::OperateOwn),
    ("post", "/api/v1/suppressions/review", Who::OperateOwn),
    ("post", "/api/v1/feedback/{provider}", Who::Submit),
    ("get", "/api/v1/history", Who::Operate),
    ("get", "/api/v1/incidents", Who::Operate),
    ("get", "/api/v1/incidents/{id}", Who::Operate),
    ("post", "/api/v1/incidents/{id}/close", Who::Operate),
    ("get", "/api/v1/warm-ups", Who::Operate),
    ("get", "/api/v1/tenants/{id}/usage", Who::Submit),
    ("get", "/api/v1/tokens", Who::Admin),
    ("post", "/api/v1/tokens", Who::Admin),
    ("delete", "/api/v1/tokens/{id}", Who::Admin),
];

/// Tokens, and what each may do.
const CALLERS: [(&str, Option<&str>, &[Who]); 6] = [
    ("metrics", None, &[Who::All, Who::Metrics]),
    ("submit", None, &[Who::All, Who::Submit]),
    ("submit", Some("acme"), &[Who::All, Who::Submit]),
    (
        "operator",
        Some("acme"),
        &[Who::All, Who::Submit, Who::OperateOwn],
    ),
    (
        "operator",
        None,
        &[
            Who::All,
            Who::Submit,
            Who::OperateOwn,
            Who::Operate,
            Who::Metrics,
        ],
    ),
    (
        "admin",
        None,
        &[
            Who::All,
            Who::Submit,
            Who::OperateOwn,
            Who::Operate,
            Who::Admin,
            Who::Metrics,
        ],
    ),
];

#[test]
fn every_operation_is_in_the_table() {
    let document: Value = serde_json::from_str(&outflow_api::openapi().to_json().unwrap()).unwrap();
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            documented.insert((method.clone(), path.clone()));
        }
    }
    let table: BTreeSet<(String, String)> = TABLE
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(documented, table);
}

fn address(path: &str) -> String {
    path.replace("{id}", "nobody")
        .replace("{path}", "isp/nobody")
        .replace("{lane}", "default%2Fisp:nobody")
        .replace("{key}", "isp:nobody")
        .replace("{provider}", "events")
}

#[tokio::test]
async fn no_scope_does_more_than_it_may() {
    let world = World::new();
    let mut callers = vec![(String::new(), "nobody".to_owned(), &[Who::All][..])];
    for (scope, tenant, may) in CALLERS {
        let token = world
            .token(json!({ "scope": scope, "tenant": tenant }))
            .await;
        callers.push((token, format!("{scope} of {tenant:?}"), may));
    }
    for (method, path, who) in TABLE {
        for (token, caller, may) in &callers {
            let method = method.to_uppercase();
            let path = address(path);
            let body = match method.as_str() {
                "GET" | "DELETE" => Value::Null,
                _ => json!({ "unknown": true }),
            };
            let status = if path.ends_with("/events") && may.contains(who) {
                // A stream that does not end by itself.
                continue;
            } else {
                world
                    .call(token, &method, &path, body)
                    .await
                    .status
                    .as_u16()
            };
            let said = format!("{method} {path} by {caller}: {status}");
            match (may.contains(who), token.is_empty()) {
                (true, _) => assert!(![401, 403].contains(&status), "{said}"),
                (false, true) => assert_eq!(status, 401, "{said}"),
                (false, false) => assert_eq!(status, 403, "{said}"),
            }
            assert!(status < 500, "{said}");
        }
    }
}

#[tokio::test]
async fn a_wrong_token_opens_nothing() {
    let world = World::new();
    let other = world.token(json!({ "scope": "admin" })).await;
    let (known, _) = world.admin.rsplit_once('_').unwrap();
    let (_, secret) = other.rsplit_once('_').unwrap();
    let wrong = [
        "x".to_owned(),
        format!("{known}_{secret}"),
        format!("{}x", world.admin),
        world.admin.to_uppercase(),
        "outflow_".repeat(1_000),
    ];
    for token in wrong {
        let answer = world
            .call(&token, "GET", "/api/v1/lanes", Value::Null)
            .await;
        assert_eq!(answer.status, 401, "{token}");
        assert_eq!(answer.code(), "unauthorized");
        assert!(answer.headers.contains_key("www-authenticate"));
    }
    let key = axum::http::Request::get("/api/v1/lanes").header("x-api-token", &world.admin);
    let answer = world
        .send(key.body(axum::body::Body::empty()).unwrap())
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_token_that_was_taken_away_stops_at_once() {
    let world = World::new();
    let made = world
        .post("/api/v1/tokens", json!({ "name": "ci", "scope": "submit" }))
        .await
        .json();
    let (id, token) = (
        made["id"].as_str().unwrap(),
        made["token"].as_str().unwrap(),
    );
    let path = format!("/api/v1/tokens/{id}");
    let before = world
        .call(token, "GET", "/api/v1/messages", Value::Null)
        .await;
    assert_eq!(before.status, 200);
    let removed = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(removed.status, 204);
    let after = world
        .call(token, "GET", "/api/v1/messages", Value::Null)
        .await;
    assert_eq!(after.status, 401);

    let listed = world.get("/api/v1/tokens").await.json();
    let admin = listed["tokens"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/tokens/{admin}");
    let last = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(
        (last.status.as_u16(), last.code()),
        (409, "conflict".to_owned())
    );
}

#[tokio::test]
async fn the_audit_tells_tokens_of_one_name_apart() {
    let world = World::new();
    let mut wanted = Vec::new();
    for name in ["ops", "ops", "server"] {
        let fields = json!({ "name": name, "scope": "operator" });
        let token = world.token(fields).await;
        let id = token.split('_').nth(1).unwrap();
        wanted.push(format!("{name} ({id})"));
        let pause = json!({ "match": { "isp": "google" } });
        let made = world.call(&token, "POST", "/api/v1/pauses", pause).await;
        assert_eq!(made.status, 201);
    }
    let audit = world.get("/api/v1/audit").await.json();
    let entries = audit["entries"].as_array().unwrap().iter().rev();
    let of_pauses = entries.filter(|it| it["action"] == "pause.add");
    let actors: Vec<_> = of_pauses.map(|it| it["actor"].as_str().unwrap()).collect();
    assert_eq!(actors, wanted);
}
