//! Accounts in trouble: one is asked to wait, one fails again and again.

use std::fmt::Write as _;
use std::fs;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, metric, show, submit, wait_for, wait_state};

/// How long the far end asks the account to wait.
const ASKED_MS: i64 = 4_000;

/// One attempt, as the log of attempts has it.
#[derive(Debug)]
struct Attempt {
    at_ms: i64,
    account: String,
    code: u64,
}

fn attempts(place: &Place) -> Vec<Attempt> {
    let text = fs::read_to_string(place.dir.join("attempts.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let at: Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        Attempt {
            at_ms: at.as_millisecond(),
            account: line["account"].as_str().unwrap_or_default().to_owned(),
            code: line["code"].as_u64().unwrap_or(0),
        }
    });
    lines.collect()
}

/// Ten accounts of a hundred a second, of which the far end takes thirty from
/// the first and then asks it to wait.
fn settings(place: &Place) -> String {
    let log = place.dir.join("attempts.jsonl");
    let mut text = format!("attempts = {log:?}\n");
    for number in 0..10 {
        let _ = write!(
            text,
            "[[account]]\nid = \"a{number}\"\ntransport = \"sandbox\"\nlimits = [\"100/s\"]\n\
             max_connections = 4\n"
        );
        if number == 0 {
            let _ = writeln!(
                text,
                "sandbox = {{ hidden_rate = \"1/h burst 30\", over = 429, \
                 retry_after = \"{ASKED_MS}ms\" }}"
            );
        }
    }
    text
}

fn reasons(client: &mut Client) -> Vec<String> {
    let lanes = client.get("/api/v1/lanes").unwrap().json();
    let lanes = lanes["lanes"].as_array().cloned().unwrap_or_default();
    let waiting = lanes.iter().flat_map(|lane| {
        let all = lane["waiting_on"].as_array().cloned().unwrap_or_default();
        all.into_iter()
            .map(|it| it["reason"].as_str().unwrap_or_default().to_owned())
    });
    waiting.collect()
}

#[test]
fn one_waits_exactly_as_long_as_it_was_asked_and_nine_do_not_make_up_for_it() {
    let place = Place::new("pressure");
    place.configure(&settings(&place));
    let server = place.start();
    let mut client = server.client();
    let mut ids = Vec::new();
    wait_for("a refusal", || {
        ids.extend((0..20).map(|_| submit(&mut client, json!({}))));
        let refused = attempts(&place).iter().any(|it| it.code == 429);
        refused.then_some(())
    });
    // More than the healthy ones may send in that time, and less than they could.
    ids.extend((0..1_500).map(|_| submit(&mut client, json!({}))));
    wait_for("it is said why", || {
        let reasons = reasons(&mut client);
        reasons.contains(&"under_pressure".to_owned()).then_some(())
    });
    let (seen, began, back) = wait_for("the account is tried again", || {
        let seen = attempts(&place);
        let refused = |it: &&Attempt| it.account == "a0" && it.code == 429;
        let began = seen.iter().find(refused)?.at_ms;
        // What was under way with it is answered within moments.
        let again = |it: &&Attempt| it.account == "a0" && it.at_ms > began + 1_000;
        let back = seen.iter().find(again)?.at_ms;
        Some((seen, began, back))
    });
    server.stop();
    assert!(back >= began + ASKED_MS - 1, "{} ms", back - began);
    // The others sent little before: they are held to a tenth of their rate.
    for number in 1..10 {
        let name = format!("a{number}");
        let sent = seen.iter().filter(|it| it.account == name);
        let sent = sent.filter(|it| it.at_ms > began && it.at_ms < began + ASKED_MS);
        let before = seen
            .iter()
            .filter(|it| it.account == name && it.at_ms <= began);
        let (sent, before) = (sent.count(), before.count());
        // The rate of the five seconds before, or a tenth of 100/s.
        let most = before.max(40) + 2;
        assert!(sent <= most, "{name} sent {sent}, {before} before");
    }
}

#[test]
fn an_account_that_fails_is_left_alone_and_comes_back() {
    let place = Place::new("breaker");
    place.configure(
        "[breaker]\nfailures = 5\nopen_for = \"500ms\"\nopen_max = \"1s\"\n\
         refusals = \"100%\"\n[retry.email]\nfirst = \"100ms\"\ncap = \"200ms\"\n\
         [[account]]\nid = \"main\"\ntransport = \"sandbox\"\n\
         sandbox = { failures = [{ share = 1.0, reply = \"503 Service Unavailable\" }] }\n",
    );
    let server = place.start();
    let mut client = server.client();
    let ids: Vec<String> = (0..20).map(|_| submit(&mut client, json!({}))).collect();
    wait_for("the breaker is open", || {
        let opened = metric(
            &mut client,
            "outflow_alerts_total{alert=\"account_broken\"}",
        );
        opened.filter(|count| *count >= 2.0)
    });
    wait_for("it shows", || {
        let lanes = client.get("/api/v1/lanes").unwrap().json();
        let lane = lanes["lanes"]
            .as_array()
            .and_then(|lanes| lanes.first().cloned());
        lane.filter(|lane| lane["broken"] == 1)
    });
    let state = metric(&mut client, "outflow_breaker_state{lane=");
    assert!(state.is_some(), "there is a metric");
    let mended = json!({ "sandbox": { "failures": [] } });
    let answer = client.call("PATCH", "/api/v1/accounts/main", Some(&mended));
    assert_eq!(answer.unwrap().status, 200);
    for id in &ids {
        wait_state(&mut client, id, "delivered");
    }
    let restored = metric(
        &mut client,
        "outflow_alerts_total{alert=\"account_restored\"}",
    );
    assert_eq!(restored, Some(1.0));
    assert_eq!(show(&mut client, &ids[0])["state"], "delivered");
    server.stop();
}
