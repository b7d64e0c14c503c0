//! An account whose login is refused: nothing goes out, and whoever asks why is
//! told.

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, submit, wait_for, wait_state};
use crate::sink::{Manner, Sink};

fn first_reason(answer: &Value) -> Option<&Value> {
    let reasons = answer["waiting_on"].as_array()?;
    reasons.iter().find(|it| it["reason"] == "no_session")
}

fn get(client: &mut Client, path: &str) -> Value {
    let answer = client.get(path).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

#[test]
fn a_refused_login_is_what_a_message_waits_on() {
    let refusing = Sink::with(Manner {
        refuses_logins: true,
        ..Manner::default()
    });
    let place = Place::new("logins");
    std::fs::write(place.dir.join("password"), "wrong").unwrap();
    place.configure(&format!(
        "[[account]]\nid = \"relay\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n\
         insecure = true\nuser = \"shop\"\npassword_file = \"password\"\n\
         helo = \"client.example\"\n",
        refusing.address.port(),
    ));
    let server = place.start();
    let mut client = server.client();
    let id = submit(&mut client, json!({}));
    let explained = wait_for("the reason", || {
        let explained = get(&mut client, &format!("/api/v1/messages/{id}/explain"));
        first_reason(&explained).is_some().then_some(explained)
    });
    let reason = first_reason(&explained).unwrap();
    assert_eq!(reason["account"], "relay", "{reason}");
    assert!(
        reason["detail"].as_str().unwrap().contains("535"),
        "{reason}"
    );
    let summary = explained["summary"].as_str().unwrap();
    assert!(summary.contains("wrong password"), "{summary}");
    let lanes = wait_for("the lane says it too", || {
        let lanes = get(&mut client, "/api/v1/lanes");
        first_reason(&lanes["lanes"][0]).is_some().then_some(lanes)
    });
    assert_eq!(lanes["lanes"][0]["lane"], "default/isp:google", "{lanes}");
    // With another server it goes out, and the reason is gone.
    let sink = Sink::start();
    let patch = json!({ "port": sink.address.port(), "user": null, "password_file": null });
    let answer = client.call("PATCH", "/api/v1/accounts/relay", Some(&patch));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    wait_state(&mut client, &id, "delivered");
    let lanes = get(&mut client, "/api/v1/lanes");
    assert!(first_reason(&lanes["lanes"][0]).is_none(), "{lanes}");
    server.stop();
}
