//! A full disk stops intake with a reason, loses nothing, and intake comes back
//! by itself.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::process::{Place, message, submit, wait_for, wait_state};

/// A small disk of its own, where the system lets us have one.
struct SmallDisk<'a>(&'a Place);

impl<'a> SmallDisk<'a> {
    fn mount(place: &'a Place) -> Option<Self> {
        fs::create_dir(place.data()).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"]);
        let status = mount.arg(place.data()).status().ok()?;
        status.success().then_some(Self(place))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.data()).status();
    }
}

#[test]
fn a_full_disk_stops_intake_and_nothing_else() {
    let place = Place::new("disk-full");
    let Some(_disk) = SmallDisk::mount(&place) else {
        eprintln!("skipped: no small disk can be mounted here");
        return;
    };
    place.configure("");
    let server = place.start();
    let mut client = server.client();
    let before = submit(&mut client, json!({ "pool": "nowhere" }));
    let mut size = 64 << 20;
    while size > 4096 {
        // As much as fits, in ever smaller pieces.
        let bytes = vec![7; size];
        let path = place.data().join(format!("filler-{size}"));
        if fs::write(&path, &bytes).is_err() {
            let _ = fs::remove_file(&path);
        }
        size /= 2;
    }
    wait_for("readyz says so", || {
        let ready = client.get("/readyz").unwrap();
        (ready.status == 503 && ready.text.contains("disk")).then_some(())
    });
    let refused = wait_for("intake is refused", || {
        let answer = client
            .post("/api/v1/messages", &message(json!({})))
            .unwrap();
        (answer.status == 503).then_some(answer)
    });
    assert!(refused.header("retry-after").is_some(), "{}", refused.text);

    for entry in fs::read_dir(place.data()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("filler")
        {
            fs::remove_file(path).unwrap();
        }
    }
    let after = wait_for("intake comes back", || {
        let answer = client
            .post("/api/v1/messages", &message(json!({})))
            .unwrap();
        (answer.status == 202).then(|| answer.json()["id"].as_str().unwrap().to_owned())
    });
    wait_state(&mut client, &after, "delivered");
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    server.kill();
    let server = place.start();
    wait_state(&mut server.client(), &before, "queued");
    server.stop();
}
