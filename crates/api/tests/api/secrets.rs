//! What an administrator's token cannot learn of the machine and of others.

use std::path::PathBuf;

use outflow_api::{Bounds, StartValues};
use outflow_config::RawAccount;
use serde_json::{Value, json};

use crate::world::{Answer, World};

const PATH: &str = "/api/v1/accounts/relay";

fn raw(fields: &Value) -> RawAccount {
    RawAccount::read(fields).unwrap()
}

/// A server with one account of its file, whose password is somewhere.
fn world() -> World {
    let of_file = raw(&json!({
        "id": "of-file", "transport": "smtp", "host": "mail.example.com",
        "user": "u", "password_file": "/etc/outflow/password",
    }));
    let start = StartValues {
        accounts: vec![of_file],
        secrets_dir: PathBuf::from("/run/secrets"),
        ..StartValues::default()
    };
    World::with(start, Bounds::default())
}

async fn send(world: &World, method: &str, path: &str, body: Value) -> Answer {
    world.call(&world.admin, method, path, body).await
}

fn relay(fields: &Value) -> Value {
    let mut relay = json!({ "transport": "smtp", "host": "a.example.com", "user": "u" });
    let into = relay.as_object_mut().unwrap();
    into.extend(fields.as_object().unwrap().clone());
    relay
}

#[tokio::test]
async fn files_come_from_one_directory() {
    let world = world();
    for path in [
        "/etc/shadow",
        "/run/secrets/../../etc/shadow",
        "/run/secrets-of-others/x",
        "password",
    ] {
        let account = relay(&json!({ "password_file": path }));
        let answer = send(&world, "PUT", PATH, account).await;
        assert_eq!(answer.pointers(), ["/password_file"], "{path}");
        let key = json!({ "domain": "a.example", "selector": "s", "key_file": path });
        let account = relay(&json!({ "password": "x", "dkim": key }));
        let answer = send(&world, "PUT", PATH, account).await;
        assert_eq!(answer.pointers(), ["/dkim/key_file"], "{path}");
    }
    let inside = relay(&json!({ "password_file": "/run/secrets/relay" }));
    assert_eq!(send(&world, "PUT", PATH, inside).await.status, 200);
    // What the settings file names stays as it is.
    let patch = json!({ "max_connections": 3 });
    let answer = send(&world, "PATCH", "/api/v1/accounts/of-file", patch).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn variables_have_one_prefix() {
    let with_variable = raw(&json!({
        "id": "of-file", "transport": "smtp", "host": "mail.example.com",
        "user": "u", "password_env": "SMTP_PASSWORD",
    }));
    let start = StartValues {
        accounts: vec![with_variable],
        ..StartValues::default()
    };
    let world = World::with(start, Bounds::default());
    for name in ["AWS_SECRET_ACCESS_KEY", "OUTFLOW_TOKEN", "OUTFLOW_secret_x"] {
        let account = relay(&json!({ "password_env": name }));
        let answer = send(&world, "PUT", PATH, account).await;
        assert_eq!(answer.status, 422, "{name}");
        assert_eq!(answer.pointers(), ["/password_env"], "{name}");
        assert!(answer.text.contains("OUTFLOW_SECRET_"), "{}", answer.text);
    }
    let allowed = relay(&json!({ "password_env": "OUTFLOW_SECRET_RELAY" }));
    let answer = send(&world, "PUT", PATH, allowed).await;
    assert!(!answer.pointers().contains(&"/password_env".to_owned()));
    // The account of the file goes on with its own, but only where it went.
    let of_file = "/api/v1/accounts/of-file";
    let patch = json!({ "max_connections": 3 });
    let answer = send(&world, "PATCH", of_file, patch).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let moved = json!({ "host": "evil.example", "password_env": "SMTP_PASSWORD" });
    let answer = send(&world, "PATCH", of_file, moved).await;
    assert_eq!(answer.pointers(), ["/password_env"], "{}", answer.text);
}

#[tokio::test]
async fn a_password_is_not_sent_elsewhere_without_knowing_it() {
    let world = world();
    let account = relay(&json!({ "password": "secret" }));
    assert_eq!(send(&world, "PUT", PATH, account).await.status, 200);
    let moved = json!({ "host": "evil.example" });
    let hidden = relay(&json!({ "host": "evil.example", "password": "(hidden)" }));
    let of_file = "/api/v1/accounts/of-file";
    let attempts = [
        ("PATCH", PATH, moved.clone()),
        ("PATCH", PATH, json!({ "port": 2525 })),
        ("PATCH", PATH, json!({ "tls": "none", "insecure": true })),
        ("PUT", PATH, hidden),
        ("PATCH", of_file, moved),
    ];
    let named = json!({ "host": "evil.example", "password_file": "/etc/outflow/password" });
    let answer = send(&world, "PATCH", of_file, named).await;
    assert_eq!(answer.pointers(), ["/password_file"], "{}", answer.text);
    for (method, path, body) in attempts {
        let answer = send(&world, method, path, body.clone()).await;
        assert_eq!(
            answer.status, 422,
            "{method} {path} {body}: {}",
            answer.text
        );
        assert_eq!(answer.pointers(), ["/password"], "{method} {path} {body}");
    }
    let known = json!({ "host": "b.example.com", "password": "secret" });
    assert_eq!(send(&world, "PATCH", PATH, known).await.status, 200);
    let same = json!({ "max_connections": 3 });
    assert_eq!(send(&world, "PATCH", PATH, same).await.status, 200);
    let without = json!({ "host": "c.example.com", "user": null, "password": null });
    assert_eq!(send(&world, "PATCH", PATH, without).await.status, 200);
}
