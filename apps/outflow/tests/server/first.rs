//! With nothing configured: a first message is sent, seen and explained.

use serde_json::json;

use crate::client::Client;
use crate::process::{Place, is_private, listed, metric, submit, wait_for, wait_state};

#[test]
fn a_first_message_is_sent_seen_and_explained() {
    let place = Place::new("first");
    place.configure("");
    let server = place.start();
    let says = |text: &str| server.greeting.iter().any(|line| line.contains(text));
    assert!(says("nothing leaves this machine"), "{:?}", server.greeting);
    assert!(says("admin-token"), "{:?}", server.greeting);
    assert!(is_private(&place.data().join("admin-token")));
    let address = std::fs::read_to_string(place.data().join("address")).unwrap();
    assert_eq!(address.trim(), format!("http://{}", server.address));

    let mut client = server.client();
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    let mut stranger = Client::new(server.address, "outflow_none_none");
    assert_eq!(stranger.get("/api/v1/messages").unwrap().status, 401);

    let id = submit(&mut client, json!({ "class": "critical" }));
    let shown = wait_state(&mut client, &id, "delivered");
    assert_eq!(shown["destination"], "isp:google");
    assert_eq!(shown["account"], "sandbox");
    let explain = client
        .get(&format!("/api/v1/messages/{id}/explain"))
        .unwrap();
    assert_eq!(explain.json()["state"], "delivered", "{}", explain.text);
    assert!(place.taken().contains_key(&id));

    wait_for("the metrics", || {
        let settled = "outflow_messages_settled_total{channel=\"email\",class=\"critical\",state=\"delivered\"} ";
        (metric(&mut client, settled) == Some(1.0)).then_some(())
    });
    let commits = metric(&mut client, "outflow_store_commit_seconds_count").unwrap();
    assert!(commits >= 1.0);
    assert!(metric(&mut client, "outflow_http_requests_total").is_some());

    server.stop();
    assert!(!place.data().join("address").exists());
    // What was delivered is known after a restart, and is not sent again.
    let server = place.start();
    let mut client = server.client();
    wait_state(&mut client, &id, "delivered");
    assert_eq!(listed(&mut client, "queued,sending,deferred").len(), 0);
    assert_eq!(place.taken()[&id].len(), 1);
    server.stop();
}

#[test]
fn a_second_process_on_the_same_directory_is_refused() {
    let place = Place::new("second");
    place.configure("");
    let server = place.start();
    let output = place.command().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("is in use by another outflow process"),
        "{said}"
    );
    let id = submit(&mut server.client(), json!({}));
    wait_state(&mut server.client(), &id, "delivered");
    server.stop();
}

#[test]
fn what_is_not_built_is_refused_at_the_start() {
    let place = Place::new("unbuilt");
    for (settings, said) in [
        ("[ledger]\nurl = \"redis://localhost\"\n", "ledger.url"),
        ("[serverr]\n", "server"),
    ] {
        place.configure(settings);
        let output = place.command().output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(said), "{stderr}");
    }
    assert!(!place.data().exists());
}
