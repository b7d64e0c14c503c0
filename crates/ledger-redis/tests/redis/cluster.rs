//! Three servers that share the slots.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outflow_core::engine::event::LeaseAnswer;
use outflow_core::limit::LimitSpec;
use outflow_core::time::Nanos;
use outflow_ledger_redis::RedisSettings;

use crate::ask::{Node, spec, tokens};
use crate::server::RedisServer;

fn cluster() -> Vec<RedisServer> {
    // Else all of it is down if a part of it is.
    let args = [
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "2000",
        "--cluster-require-full-coverage",
        "no",
    ];
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start(&args)).collect();
    let addresses = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port));
    let created = Command::new("redis-cli")
        .args(["--cluster", "create"])
        .args(addresses)
        .args(["--cluster-replicas", "0", "--cluster-yes"])
        .stdout(Stdio::null())
        .status();
    let created = created.expect("redis-cli: `apt-get install redis-tools`");
    assert!(created.success(), "a cluster of three");
    let deadline = Instant::now() + Duration::from_secs(30);
    for server in &servers {
        while !server
            .say::<String>("CLUSTER INFO")
            .contains("cluster_state:ok")
        {
            assert!(Instant::now() < deadline, "the cluster never agrees");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    servers
}

#[test]
fn a_cluster_keeps_limits_on_all_its_servers() {
    let mut servers = cluster();
    let settings = RedisSettings::new(&servers[0].url()).expect("a URL");
    let settings = settings
        .timeout(Duration::from_secs(2))
        .expect("a time-out");
    let mut node = Node::with(settings.cluster(true));
    let limits = [
        spec("1000/s burst 100"),
        spec("40/s spaced"),
        spec("1000/min"),
        spec("100000/day@UTC"),
        LimitSpec::Concurrency { slots: 5 },
    ];
    let named = |name: usize, no: usize| format!("{name}-{no}");
    // All epochs begin, and with them the waits that a loss takes.
    for name in 0..12 {
        for (no, limit) in limits.iter().enumerate() {
            let answer = node.ask(&named(name, no), limit, 2);
            assert_ne!(answer, LeaseAnswer::Away);
        }
    }
    for name in 0..12 {
        for (no, limit) in limits.iter().enumerate() {
            // A window of a minute begins used up.
            if no != 2 {
                node.ask_until_leased(&named(name, no), limit, 2);
            }
        }
    }
    for server in &servers {
        let keys: Vec<String> = server.say("KEYS outflow:limit:*");
        assert!(!keys.is_empty(), "each has its part");
    }
    node.pause("0-0", Nanos::from_secs(30));
    node.wait_for(|node| node.heard_of_pause("0-0").then_some(()));
    let version = node.block_on(node.ledger.publish("isp/google", Some("{}"), None));
    assert_eq!(version, Ok(1));

    // One part goes; the others go on.
    let lost: Vec<String> = servers[2].say("KEYS outflow:limit:tenant:*-0{*");
    let kept: Vec<String> = servers[0].say("KEYS outflow:limit:tenant:*-0{*");
    let name = |keys: &[String]| -> String {
        let text = keys[0].trim_start_matches("outflow:limit:tenant:");
        text.split('{').next().expect("a name").to_owned()
    };
    let (lost, kept) = (name(&lost), name(&kept));
    servers[2].stop();
    node.wait_for(|node| {
        let answer = node.ask(&lost, &limits[0], 1);
        // That a part is away is shown only for a while after it failed.
        let parts = node.ledger.status().parts_away;
        (answer == LeaseAnswer::Away && (1..64).contains(&parts)).then_some(())
    });
    let served = node.wait_for(|node| {
        let served = tokens(node.ask(&kept, &limits[0], 1));
        (served > 0).then_some(served)
    });
    assert_eq!(served, 1);
    let status = node.ledger.status();
    assert!(status.away_since.is_none(), "the others are there");
}
