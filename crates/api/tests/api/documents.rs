//! What is committed: the OpenAPI document and a page for each error.
//! `OUTFLOW_BLESS=1` rewrites them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::http::{Request, header};
use outflow_api::problem::Code;
use serde_json::{Value, json};

use crate::world::World;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn is_committed(path: &Path, text: &str) {
    if std::env::var_os("OUTFLOW_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == text,
        "{} is stale: run this test with OUTFLOW_BLESS=1 and commit it",
        path.display()
    );
}

#[test]
fn the_openapi_document_is_committed() {
    let mut text = outflow_api::openapi().to_pretty_json().unwrap();
    text.push('\n');
    is_committed(&docs().join("openapi.json"), &text);
}

#[test]
fn every_error_has_its_page() {
    let folder = docs().join("errors");
    let mut pages = BTreeSet::new();
    for code in Code::ALL {
        let name = format!("{}.md", code.as_str());
        is_committed(&folder.join(&name), &code.page());
        assert!(pages.insert(name), "{} is listed twice", code.as_str());
    }
    let found = fs::read_dir(&folder).unwrap();
    let found = found.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        found.collect::<BTreeSet<_>>(),
        pages,
        "a page without an error"
    );
}

/// All references resolve, all operations have an id of their own and say how
/// they refuse.
#[test]
fn the_openapi_document_is_whole() {
    let text = outflow_api::openapi().to_json().unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    for part in text.split("\"$ref\":\"#").skip(1) {
        let pointer = part.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer} is missing");
    }
    let mut seen = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(!path.contains('*'), "{path}");
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(seen.insert(id.to_owned()), "{id} is used twice");
            assert!(
                operation["responses"]["default"].is_null(),
                "{path}: name each"
            );
            if path.starts_with("/api/") {
                assert!(operation["responses"]["401"].is_object(), "{method} {path}");
                assert!(operation["security"].is_array(), "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn a_problem_has_one_shape() {
    let world = World::new();
    let token = format!("Bearer {}", world.admin);
    let json = "application/json";
    let send = async |method: &str, path: &str, media: &str, body: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, &token)
            .header(header::CONTENT_TYPE, media);
        world
            .send(request.body(Body::from(body.to_owned())).unwrap())
            .await
    };
    let path = "/api/v1/messages";
    let cases = [
        (send("POST", path, json, "{").await, 400, "invalid_json"),
        (
            send("POST", path, "text/xml", "{}").await,
            415,
            "unsupported_media_type",
        ),
        (send("POST", path, json, "{}").await, 422, "invalid"),
        (send("GET", "/nowhere", json, "").await, 404, "not_found"),
        (
            send("GET", "/api/v1/nowhere", json, "").await,
            404,
            "not_found",
        ),
        (
            send("PATCH", path, json, "").await,
            405,
            "method_not_allowed",
        ),
        (
            send("POST", "/api/v1/tokens", json, "[]").await,
            422,
            "invalid",
        ),
    ];
    for (answer, status, code) in cases {
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/problem+json");
        let problem = answer.json();
        assert_eq!(problem["code"], code);
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("/docs/errors/{code}"));
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        if status == 405 {
            assert!(answer.headers.contains_key("allow"));
        }
    }
    // A list of fields in order is no object, wherever it stands.
    let lists = [
        ("/api/v1/messages", json!(["email", "acme"]), ""),
        ("/api/v1/messages", json!([]), ""),
        (
            "/api/v1/messages",
            json!({ "from": "a@b.c", "to": "d@e.f", "attachments": [["a", "text/plain", ""]] }),
            "/attachments/0",
        ),
        (
            "/api/v1/dead-letters/reviews",
            json!({ "match": [null, null] }),
            "/match",
        ),
        (
            "/api/v1/messages/bulk",
            json!({ "action": "cancel", "match": ["acme"] }),
            "/match",
        ),
    ];
    for (path, body, pointer) in lists {
        let answer = world.post(path, body).await;
        assert_eq!(answer.pointers(), [pointer], "{path}: {}", answer.text);
    }
    for path in [
        "/api/v1/audit",
        "/api/v1/dead-letters",
        "/api/v1/dead-letters/causes",
    ] {
        for query in [format!("cursor={}", u64::MAX), "limit=0".to_owned()] {
            let answer = world.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status, 400, "{path}?{query}: {}", answer.text);
        }
    }
    let name = json!({ "name": "x", "scope": "root" });
    let answer = world.post("/api/v1/tokens", name).await;
    assert_eq!(answer.pointers(), ["/scope"]);
}

#[tokio::test]
async fn the_page_is_one_file_that_loads_nothing() {
    let world = World::new();
    let page = world.call("", "GET", "/", Value::Null).await;
    assert_eq!(page.status, 200);
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'"));
    assert!(!page.text.contains("http://") && !page.text.contains("https://"));
    let ready = world.call("", "GET", "/readyz", Value::Null).await.json();
    assert_eq!(ready, json!({ "ready": true, "reasons": [], "notes": [] }));
    let served = world
        .call("", "GET", "/openapi.json", Value::Null)
        .await
        .json();
    assert_eq!(served["info"]["title"], "Outflow");
    let metrics = world.get("/metrics").await;
    assert_eq!(metrics.text, "outflow_build_info 1\n");
    world.get("/api/v1/messages/x").await;
    world.get("/x").await;
    let told = world.told.0.lock().unwrap();
    let last = told.iter().rev().take(3).rev();
    assert_eq!(
        last.collect::<Vec<_>>(),
        [
            "GET /metrics 200",
            "GET /api/v1/messages/{id} 404",
            "GET other 404",
        ]
    );
}
