//! A new sender on the real binary: its quota holds over a kill, the rest goes
//! another way.

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, show, submit, wait_for, wait_state};

const SETTINGS: &str = "\
[[account]]
id = \"new\"
transport = \"sandbox\"
[[account]]
id = \"old\"
transport = \"sandbox\"
pool = \"warm\"
[runbook]
look_every = \"100ms\"
[[warm_up]]
account = \"new\"
destinations = [\"isp:google\"]
plan = \"ses\"
";

fn shown(client: &mut Client) -> Value {
    let answer = client.get("/api/v1/warm-ups").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["warm_ups"][0].clone()
}

fn delivered(client: &mut Client, ids: &[String]) -> usize {
    let states = ids.iter().map(|id| show(client, id)["state"].clone());
    states.filter(|state| state == "delivered").count()
}

#[test]
fn the_rest_waits_also_over_a_kill() {
    let place = Place::new("warm-up");
    place.configure(SETTINGS);
    let server = place.start();
    let mut client = server.client();
    let now = shown(&mut client);
    assert_eq!(now["sender"], "account:new/isp:google", "{now}");
    assert_eq!(
        (&now["day"], &now["quota_per_day"]),
        (&json!(1), &json!(50))
    );
    assert_eq!(now["quota_per_hour"], 5);
    let mut ids: Vec<String> = (0..12).map(|_| submit(&mut client, json!({}))).collect();
    wait_for("an hour's worth", || {
        (delivered(&mut client, &ids) == 5).then_some(())
    });
    // Elsewhere nothing is new; who rarely reads comes last.
    let elsewhere = submit(&mut client, json!({ "to": "user@yahoo.com" }));
    wait_state(&mut client, &elsewhere, "delivered");
    let behind = submit(&mut client, json!({ "engaged": false }));
    let shown_behind = show(&mut client, &behind);
    assert_eq!(
        (&shown_behind["class"], &shown_behind["pool"]),
        (&json!("low"), &json!("default"))
    );
    wait_for("what it waits on", || {
        let explained = client
            .get(&format!("/api/v1/messages/{}/explain", ids[11]))
            .unwrap();
        explained
            .text
            .contains("account:new/isp:google")
            .then_some(())
    });

    server.kill();
    let server = place.start();
    let mut client = server.client();
    ids.push(submit(&mut client, json!({})));
    let other = submit(&mut client, json!({ "to": "user@yahoo.com" }));
    wait_state(&mut client, &other, "delivered");
    assert_eq!(delivered(&mut client, &ids), 5, "a restart sends no faster");
    server.stop();

    // With a pool that is warm nothing waits.
    place.configure(&format!("{SETTINGS}overflow_pool = \"warm\"\n"));
    let server = place.start();
    let mut client = server.client();
    wait_for("all", || {
        (delivered(&mut client, &ids) == ids.len()).then_some(())
    });
    wait_state(&mut client, &behind, "delivered");
    let pools = ids
        .iter()
        .filter(|id| show(&mut client, id)["pool"] == "warm")
        .count();
    assert_eq!(pools, ids.len() - 5);
    let aside = submit(&mut client, json!({ "engaged": false }));
    assert_eq!(show(&mut client, &aside)["pool"], "warm", "from the start");
    server.stop();
}
