//! Mitigations and incidents on the real binary, also killed in their midst.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, message, show, submit, wait_for, wait_state};

fn get(client: &mut Client, path: &str) -> Value {
    let answer = client.get(&format!("/api/v1{path}")).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

fn patch(client: &mut Client, path: &str, body: &Value) -> Value {
    let answer = client.call("PATCH", &format!("/api/v1{path}"), Some(body));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// Messages to as many recipients: one who bounced is not written to again.
fn batch(client: &mut Client, count: usize, name: &str) {
    let to = |no: usize| json!({ "to": format!("{name}{no}@gmail.com") });
    let messages: Vec<Value> = (0..count).map(|no| message(to(no))).collect();
    let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 202, "{}", answer.text);
}

fn audited(client: &mut Client, action: &str) -> usize {
    let audit = get(client, "/audit?limit=1000");
    let entries = audit["entries"].as_array().unwrap();
    entries.iter().filter(|it| it["action"] == action).count()
}

fn seconds() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

/// The longest a mitigated rate may allow is what it says from when it was set;
/// neither a kill nor a start adds to it. Afterwards the rate comes back in
/// steps, and all is delivered.
#[test]
fn a_kill_in_a_mitigation_lets_nothing_through_faster() {
    let place = Place::new("mitigation");
    place.configure(
        "[[account]]\nid = \"main\"\ntransport = \"sandbox\"\n\
         [[policy]]\nmatch = { isp = \"google\" }\nrate = \"2000/s\"\n\
         [runbook]\nenabled = false\nramp_step = \"20%\"\nramp_every = \"1s\"\n",
    );
    let server = place.start();
    let mut client = server.client();
    let until = Timestamp::now() + Duration::from_secs(20);
    let over = json!({
        "rate": "5/s", "burst": 1, "mitigation_reason": "Gmail says 421",
        "cooldown_until": until.to_string(),
    });
    let shown = patch(&mut client, "/policies/isp/google", &over);
    let set_at = seconds();
    assert_eq!(
        (&shown["rate"], &shown["base"]["rate"]),
        (&json!("5/s"), &json!("2000/s"))
    );
    batch(&mut client, 1_000, "user");
    wait_for("some are taken", || {
        (place.taken().len() >= 5).then_some(())
    });
    let mut servers = vec![server];
    for _ in 0..3 {
        servers.pop().unwrap().kill();
        servers.push(place.start());
        let taken = place.taken().len();
        wait_for("it goes on", || {
            (place.taken().len() > taken + 2).then_some(())
        });
    }
    let taken = place.taken().len();
    let elapsed = seconds() - set_at;
    let most = 1.0 + 5.0 * elapsed;
    let is_cooling = Timestamp::now() < until;
    assert!(
        !is_cooling || taken as f64 <= most,
        "{taken} in {elapsed} s: at most {most}"
    );
    assert!(
        is_cooling,
        "this machine was too slow for the test: {elapsed} s"
    );

    let server = servers.pop().unwrap();
    let mut client = server.client();
    let shown = wait_for("a step", || {
        let shown = get(&mut client, "/policies/isp/google");
        shown["ramp"].is_object().then_some(shown)
    });
    assert!(
        shown["why"].as_str().unwrap().contains("ramping back"),
        "{shown}"
    );
    wait_for("the base", || {
        let shown = get(&mut client, "/policies/isp/google");
        (shown["rate"] == "2000/s" && shown["base"].is_null()).then_some(())
    });
    assert!((1..=4).contains(&audited(&mut client, "policy.ramp")));
    // The base holds by the time alone; that it does is written down next.
    wait_for("the last line", || {
        (audited(&mut client, "policy.cooldown_over") == 1).then_some(())
    });
    wait_for("all are taken", || {
        (place.taken().len() == 1_000).then_some(())
    });
    server.stop();
}

const INCIDENT: &str = "\
[[account]]
id = \"main\"
transport = \"sandbox\"
sandbox = { failures = [{ share = 1.0, kind = \"mailbox\" }] }
[[account]]
id = \"other\"
transport = \"sandbox\"
pool = \"backup\"
[[policy]]
match = { isp = \"google\" }
rate = \"1000/s\"
[runbook]
look_every = \"100ms\"
cooldown = \"15s\"
calm = \"1s\"
ramp_step = \"25%\"
ramp_every = \"500ms\"
paused_classes = [\"low\"]
detour_pool = \"backup\"
[runbook.hard_bounces]
share = \"60%\"
calm = \"50%\"
window = \"1m\"
least = 10
[[canary]]
destination = \"isp:google\"
to = [\"canary@gmail.com\"]
from = \"canary@shop.example\"
";

#[test]
fn an_incident_goes_by_the_book_also_over_a_kill() {
    let place = Place::new("incident");
    place.configure(INCIDENT);
    let server = place.start();
    let mut client = server.client();
    batch(&mut client, 20, "nobody");
    let incident = wait_for("an incident", || {
        let all = get(&mut client, "/incidents?state=mitigating");
        all["incidents"].get(0).cloned()
    });
    assert_eq!(incident["destination"], "isp:google");
    assert_eq!(
        incident["evidence"][0]["rule"], "hard bounces",
        "{incident}"
    );
    assert_eq!(incident["accounts"][0]["account"], "main", "{incident}");
    let policy = wait_for("a slower rate", || {
        let shown = get(&mut client, "/policies/isp/google");
        (shown["rate"] == "500/s").then_some(shown)
    });
    assert!(
        policy["mitigation_reason"]
            .as_str()
            .unwrap()
            .starts_with("incident 1: ")
    );

    // What can wait is paused; one in ten critical messages goes another way.
    let low = submit(
        &mut client,
        json!({ "class": "low", "to": "low@gmail.com" }),
    );
    let mut detoured = 0;
    for no in 0..20 {
        let to = format!("critical{no}@gmail.com");
        let id = submit(&mut client, json!({ "class": "critical", "to": to }));
        let pool = show(&mut client, &id)["pool"].clone();
        detoured += usize::from(pool == "backup");
    }
    assert_eq!(detoured, 2);
    assert_eq!(show(&mut client, &low)["state"], "queued");

    // The far end is sound again; the process is killed meanwhile.
    let sound = json!({ "sandbox": { "failures": [] } });
    patch(&mut client, "/accounts/main", &sound);
    server.kill();
    let server = place.start();
    let mut client = server.client();
    let shown = get(&mut client, "/policies/isp/google");
    assert_eq!(shown["base"]["rate"], "1000/s", "{shown}");
    assert_eq!(show(&mut client, &low)["state"], "queued", "still paused");
    wait_for("the end", || {
        let incident = get(&mut client, "/incidents/1");
        (incident["state"] == "closed").then_some(())
    });
    wait_state(&mut client, &low, "delivered");
    let heard = get(&mut client, "/incidents/1")["replies"].to_string();
    assert!(heard.contains("No such user"), "{heard}");
    // It is written down first, and lifted then.
    wait_for("the base", || {
        let shown = get(&mut client, "/policies/isp/google");
        (shown["rate"] == "1000/s" && shown["base"].is_null()).then_some(())
    });
    for action in [
        "incident.open",
        "incident.canary",
        "incident.recover",
        "incident.close",
    ] {
        assert!(audited(&mut client, action) >= 1, "{action}");
    }
    wait_for("a canary before each step", || {
        let canaries = get(&mut client, "/messages?tenant=canary&state=delivered");
        (canaries["messages"].as_array().unwrap().len() == 2).then_some(())
    });
    let last = json!({ "class": "critical", "to": "last@gmail.com" });
    let id = submit(&mut client, last);
    assert_eq!(show(&mut client, &id)["pool"], "default");
    server.stop();
}
