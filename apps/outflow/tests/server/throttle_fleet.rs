//! One limit over two servers that share a Redis: together they keep to it, in
//! every interval, by what each wrote down when it granted.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::process::{Place, Server};
use crate::programs::{answers, free_ports};

/// A Redis of the test's own; it ends with the test.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start(dir: &Path) -> Self {
        let port = free_ports(1)[0];
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .expect("redis-server: apt-get install redis-server");
        assert!(answers(port), "redis-server does not listen");
        Self { child, port }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const RATE: u64 = 50;
const BURST: u64 = 20;

fn node(name: &str, redis: &Redis) -> (Place, Server) {
    let place = Place::new(name);
    place.configure(&format!(
        "[server]\nnode = \"{name}\"\n[ledger]\nurl = \"redis://127.0.0.1:{}\"\n\
         [throttle]\ngrants_log = \"grants.jsonl\"\n",
        redis.port
    ));
    let server = place.start();
    (place, server)
}

/// When each grant was decided, on the machine's monotonic clock.
fn grants(place: &Place) -> Vec<u64> {
    let lines = fs::read_to_string(place.dir.join("grants.jsonl")).unwrap();
    let lines = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (line["key"].as_str(), line["cost"].as_u64()),
            (Some("shared"), Some(1))
        );
        line["at_ns"].as_u64().unwrap()
    });
    lines.collect()
}

#[test]
fn two_servers_keep_to_one_limit_together() {
    let home = Place::new("throttle-fleet");
    let redis = Redis::start(&home.dir);
    let nodes = [node("one", &redis), node("two", &redis)];
    let want = json!({ "limits": [
        { "key": "shared", "rate": format!("{RATE}/s"), "burst": BURST },
    ], "class": "critical", "wait_ms": 2_000 });
    let told: Vec<u64> = std::thread::scope(|scope| {
        let asking = nodes.iter().flat_map(|(_, server)| {
            (0..3).map(|_| {
                let (mut client, want) = (server.client(), want.clone());
                scope.spawn(move || {
                    let granted = (0..40).filter(|_| {
                        let answer = client.post("/api/v1/throttle/acquire", &want).unwrap();
                        assert!([200, 429].contains(&answer.status), "{}", answer.json());
                        answer.status == 200
                    });
                    granted.count() as u64
                })
            })
        });
        let asking: Vec<_> = asking.collect();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let [(one, first), (two, second)] = nodes;
    first.stop();
    second.stop();
    let each = [grants(&one), grants(&two)];
    assert!(each.iter().all(|grants| !grants.is_empty()), "{told:?}");
    let mut all = each.concat();
    assert_eq!(all.len() as u64, told.iter().sum::<u64>());
    all.sort_unstable();
    for (i, from) in all.iter().enumerate() {
        for (more, to) in (1..).zip(&all[i..]) {
            // In nanoseconds' worth of tokens, so that nothing is rounded.
            let most = BURST * 1_000_000_000 + RATE * (to - from);
            assert!(more * 1_000_000_000 <= most, "{more} in {} ns", to - from);
        }
    }
}
