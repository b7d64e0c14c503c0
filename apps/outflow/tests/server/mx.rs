//! Mail straight to the servers that DNS names.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::Client;
use crate::dns::{DnsServer, MX, Mood};
use crate::process::{Place, message, metric, show, submit, wait_for, wait_state};
use crate::sink::Sink;

/// A server whose `mx` account finds its way by `dns` to the port of `sink`.
fn configure(place: &Place, dns: &DnsServer, sink: &Sink, more: &str) {
    place.configure(&format!(
        "[dns]\nservers = [\"{}\"]\npatience = \"1s\"\n\
         allowed_networks = [\"127.0.0.0/8\"]\n{more}\n\
         [[account]]\nid = \"direct\"\ntransport = \"mx\"\nport = {}\nhelo = \"client.example\"\n",
        dns.address,
        sink.address.port(),
    ));
}

fn lanes(client: &mut Client) -> Vec<Value> {
    let answer = client.get("/api/v1/lanes").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["lanes"].as_array().unwrap().clone()
}

#[test]
fn fifty_domains_behind_one_server_share_one_lane_and_its_limit() {
    let (place, dns, sink) = (Place::new("mx"), DnsServer::start(), Sink::start());
    dns.addresses("mx.example.net", 60, &["127.0.0.1"]);
    let policy = "[[policy]]\nmatch = { host = \"mx.example.net\" }\nrate = \"50/s\"\n";
    configure(&place, &dns, &sink, policy);
    let server = place.start();
    let mut client = server.client();
    let recipients: BTreeSet<String> = (0..50).map(|no| format!("user@d{no}.example")).collect();
    let mut ids = Vec::new();
    for to in &recipients {
        let domain = to.strip_prefix("user@").unwrap();
        dns.mx(domain, 60, &[(10, "mx.example.net")]);
        ids.push(submit(&mut client, json!({ "to": to })));
    }
    for id in &ids {
        let shown = wait_state(&mut client, id, "delivered");
        assert_eq!(shown["destination"], "host:mx.example.net", "{shown}");
    }
    let taken = sink.recipients();
    assert_eq!(taken.len(), 50);
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), recipients);
    let lanes = lanes(&mut client);
    let [lane] = lanes.as_slice() else {
        panic!("{lanes:?}");
    };
    assert!(lane.to_string().contains("host:mx.example.net"), "{lane}");
    let limits = client.get("/api/v1/limits").unwrap().text;
    assert!(limits.contains("host:mx.example.net"), "{limits}");
    server.stop();
}

#[test]
fn who_takes_no_mail_bounces_and_who_cannot_be_asked_waits() {
    let (place, dns, sink) = (Place::new("mx-refused"), DnsServer::start(), Sink::start());
    dns.mx("null.example", 60, &[(0, "")]);
    dns.addresses("alone.example", 60, &["127.0.0.1"]);
    // The first server is dead.
    dns.mx(
        "two.example",
        60,
        &[(10, "dead.example.net"), (20, "mx.example.net")],
    );
    dns.addresses("dead.example.net", 60, &["127.0.0.99"]);
    dns.addresses("mx.example.net", 60, &["127.0.0.1"]);
    dns.mx("later.example", 60, &[(10, "mx.example.net")]);
    configure(&place, &dns, &sink, "");
    let server = place.start();
    let mut client = server.client();
    for (domain, code, enhanced) in [
        ("null.example", 556, "5.1.10"),
        ("nothing.example", 550, "5.1.2"),
    ] {
        let id = submit(&mut client, json!({ "to": format!("user@{domain}") }));
        let shown = wait_state(&mut client, &id, "bounced");
        let error = &shown["last_error"];
        assert_eq!(error["smtp_status"], code, "{shown}");
        assert_eq!(error["enhanced"], enhanced, "{shown}");
    }
    for domain in ["alone.example", "two.example"] {
        let id = submit(&mut client, json!({ "to": format!("user@{domain}") }));
        wait_state(&mut client, &id, "delivered");
    }
    dns.set_mood(Mood::Failing);
    let before = dns.asked("later.example", MX);
    let id = submit(&mut client, json!({ "to": "user@later.example" }));
    wait_for("it was asked for, and again", || {
        (dns.asked("later.example", MX) > before + 2).then_some(())
    });
    let state = show(&mut client, &id)["state"].clone();
    assert!(
        state == "queued" || state == "deferred" || state == "sending",
        "{state}"
    );
    dns.set_mood(Mood::Well);
    wait_state(&mut client, &id, "delivered");
    server.stop();
}

#[test]
fn a_relay_is_used_also_if_no_dns_answers() {
    let (place, dns, sink) = (Place::new("mx-no-dns"), DnsServer::start(), Sink::start());
    dns.set_mood(Mood::Silent);
    place.configure(&format!(
        "[dns]\nservers = [\"{}\"]\npatience = \"500ms\"\n\
         [[account]]\nid = \"relay\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n\
         helo = \"client.example\"\n",
        dns.address,
        sink.address.port(),
    ));
    let server = place.start();
    let mut client = server.client();
    // Acceptance does not wait for DNS: a batch of many domains is taken at once.
    let messages: Vec<Value> = (0..8)
        .map(|no| message(json!({ "to": format!("user@d{no}.example") })))
        .collect();
    let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 202, "{}", answer.text);
    wait_for("all went out", || {
        (sink.recipients().len() == 8).then_some(())
    });
    let (accepted, mut client) = (answer.json(), server.client());
    let id = accepted["accepted"][7]["id"].as_str().unwrap();
    let shown = wait_state(&mut client, id, "delivered");
    assert_eq!(shown["destination"], "host:d7.example", "{shown}");
    // That DNS is away is not hidden, and the server is ready all the same.
    let ready = wait_for("it is told", || {
        let ready = client.get("/readyz").unwrap();
        ready
            .text
            .contains("no DNS server answers")
            .then_some(ready)
    });
    assert_eq!(ready.status, 200, "{}", ready.text);
    assert_eq!(metric(&mut client, "outflow_dns_away "), Some(1.0));
    dns.set_mood(Mood::Well);
    dns.mx("back.example", 60, &[(10, "mx.example.net")]);
    submit(&mut client, json!({ "to": "user@back.example" }));
    wait_for("it is back", || {
        (metric(&mut client, "outflow_dns_away ") == Some(0.0)).then_some(())
    });
    let ready = client.get("/readyz").unwrap();
    assert_eq!(ready.json()["notes"], json!([]), "{}", ready.text);
    server.stop();
}
