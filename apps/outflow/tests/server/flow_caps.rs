//! Submissions that would open more flows than may live at once, over HTTP and
//! over SMTP, and what was accepted before.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::process::{Place, listed, message, metric, submit, wait_for};
use crate::submitter::{Submitter, address_of};

fn configure(place: &Place, tenant_max: u32, total_max: u32) {
    place.configure(&format!(
        "[server]\ntenant_flows_max = {tenant_max}\nflows_max = {total_max}\n\
         [smtp]\nlisten = \"127.0.0.1:0\"\n"
    ));
}

fn post(client: &mut Client, fields: Value) -> Answer {
    let answer = client.post("/api/v1/messages", &message(fields));
    answer.unwrap()
}

/// It was refused, and says whose flows are too many and which field is at fault.
fn is_refused(answer: &Answer, whose: &str, pointer: &str) {
    assert_eq!(answer.status, 429, "{}", answer.text);
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    let problem = answer.json();
    assert_eq!(problem["code"], "too_many_flows");
    assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(whose), "{detail}");
}

#[test]
fn too_many_flows_are_refused_and_accepted_ones_go_on() {
    let place = Place::new("flow-caps");
    configure(&place, 3, 4);
    let server = place.start();
    let mut client = server.client();
    let form = json!({ "match": { "class": "normal" }, "reason": "test" });
    let pause = client.post("/api/v1/pauses", &form).unwrap().json();
    for campaign in ["one", "two", "three"] {
        submit(&mut client, json!({ "campaign": campaign }));
    }
    let four = post(&mut client, json!({ "campaign": "four" }));
    is_refused(&four, "the tenant has 3 live flows", "/campaign");
    // What is queued already gets more.
    submit(&mut client, json!({ "campaign": "two" }));
    let several = ["one", "five", "three"].map(|it| message(json!({ "campaign": it })));
    let answer = client.post("/api/v1/messages", &json!({ "messages": several }));
    let batch = answer.unwrap().json();
    assert_eq!(batch["accepted"].as_array().unwrap().len(), 2, "{batch}");
    assert_eq!(batch["rejected"][0]["index"], 1, "{batch}");
    submit(&mut client, json!({ "tenant": "b", "campaign": "one" }));
    let fifth = post(&mut client, json!({ "tenant": "c", "campaign": "one" }));
    let problem = fifth.json();
    assert_eq!(fifth.status, 429, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("all tenants together have 4"), "{detail}");

    let mut submitter = Submitter::login(address_of(&server), &server.token).unwrap();
    let six = "X-Outflow-Campaign: six";
    let reply = submitter.submit_to(&["u@gmail.com"], six, "452").unwrap();
    assert!(reply.starts_with("452 4.3.1"), "{reply}");
    assert!(reply.contains("campaigns"), "{reply}");
    let one = "X-Outflow-Campaign: one";
    let both = ["u@gmail.com", "u@yahoo.com"];
    let reply = submitter.submit_to(&both, one, "452").unwrap();
    assert!(reply.starts_with("452 4.3.1"), "{reply}");
    submitter.submit_to(&["u@gmail.com"], one, "250").unwrap();
    let refused = "outflow_intake_refused_total{reason=\"too_many_flows\"} ";
    assert_eq!(metric(&mut client, refused), Some(6.0));
    assert_eq!(listed(&mut client, "queued").len(), 8, "and nothing else");

    // Fewer may live now: what was accepted needs its flows all the same.
    server.kill();
    configure(&place, 1, 1);
    let server = place.start();
    let mut client = server.client();
    assert_eq!(listed(&mut client, "queued").len(), 8);
    let path = format!("/api/v1/pauses/{}", pause["id"].as_str().unwrap());
    let resumed = client.call("DELETE", &path, None).unwrap();
    assert_eq!(resumed.status, 204, "{}", resumed.text);
    wait_for("all are delivered", || {
        (listed(&mut client, "delivered").len() == 8).then_some(())
    });
    server.stop();
}
