//! A disk that is really full: intake stops with a reason, what is under way is
//! settled, nothing that was acknowledged is lost, also if the server is killed
//! meanwhile, and service resumes by itself when there is room.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::process::{Place, Taken, listed, message, submit, wait_for, wait_state};

const SIZE: &str = "size=48m";
const FILLER_BYTES: usize = 16 << 20;

/// A small disk of its own in place of the data directory. It lives in a mount
/// namespace that a sleeping process holds, so that it needs no privileges
/// where user namespaces are allowed, and goes with that process.
struct SmallDisk {
    holder: Child,
    enter: Vec<String>,
    data: PathBuf,
}

impl SmallDisk {
    fn mount(place: &Place) -> Self {
        fs::create_dir(place.data()).unwrap();
        // As root without a user namespace, which some systems forbid.
        let ways: [(&[&str], &[&str]); 2] = [
            (&["-m"], &["--mount"]),
            (&["-rm"], &["--user", "--preserve-credentials", "--mount"]),
        ];
        for (unshare, nsenter) in ways {
            let mut holder = Command::new("unshare")
                .args(unshare)
                .args(["sh", "-c"])
                .arg("mount -t tmpfs -o \"$1\" tmpfs \"$2\" && echo mounted && exec sleep infinity")
                .args(["sh", SIZE])
                .arg(place.data())
                .current_dir(&place.dir)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("there is no unshare: apt-get install util-linux");
            let mut said = String::new();
            let out = holder.stdout.take().unwrap();
            let _ = BufReader::new(out).read_line(&mut said);
            if said.trim() != "mounted" {
                let _ = holder.wait();
                continue;
            }
            let id = holder.id().to_string();
            let mut enter = vec!["nsenter".to_owned()];
            enter.extend(nsenter.iter().map(|&word| word.to_owned()));
            enter.extend(["--wd", "--target", &id].map(str::to_owned));
            let inside = PathBuf::from(format!("/proc/{id}/root"));
            let data = inside.join(place.data().strip_prefix("/").unwrap());
            return Self {
                holder,
                enter,
                data,
            };
        }
        panic!(
            "no small disk can be mounted here: run this as root, or allow user namespaces \
             (sysctl kernel.unprivileged_userns_clone=1)"
        );
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Submits until the disk is full: what was answered then.
fn fill(client: &mut Client, message: &Value, acknowledged: &mut BTreeSet<String>) -> Answer {
    for _ in 0..2_000 {
        let answer = client.post("/api/v1/messages", message).unwrap();
        match answer.status {
            202 => acknowledged.insert(answer.json()["id"].as_str().unwrap().to_owned()),
            503 => return answer,
            status => panic!("{status}: {}", answer.text),
        };
    }
    panic!("the disk never filled");
}

#[test]
fn a_full_disk_stops_intake_and_loses_nothing() {
    let place = Place::new("disk-full");
    let disk = SmallDisk::mount(&place);
    place.configure(
        "[[account]]\nid = \"slow\"\ntransport = \"sandbox\"\nmax_connections = 4\n\
         sandbox = { latency = \"1s\" }\n",
    );
    let filler = disk.data.join("filler");
    fs::write(&filler, vec![7; FILLER_BYTES]).unwrap();
    let enter: Vec<&str> = disk.enter.iter().map(String::as_str).collect();
    let server = place.start_by(&enter, &disk.data);
    let mut client = server.client();

    // Messages that stay, as large as they may be in a few hundred steps.
    let big = message(json!({ "pool": "nowhere", "text": "7".repeat(100_000) }));
    let mut acknowledged = BTreeSet::new();
    let mut under_way: Vec<String> = Vec::new();
    for _ in 0..10 {
        under_way.push(submit(&mut client, json!({})));
    }
    let refused = fill(&mut client, &big, &mut acknowledged);
    assert_eq!(refused.json()["code"], "not_stored", "{}", refused.text);
    assert!(refused.header("retry-after").is_some(), "{}", refused.text);
    assert!(!acknowledged.is_empty());
    let ready = client.get("/readyz").unwrap();
    assert_eq!(ready.status, 503);
    assert!(ready.text.contains("disk"), "{}", ready.text);
    // What is under way ends and is written down in the room kept for it.
    for id in &under_way {
        wait_state(&mut client, id, "delivered");
    }

    // Also a process that dies now keeps its word, and starts.
    server.kill();
    let server = place.start_by(&enter, &disk.data);
    let mut client = server.client();
    let waiting: BTreeSet<String> = listed(&mut client, "queued").into_iter().collect();
    assert!(waiting.is_superset(&acknowledged), "some are gone");
    // It may have found a little room, and is full again soon.
    fill(&mut client, &big, &mut acknowledged);

    fs::remove_file(&filler).unwrap();
    let after = wait_for("intake comes back", || {
        let answer = client.post("/api/v1/messages", &message(json!({})));
        let answer = answer.unwrap();
        (answer.status == 202).then(|| answer.json()["id"].as_str().unwrap().to_owned())
    });
    wait_state(&mut client, &after, "delivered");
    assert_eq!(client.get("/readyz").unwrap().status, 200);
    let account = json!({ "transport": "sandbox", "pool": "nowhere" });
    let answer = client.call("PUT", "/api/v1/accounts/late", Some(&account));
    assert_eq!(answer.unwrap().status, 200);
    let mut taken = Taken::default();
    wait_for("all that was acknowledged is sent", || {
        taken.read_on(&place);
        let mut all = acknowledged.iter().chain(&under_way);
        all.all(|id| taken.messages.contains_key(id)).then_some(())
    });
    server.stop();
}
