//! Redis is slow, silent, elsewhere or closed.

use std::time::Duration;

use outflow_core::engine::event::LeaseAnswer;
use outflow_core::limit::LimitSpec;
use outflow_core::time::Nanos;
use outflow_ledger_redis::RedisSettings;

use crate::ask::{Node, spec, tokens};
use crate::server::RedisServer;

const FAST: &str = "1000/s burst 100";

#[test]
fn a_silent_server_is_away_until_it_speaks_again() {
    let server = RedisServer::start(&[]);
    let mut node = Node::with(RedisSettings::new(&server.url()).expect("a URL"));
    node.ask_until_leased("acme", &spec(FAST), 10);
    server.signal("STOP");
    assert_eq!(node.ask("acme", &spec(FAST), 10), LeaseAnswer::Away);
    let trips = node.ledger.status().round_trips;
    // From now on nobody waits for a time-out: a thousand take no longer than one.
    for _ in 0..1_000 {
        assert_eq!(node.ask("acme", &spec(FAST), 10), LeaseAnswer::Away);
    }
    let status = node.ledger.status();
    assert_eq!(
        status.round_trips, trips,
        "nobody asks a server that is away"
    );
    assert_eq!(status.times_away, 1);
    assert!(status.away_since.is_some() && status.last_error.is_some());
    server.signal("CONT");
    node.ask_until_leased("acme", &spec(FAST), 10);
    assert!(node.ledger.status().away_since.is_none());
}

#[test]
fn a_server_that_is_not_there_is_away() {
    let mut server = RedisServer::start(&[]);
    server.stop();
    let mut node = Node::new(&server.url());
    assert_eq!(node.ask("acme", &spec(FAST), 10), LeaseAnswer::Away);
    server.run();
    node.ask_until_leased("acme", &spec(FAST), 10);
}

#[test]
fn a_password_is_used_and_never_shown() {
    let server = RedisServer::start(&["--requirepass", "s3cret"]);
    let url = |password: &str| format!("redis://:{password}@127.0.0.1:{}", server.port);
    let mut node = Node::new(&url("s3cret"));
    node.ask_until_leased("acme", &spec(FAST), 10);
    let mut wrong = Node::new(&url("wr0ng"));
    assert_eq!(wrong.ask("acme", &spec(FAST), 10), LeaseAnswer::Away);
    let status = wrong.ledger.status();
    let error = status.last_error.clone().expect("a reason");
    assert!(error.contains("127.0.0.1"), "{error}");
    let shown = format!("{error} {status:?} {:?}", wrong.ledger);
    assert!(!shown.contains("wr0ng"), "{shown}");
}

/// A master and a replica that has caught up.
fn pair() -> (RedisServer, RedisServer) {
    let master = RedisServer::start(&["--repl-diskless-sync-delay", "0"]);
    let port = master.port.to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port]);
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        let info: String = replica.say("INFO replication");
        if info.contains("master_link_status:up") {
            return (master, replica);
        }
        assert!(std::time::Instant::now() < deadline, "it never catches up");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn both(first: &RedisServer, second: &RedisServer) -> String {
    format!("redis://127.0.0.1:{},127.0.0.1:{}", first.port, second.port)
}

#[test]
fn a_failover_is_followed_and_worth_no_burst() {
    let (mut master, replica) = pair();
    let mut node = Node::new(&both(&replica, &master));
    let limit = spec("100/s burst 100");
    node.ask_until_leased("acme", &limit, 1);
    let used = node.ledger.status().server.expect("a server");
    assert!(used.ends_with(&master.port.to_string()), "{used}");
    master.stop();
    let () = replica.say("REPLICAOF NO ONE");
    let answer = node.wait_for(|node| {
        let answer = node.ask("acme", &limit, 100);
        (answer != LeaseAnswer::Away).then_some(answer)
    });
    assert!(matches!(answer, LeaseAnswer::Refused { .. }), "{answer:?}");
    node.ask_until_leased("acme", &limit, 1);
    let used = node.ledger.status().server.expect("a server");
    assert!(used.ends_with(&replica.port.to_string()), "{used}");
}

#[test]
fn a_master_that_became_a_replica_is_left() {
    let (master, replica) = pair();
    let mut node = Node::new(&both(&master, &replica));
    node.ask_until_leased("acme", &spec(FAST), 1);
    let () = replica.say("REPLICAOF NO ONE");
    let () = master.say(&format!("REPLICAOF 127.0.0.1 {}", replica.port));
    // The first to ask hears that it is away; then the other one is found.
    node.wait_for(|node| {
        node.ask("acme", &spec(FAST), 1);
        let used = node.ledger.status().server?;
        used.ends_with(&replica.port.to_string()).then_some(())
    });
    node.ask_until_leased("acme", &spec(FAST), 1);
    assert!(node.ledger.status().times_away >= 1);
}

#[test]
fn slots_of_a_dead_node_come_back() {
    let server = RedisServer::start(&[]);
    let limit = LimitSpec::Concurrency { slots: 3 };
    let mut dies = Node::new(&server.url());
    let mut lives = Node::new(&server.url());
    dies.ask_until_leased("acme", &limit, 3);
    assert_eq!(tokens(lives.ask("acme", &limit, 3)), 0);
    drop(dies);
    let leased = lives.ask_until_leased("acme", &limit, 3);
    assert_eq!(tokens(leased), 3);
}

#[test]
fn what_is_in_use_stays_held_though_the_ledger_forgot() {
    let server = RedisServer::start(&[]);
    let limit = LimitSpec::Concurrency { slots: 3 };
    let mut node = Node::new(&server.url());
    let mut other = Node::new(&server.url());
    node.ask_until_leased("acme", &limit, 3);
    let () = server.say("FLUSHALL");
    let renewed = node.ask_with("acme", &limit, |request| {
        (request.tokens, request.held) = (3, 2);
    });
    assert_eq!(tokens(renewed), 2, "what is in use, and no more yet");
    assert_eq!(tokens(other.ask("acme", &limit, 3)), 0);
}

#[test]
fn time_outs_are_a_setting() {
    let server = RedisServer::start(&["--enable-debug-command", "yes"]);
    let settings = RedisSettings::new(&server.url()).expect("a URL");
    let timeout = Duration::from_secs(10);
    let settings = settings.timeout(timeout).expect("a time-out");
    let mut node = Node::with(settings);
    node.ask_until_leased("acme", &spec(FAST), 1);
    // Longer than the time-out that is set by default.
    let sleeper = std::thread::spawn({
        let mut connection = server.connect();
        move || {
            let mut command = redis::cmd("DEBUG");
            let slept = command.arg("SLEEP").arg("0.5").exec(&mut connection);
            slept.expect("it may be put to sleep");
        }
    });
    for _ in 0..20 {
        assert_ne!(node.ask("acme", &spec(FAST), 1), LeaseAnswer::Away);
        std::thread::sleep(Duration::from_millis(20));
    }
    sleeper.join().expect("it wakes");
    assert_eq!(node.ledger.status().times_away, 0);
}

#[test]
fn a_server_that_evicts_is_pointed_out() {
    let evicts = ["--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"];
    for (args, may_evict) in [(&evicts[..], true), (&evicts[..2], false), (&[], false)] {
        let server = RedisServer::start(args);
        let node = Node::new(&server.url()).connected();
        assert_eq!(node.ledger.status().may_evict, may_evict, "{args:?}");
    }
}

/// The rights that the docs name are enough.
#[test]
fn a_user_with_few_rights_is_enough() {
    let server = RedisServer::start(&[]);
    let () = server.say(
        "ACL SETUSER fleet on >s3cret ~outflow:* &outflow:* -@all +@hash +@sortedset \
         +@string +@scripting +@pubsub +@keyspace +@connection +info +time +role",
    );
    let url = format!("redis://fleet:s3cret@127.0.0.1:{}", server.port);
    let mut node = Node::new(&url);
    let window = Nanos::from_secs(3_600);
    let hour = LimitSpec::SlidingWindow { count: 10, window };
    for limit in [spec(FAST), spec("40/s spaced"), hour, spec("100/h@UTC")] {
        let name = format!("{:?}", limit.shape().kind);
        node.ask_until_leased(&name, &limit, 1);
    }
    node.ask_until_leased("slots", &LimitSpec::Concurrency { slots: 1 }, 1);
    node.pause("acme", Nanos::from_secs(5));
    node.wait_for(|node| node.heard_of_pause("acme").then_some(()));
    let version = node.block_on(node.ledger.publish("isp/google", Some("{}"), None));
    assert_eq!(version, Ok(1));
    assert_eq!(node.ledger.status().last_error, None);
}
