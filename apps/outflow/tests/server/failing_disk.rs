//! A disk whose fdatasync fails: nothing is acknowledged that is not on it, and
//! what was is still there after a kill.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::json;

use crate::process::{Place, listed, message, wait_for};

/// The server under strace, which lets some calls fail. The process that is
/// started stays the server itself (`-D`).
fn failing(when: &str) -> Vec<String> {
    let works = Command::new("strace").arg("-V").output();
    assert!(
        works.is_ok_and(|output| output.status.success()),
        "there is no strace: apt-get install strace"
    );
    let inject = format!("inject=fdatasync:error=EIO:when={when}");
    [
        "strace",
        "-D",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync",
        "-e",
        &inject,
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn nothing_is_acknowledged_that_is_not_on_the_disk() {
    let place = Place::new("failing-disk");
    place.configure("");
    // Counted for each thread by itself: some succeed, then some fail, then all
    // succeed again.
    let by = failing("20..40");
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    let server = place.start_by(&by, &place.data());
    let mut client = server.client();
    let stays = message(json!({ "pool": "nowhere" }));
    let mut acknowledged = BTreeSet::new();
    let mut refused = 0;
    let mut since = 0;
    wait_for("it fails, and works again by itself", || {
        let answer = client.post("/api/v1/messages", &stays).unwrap();
        match answer.status {
            202 => {
                acknowledged.insert(answer.json()["id"].as_str().unwrap().to_owned());
                since += u32::from(refused > 0);
            }
            503 => {
                assert!(answer.header("retry-after").is_some(), "{}", answer.text);
                refused += 1;
            }
            status => panic!("{status}: {}", answer.text),
        }
        (since > 20).then_some(())
    });
    eprintln!("{} acknowledged, {refused} refused", acknowledged.len());
    server.kill();
    let server = place.start();
    let waiting = listed(&mut server.client(), "queued");
    let waiting: BTreeSet<String> = waiting.into_iter().collect();
    let missing: Vec<_> = acknowledged.difference(&waiting).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Of what was refused nobody knows: it may be there, each at most once.
    assert!(waiting.len() <= acknowledged.len() + refused);
    server.stop();
}
