//! What nothing is queued under is forgotten: flows, and with them limits and
//! lanes.

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, submit, wait_for, wait_state};

const CAMPAIGNS: usize = 300;

fn names(client: &mut Client, list: &str, field: &str) -> Vec<String> {
    let page = client.get(&format!("/api/v1/{list}")).unwrap().json();
    let items = page[list].as_array().unwrap();
    let names = items.iter().filter_map(|item| item[field].as_str());
    names.map(str::to_owned).collect()
}

/// Limits of single campaigns.
fn campaigns(client: &mut Client) -> usize {
    let keys = names(client, "limits", "key");
    let of_campaigns = keys.iter().filter(|key| key.contains("campaign:weekly-"));
    of_campaigns.count()
}

#[test]
fn campaigns_that_are_over_leave_nothing_behind() {
    let place = Place::new("flows");
    place.configure(
        "[[policy]]\nmatch = { campaign = \"*\" }\nrate = \"100/s\"\n\n\
         [[account]]\nid = \"main\"\ntransport = \"sandbox\"\n",
    );
    let server = place.start();
    let mut client = server.client();
    let mut ids = Vec::new();
    for number in 0..CAMPAIGNS {
        let fields = json!({ "campaign": format!("weekly-{number}") });
        ids.push(submit(&mut client, fields));
    }
    // One that waits, for a pool that has no accounts, keeps its flow.
    let fields = json!({ "campaign": "weekly-later", "pool": "nobody" });
    let waiting = submit(&mut client, fields);
    for id in &ids {
        wait_state(&mut client, id, "delivered");
    }
    wait_for("only what lives", || {
        (campaigns(&mut client) == 1).then_some(())
    });
    let lanes = names(&mut client, "lanes", "name");
    assert!(lanes.len() <= 2, "{lanes:?}");
    // Also after a restart, and the one that waits is still there.
    server.kill();
    let server = place.start();
    let mut client = server.client();
    wait_for("the same after a restart", || {
        (campaigns(&mut client) == 1).then_some(())
    });
    let page: Value = client
        .get(&format!("/api/v1/messages/{waiting}"))
        .unwrap()
        .json();
    assert_eq!(page["campaign"], "weekly-later", "{page}");
    server.stop();
}
