//! A provider refuses, somebody slows down, and the report tells of it: on the
//! real binary, from the history and the audit that it wrote.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, message, show, submit, wait_for};

const ACCOUNT: &str = "[[account]]\nid = \"a\"\ntransport = \"sandbox\"\n\
     sandbox = { hidden_rate = \"1/s burst 5\", over = \"421 4.7.28 slow down | <b>now</b>\" }\n\
     [[policy]]\nmatch = { isp = \"att\" }\nrate = \"1000/s\"\n";

fn history(client: &mut Client) -> Value {
    let answer = client.get("/api/v1/history?destination=isp:ATT").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

fn send(client: &mut Client, count: usize) {
    let messages: Vec<Value> = (0..count)
        .map(|no| message(json!({ "to": format!("user{no}@att.net") })))
        .collect();
    let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 202, "{}", answer.text);
}

fn sum(history: &Value, field: &str) -> u64 {
    let slices = history["slices"].as_array().unwrap().iter();
    let whole = slices.filter(|slice| slice["account"].is_null());
    whole.map(|slice| slice[field].as_u64().unwrap()).sum()
}

/// The rates that a limit had, in order.
fn rates_of(history: &Value, limit: &str) -> Vec<f64> {
    let rates = history["rates"].as_array().unwrap().iter();
    let rates = rates.filter(|rate| rate["limit"] == limit);
    rates.map(|rate| rate["rate"].as_f64().unwrap()).collect()
}

#[test]
fn a_refusal_and_its_mitigation_are_in_the_audit_and_in_the_report() {
    let place = Place::new("report");
    place.configure(ACCOUNT);
    let server = place.start();
    let mut client = server.client();
    send(&mut client, 60);
    wait_for("refusals in the history", || {
        (sum(&history(&mut client), "refused") >= 3).then_some(())
    });
    let patch = json!({
        "rate": "2/s", "burst": 5, "mitigation_reason": "421 [since](http://x.example) noon",
        "cooldown_until": "2099-01-31T12:00:00Z",
    });
    let patched = client.call("PATCH", "/api/v1/policies/isp/ATT", Some(&patch));
    let patched = patched.unwrap();
    assert_eq!(patched.status, 200, "{}", patched.text);
    // Rates are looked at while something is sent.
    submit(&mut client, json!({}));
    let now = wait_for("the lower rate in the history", || {
        let now = history(&mut client);
        if rates_of(&now, "isp:att").last() == Some(&2.0) {
            return Some(now);
        }
        submit(&mut client, json!({}));
        std::thread::park_timeout(std::time::Duration::from_millis(500));
        None
    });
    assert_eq!(rates_of(&now, "isp:att").first(), Some(&1000.0), "{now}");
    let slices = now["slices"].as_array().unwrap();
    let refused = slices.iter().find(|it| it["account"] == "a").unwrap();
    assert_eq!(refused["refusal"]["code"], 421, "{refused}");
    assert_eq!(refused["refusal"]["class"], "rate", "{refused}");
    let said = refused["refusal"]["said"].as_str().unwrap();
    assert!(said.starts_with("4.7.28 slow down"), "{said}");

    let out = place.dir.join("report");
    let wanted = [
        "report",
        "--since",
        "10m",
        "--destination",
        "isp:att",
        "--json",
    ];
    let report = Command::new(env!("CARGO_BIN_EXE_outflow"))
        .args(wanted)
        .arg("--out")
        .arg(&out)
        .arg("--data-dir")
        .arg(place.data())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&report.stderr);
    assert!(report.status.success(), "{stderr}");
    let told: Value = serde_json::from_slice(&report.stdout).unwrap();
    let case = &told["cases"][0];
    assert_eq!(case["destination"], "isp:att", "{told}");
    assert_eq!(case["code"], 421, "{told}");
    assert!(case["mitigated_at"].is_string(), "{told}");
    assert_eq!(case["lost"], 0, "{told}");
    assert!(case["lowest_limit"].as_f64().unwrap() <= 2.0, "{told}");
    let text = fs::read_to_string(out.join("report.md")).unwrap();
    assert!(text.contains("| 1000/s | 2/s | 421 \\[since\\]"), "{text}");
    assert!(
        text.contains("slow down \\| &lt;b&gt;now&lt;/b&gt;"),
        "{text}"
    );
    assert!(!text.contains("http://"), "{text}");
    let drawing = fs::read_to_string(out.join("report-1-isp-att.svg")).unwrap();
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"));
    let audit = client.get("/api/v1/audit").unwrap().json();
    let mut entries = audit["entries"].as_array().unwrap().iter();
    let entry = entries.find(|it| it["action"] == "policy.set" && it["target"] == "isp:att");
    let after = &entry.unwrap()["detail"]["after"];
    assert_eq!(after["rate"], "2/s");
    assert!(after["mitigation_reason"].is_string(), "{after}");

    // What was not written yet is written at the end, and all of it is kept.
    let before = sum(&history(&mut client), "attempts");
    let last = submit(&mut client, json!({ "to": "user@yahoo.com" }));
    wait_for("an attempt", || {
        (show(&mut client, &last)["attempts"].as_u64()? > 0).then_some(())
    });
    server.stop();
    let server = place.start();
    let mut client = server.client();
    assert!(sum(&history(&mut client), "attempts") >= before);
    let yahoo = client.get("/api/v1/history?destination=isp:yahoo").unwrap();
    assert!(sum(&yahoo.json(), "attempts") > 0, "{}", yahoo.text);
    server.stop();
}

const RUNBOOK: &str = "[control]\nlearn = false\n\
     [runbook]\nlook_every = \"100ms\"\n\
     [runbook.deferrals]\nshare = \"20%\"\nwindow = \"1m\"\nleast = 10\n";

/// The line of the report's changes with these words in it.
#[track_caller]
fn row<'a>(text: &'a str, words: &str) -> &'a str {
    let mut rows = text.lines().filter(|line| line.starts_with("| "));
    let found = rows.find(|line| line.contains(words));
    found.unwrap_or_else(|| panic!("no row with {words:?}:\n{text}"))
}

/// What the server itself writes about incidents and pauses is understood.
#[test]
fn an_incident_of_the_runbook_and_a_pause_are_told_where_they_were() {
    let place = Place::new("report-runbook");
    place.configure(&format!("{ACCOUNT}{RUNBOOK}"));
    let server = place.start();
    let mut client = server.client();
    send(&mut client, 60);
    wait_for("an incident", || {
        let shown = client.get("/api/v1/incidents?state=mitigating").unwrap();
        shown.json()["incidents"].get(0).is_some().then_some(())
    });
    let pause = json!({ "match": { "isp": "att", "class": "low" }, "reason": "421 storm" });
    let paused = client.post("/api/v1/pauses", &pause).unwrap();
    assert_eq!(paused.status, 201, "{}", paused.text);
    let id = paused.json()["id"].as_str().unwrap().to_owned();
    let lifted = client.call("DELETE", &format!("/api/v1/pauses/{id}"), None);
    assert_eq!(lifted.unwrap().status, 204);
    wait_for("refusals in the history", || {
        (sum(&history(&mut client), "refused") >= 3).then_some(())
    });
    let closed = client.call("POST", "/api/v1/incidents/1/close", Some(&json!({})));
    let closed = closed.unwrap();
    assert_eq!(closed.status, 200, "{}", closed.text);

    let out = place.dir.join("report");
    let report = Command::new(env!("CARGO_BIN_EXE_outflow"))
        .args(["report", "--since", "10m", "--json", "--out"])
        .arg(&out)
        .arg("--data-dir")
        .arg(place.data())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&report.stderr);
    assert!(report.status.success(), "{stderr}");
    let told: Value = serde_json::from_slice(&report.stdout).unwrap();
    let case = &told["cases"][0];
    assert_eq!(case["destination"], "isp:att", "{told}");
    let audit = client.get("/api/v1/audit?limit=1000").unwrap().json();
    let entries = audit["entries"].as_array().unwrap().iter().rev();
    let mut mitigating = entries.filter(|it| it["detail"]["state"] == "mitigating");
    let mitigated_at = &mitigating.next().unwrap()["at"];
    let slowed = case["phases"].as_array().unwrap().iter();
    let mut slowed = slowed.filter(|it| it["phase"] == "slowed down");
    assert_eq!(slowed.next().unwrap()["from"], *mitigated_at, "{told}");

    let text = fs::read_to_string(out.join("report.md")).unwrap();
    let (case, others) = text.split_once("## All destinations").unwrap();
    assert!(row(case, "opened incident 1").contains("rule:runbook"));
    assert!(
        row(case, "opened incident 1").contains("deferrals: "),
        "{text}"
    );
    assert!(
        row(case, "closed incident 1").contains("closed by "),
        "{text}"
    );
    assert!(
        row(case, "| mitigated").contains("| 500/s | incident 1: "),
        "{text}"
    );
    assert!(row(case, "paused (").contains("421 storm"), "{text}");
    assert!(
        row(case, "lifted the pause (").contains("421 storm"),
        "{text}"
    );
    assert!(
        !others.contains("incident") && !others.contains("pause"),
        "{text}"
    );
    let until = mitigated_at.as_str().unwrap();
    let before = client.get(&format!("/api/v1/audit?until={until}")).unwrap();
    let before = before.json()["entries"].to_string();
    assert!(!before.contains("incident"), "{before}");
    server.stop();
}

#[test]
fn a_quiet_server_writes_a_report_that_says_so() {
    let place = Place::new("quiet-report");
    place.configure("");
    let server = place.start();
    let run = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_outflow"))
            .args(["report", "--data-dir"])
            .arg(place.data())
            .arg("--out")
            .arg(place.dir.join("out"))
            .args(more)
            .output()
            .unwrap()
    };
    let output = run(&["--since", "1h"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(said.starts_with("Nothing was sent between"), "{said}");
    let text = fs::read_to_string(place.dir.join("out/report.md")).unwrap();
    assert!(text.contains("Nothing was sent between"), "{text}");
    for wrong in [["--since", "soon"], ["--since", "2099-01-01"]] {
        assert_eq!(run(&wrong).status.code(), Some(2), "{wrong:?}");
    }
    server.stop();
}
