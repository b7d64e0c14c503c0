//! What operators set over the API is in force within moments, survives a
//! restart, and is in force again before anything is sent.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::process::{Place, listed, show, submit, wait_for, wait_state};

#[test]
fn accounts_policies_and_pauses_survive_a_restart_and_take_effect_first() {
    let place = Place::new("operators");
    place.configure(
        "[[account]]\nid = \"file\"\ntransport = \"sandbox\"\n\
         [[policy]]\nmatch = { isp = \"yahoo\" }\nrate = \"1000/s\"\n",
    );
    let server = place.start();
    let mut client = server.client();
    let put = json!({ "transport": "sandbox", "pool": "second" });
    let answer = client.call("PUT", "/api/v1/accounts/added", Some(&put));
    assert!(answer.unwrap().status < 300);
    let patch = json!({ "limits": ["2/h"] });
    let answer = client.call("PATCH", "/api/v1/policies/isp/yahoo", Some(&patch));
    let answer = answer.unwrap();
    assert!(answer.status < 300, "{}", answer.text);
    let pause = json!({ "match": { "tenant": "held" }, "reason": "a test" });
    let answer = client.post("/api/v1/pauses", &pause).unwrap();
    assert!(answer.status < 300, "{}", answer.text);
    let pause_id = answer.json()["id"].as_str().unwrap().to_owned();

    let held: Vec<String> = (0..50)
        .map(|_| submit(&mut client, json!({ "tenant": "held" })))
        .collect();
    let yahoo: Vec<String> = (0..4)
        .map(|_| submit(&mut client, json!({ "to": "user@yahoo.com" })))
        .collect();
    wait_for("two at yahoo", || {
        let taken = place.taken();
        (yahoo.iter().filter(|id| taken.contains_key(*id)).count() == 2).then_some(())
    });
    server.kill();

    let server = place.start();
    let mut client = server.client();
    let second = submit(&mut client, json!({ "pool": "second" }));
    wait_state(&mut client, &second, "delivered");
    let plain = submit(&mut client, json!({}));
    wait_state(&mut client, &plain, "delivered");
    let taken = place.taken();
    assert!(held.iter().all(|id| !taken.contains_key(id)));
    assert_eq!(yahoo.iter().filter(|id| taken.contains_key(*id)).count(), 2);
    assert_eq!(
        show(&mut client, &held[0])["waiting_on"][0]["reason"],
        "paused"
    );
    let account = client.get("/api/v1/accounts/added").unwrap().json();
    assert_eq!(account["origin"], "api", "{account}");
    let account = client.get("/api/v1/accounts/file").unwrap().json();
    assert_eq!(account["origin"], "file", "{account}");

    let lifted = client.call("DELETE", &format!("/api/v1/pauses/{pause_id}"), None);
    assert!(lifted.unwrap().status < 300);
    for id in &held {
        wait_state(&mut client, id, "delivered");
    }
    assert_eq!(listed(&mut client, "queued,deferred").len(), 2);
    server.stop();
}

/// Whoever rotates logs moves the file away, and may send a hangup.
#[test]
fn the_attempt_log_follows_its_path() {
    let place = Place::new("rotated");
    let log = place.dir.join("attempts.jsonl");
    place.configure(&format!("attempts = {log:?}\n"));
    let server = place.start();
    let mut client = server.client();
    let lines = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().count()
    };
    let id = submit(&mut client, json!({}));
    wait_state(&mut client, &id, "delivered");
    wait_for("the first attempt", || (lines(&log) == 1).then_some(()));
    let old = place.dir.join("attempts.1");
    fs::rename(&log, &old).unwrap();
    server.signal("HUP");
    let id = submit(&mut client, json!({}));
    wait_state(&mut client, &id, "delivered");
    wait_for("the second attempt, in a new file", || {
        (lines(&log) == 1).then_some(())
    });
    assert_eq!(lines(&old), 1);
    server.stop();
}
