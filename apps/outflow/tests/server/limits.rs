//! Limits of accounts by minute, hour and day, as people who send through one
//! provider know them.

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, listed, metric, show, submit, wait_for, wait_state};

fn delivered(client: &mut Client, ids: &[String]) -> usize {
    let mut states = ids.iter().map(|id| show(client, id)["state"].clone());
    states.by_ref().filter(|state| state == "delivered").count()
}

fn of_list(client: &mut Client, id: &str) -> Value {
    let page = client
        .get("/api/v1/messages?state=queued,deferred")
        .unwrap();
    let page = page.json();
    let messages = page["messages"].as_array().unwrap();
    let found = messages.iter().find(|message| message["id"] == id);
    found.cloned().unwrap_or_default()
}

#[test]
fn five_a_minute_lets_five_through_and_tells_the_sixth_its_time() {
    let place = Place::new("limits");
    place.configure(
        "[[account]]\nid = \"main\"\ntransport = \"sandbox\"\nlimit_per_minute = 5\n\
         limit_per_hour = 0\n",
    );
    let server = place.start();
    let mut client = server.client();
    let ids: Vec<String> = (0..6).map(|_| submit(&mut client, json!({}))).collect();
    wait_for("five delivered", || {
        (delivered(&mut client, &ids) == 5).then_some(())
    });
    let sixth = ids.last().unwrap();
    let shown = wait_for("its time", || {
        let shown = show(&mut client, sixth);
        shown["deferred_until"].is_string().then_some(shown)
    });
    assert_eq!(shown["attempts"], 0, "our own limit costs no attempt");
    assert!(shown["deferred_ts"].as_i64().unwrap() > 0);
    let waiting_on = shown["waiting_on"].to_string();
    assert!(waiting_on.contains("account:main"), "{waiting_on}");
    let in_list = of_list(&mut client, sixth);
    assert!(in_list["deferred_until"].is_string(), "{in_list}");
    assert!(in_list["deferred_ts"].is_i64(), "{in_list}");
    let limited = metric(
        &mut client,
        "outflow_rate_limited_total{account_id=\"main\"}",
    );
    assert!(limited.unwrap() >= 1.0);
    let deferred = metric(&mut client, "outflow_deferred{account_id=\"main\"}");
    assert_eq!(deferred, Some(1.0));
    assert_eq!(delivered(&mut client, &ids), 5);

    // 0 is no limit.
    let patch = json!({ "limit_per_minute": 0 });
    let answer = client.call("PATCH", "/api/v1/accounts/main", Some(&patch));
    assert_eq!(answer.unwrap().status, 200);
    wait_state(&mut client, sixth, "delivered");
    server.stop();
}

#[test]
fn a_restart_lets_no_more_through() {
    let place = Place::new("limits-restart");
    place.configure("[[account]]\nid = \"main\"\ntransport = \"sandbox\"\nlimit_per_hour = 5\n");
    let server = place.start();
    let mut client = server.client();
    for _ in 0..8 {
        submit(&mut client, json!({}));
    }
    wait_for("five taken", || (place.taken().len() == 5).then_some(()));
    server.kill();
    let server = place.start();
    let mut client = server.client();
    // A message of another pool shows that the node has gone on.
    let put = json!({ "transport": "sandbox", "pool": "other" });
    let answer = client.call("PUT", "/api/v1/accounts/other", Some(&put));
    assert!(answer.unwrap().status < 300);
    let other = submit(&mut client, json!({ "pool": "other" }));
    wait_state(&mut client, &other, "delivered");
    assert_eq!(place.taken().len(), 6);
    assert!(listed(&mut client, "queued,deferred").len() >= 3);
    server.stop();
}

#[test]
fn a_pool_without_accounts_waits_once_an_account_is_configured() {
    let place = Place::new("pools");
    place.configure("");
    let server = place.start();
    let mut client = server.client();
    // With nothing configured the sandbox takes what is for the default pool.
    let id = submit(&mut client, json!({}));
    wait_state(&mut client, &id, "delivered");
    let put = json!({ "transport": "sandbox", "pool": "real" });
    let answer = client.call("PUT", "/api/v1/accounts/real", Some(&put));
    assert!(answer.unwrap().status < 300);
    let waits = submit(&mut client, json!({}));
    let goes = submit(&mut client, json!({ "pool": "real" }));
    wait_state(&mut client, &goes, "delivered");
    let explain = client.get(&format!("/api/v1/messages/{waits}/explain"));
    let explain = explain.unwrap().json();
    assert_eq!(explain["state"], "queued", "{explain}");
    assert_eq!(
        explain["waiting_on"][0]["reason"], "no_account",
        "{explain}"
    );
    server.stop();
    // Also after a restart: the sandbox does not come back.
    let server = place.start();
    let mut client = server.client();
    let goes = submit(&mut client, json!({ "pool": "real" }));
    wait_state(&mut client, &goes, "delivered");
    assert_eq!(show(&mut client, &waits)["state"], "queued");
    server.stop();
}

/// An account whose provider says in the headers of its answers what it takes.
#[test]
fn a_rate_that_the_far_end_tells_is_kept_to() {
    let place = Place::new("told");
    place.configure(
        "[[account]]\nid = \"main\"\ntransport = \"sandbox\"\nlimits = [\"1000/s\"]\n\
         sandbox = { headers = [\"RateLimit-Policy: \\\"default\\\";q=50;w=1\"] }\n",
    );
    let server = place.start();
    let mut client = server.client();
    let ids: Vec<String> = (0..100).map(|_| submit(&mut client, json!({}))).collect();
    let told = wait_for("the rate that was told", || {
        let page = client.get("/api/v1/limits").unwrap().json();
        let limits = page["limits"].as_array().cloned().unwrap_or_default();
        let mut limits = limits.into_iter();
        limits.find(|limit| limit["key"] == "account:main#learnt")
    });
    let sentence = told["learnt"]["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("50.00/s"), "{told}");
    wait_for("all are delivered", || {
        (delivered(&mut client, &ids) == ids.len()).then_some(())
    });
    server.stop();
}
