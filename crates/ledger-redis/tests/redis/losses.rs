//! Redis loses what it knew: scripts, counts, itself. Nobody gets a burst of it.

use std::time::Duration;

use outflow_core::engine::action::Receipt;
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::debits::{DebitPlace, RecalledDebits};
use outflow_core::limit::LimitSpec;
use outflow_core::time::Nanos;
use outflow_ledger_redis::RedisSettings;

use crate::ask::{Node, key, receipt, spec, tokens};
use crate::server::RedisServer;

/// Time for a bucket of a test to fill.
fn sleep(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

fn hour(count: u32) -> LimitSpec {
    let window = Nanos::from_secs(3_600);
    LimitSpec::SlidingWindow { count, window }
}

/// A bucket that takes a minute to fill: what it grants shows what it knows.
const SLOW: &str = "60/min burst 60";

#[test]
fn a_server_that_forgot_the_scripts_learns_them_again() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    node.ask_until_leased("acme", &spec("1000/s burst 100"), 10);
    let () = server.say("SCRIPT FLUSH");
    node.ask_until_leased("acme", &spec("1000/s burst 100"), 10);
    assert_eq!(node.ledger.status().times_away, 0);
}

#[test]
fn a_fresh_server_begins_empty_and_so_does_one_that_lost_all() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    let limit = spec("100/s burst 100");
    for round in 0..2 {
        let answer = node.ask("acme", &limit, 100);
        assert!(
            matches!(answer, LeaseAnswer::Refused { .. }),
            "{answer:?} in round {round}"
        );
        node.ask_until_leased("acme", &limit, 1);
        let () = server.say("FLUSHALL");
    }
}

#[test]
fn a_key_that_is_only_idle_is_full() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    let limit = spec("1000/s burst 100");
    node.ask_until_leased("acme", &limit, 10);
    // Long enough for a bucket and what was leased before a loss.
    sleep(1_500);
    let keys: Vec<String> = server.say("KEYS outflow:limit:*");
    let ttl: i64 = server.say(&format!("PTTL {}", keys[0]));
    assert!(ttl > 0, "an idle key expires: {ttl}");
    let () = server.say(&format!("DEL {}", keys[0]));
    let leased = tokens(node.ask("acme", &limit, 50));
    assert!(leased >= 25, "{leased}");
}

#[test]
fn a_restart_is_worth_no_burst() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut node = Node::new(&server.url());
    let limit = spec("100/s burst 100");
    node.ask_until_leased("acme", &limit, 1);
    let before: String = server.say("HGET outflow:epoch:{07} number");
    server.stop();
    node.wait_for(|node| {
        let answer = node.ask("acme", &limit, 1);
        (answer == LeaseAnswer::Away).then_some(())
    });
    server.run();
    let answer = node.wait_for(|node| {
        let answer = node.ask("acme", &limit, 100);
        (answer != LeaseAnswer::Away).then_some(answer)
    });
    assert!(matches!(answer, LeaseAnswer::Refused { .. }), "{answer:?}");
    let after: String = server.say("HGET outflow:epoch:{07} number");
    assert_ne!(before, after, "a new epoch, though the file was kept");
    node.ask_until_leased("acme", &limit, 1);
}

#[test]
fn a_clock_that_goes_back_goes_on() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    let limit = spec("100/s burst 100");
    node.ask_until_leased("acme", &limit, 1);
    // As if the ledger had seen a time an hour from now.
    let seen: u64 = server.say("HGET outflow:epoch:{07} seen");
    let ahead = seen + 3_600_000_000;
    let () = server.say(&format!("HSET outflow:epoch:{{07}} seen {ahead}"));
    node.ask("acme", &limit, 100);
    let first: u64 = server.say("HGET outflow:epoch:{07} seen");
    assert!(first >= ahead, "{first} after {ahead}");
    sleep(20);
    node.ask("acme", &limit, 100);
    let second: u64 = server.say("HGET outflow:epoch:{07} seen");
    assert!(second > first, "time goes on from where it was");
    assert!(second < first + 60_000_000, "as fast as it did");
    let epoch: Vec<String> = server.say("HMGET outflow:epoch:{07} number start");
    assert!(epoch[0].parse::<u64>().is_ok(), "{epoch:?}");
}

#[test]
fn a_long_window_is_rebuilt_from_what_nodes_debited() {
    let server = RedisServer::start(&[]);
    let mut nodes = [Node::new(&server.url()), Node::new(&server.url())];
    for limit in [hour(100), spec("100/h@UTC")] {
        let name = format!("{:?}", limit.shape().kind);
        for node in &mut nodes {
            // A node asks for twice what it uses.
            let leased = node.ask_until_leased(&name, &limit, 60);
            assert_eq!(tokens(leased), 30);
        }
        let () = server.say("FLUSHALL");
        let answer = nodes[0].ask(&name, &limit, 60);
        assert!(matches!(answer, LeaseAnswer::Refused { .. }), "{answer:?}");
        // The second node is not asked for anything: it reports by itself.
        let leased = tokens(nodes[0].ask_until_leased(&name, &limit, 200));
        assert_eq!(leased, 40, "of 100, 60 were used before {name} was lost");
    }
}

/// What the disk of a node says after one that used `tokens` of a limit was
/// restarted.
fn recalled(name: &str, limit: &LimitSpec, tokens: u64, at: Receipt) -> RecalledDebits {
    let place = match limit {
        LimitSpec::CalendarWindow { period, zone, .. } => {
            let (start, end) = period.around(at.wall, zone);
            DebitPlace::Span(start, end)
        }
        _ => DebitPlace::Age(Nanos::from_secs(1)),
    };
    RecalledDebits {
        key: key(name),
        spec: limit.clone(),
        epoch: at.epoch,
        debits: vec![(place, tokens)],
        unspent: 2,
    }
}

/// A rolling deploy, and Redis is restarted without its counts after it.
#[test]
fn a_long_window_is_rebuilt_from_what_restarted_nodes_recall() {
    let server = RedisServer::start(&[]);
    let node = |name: &str| {
        let settings = RedisSettings::new(&server.url()).expect("a URL");
        let settings = settings.timeout(Duration::from_secs(2));
        Node::with(settings.expect("a time-out").reporter(name))
    };
    for limit in [hour(100), spec("100/day@UTC")] {
        let name = format!("{:?}", limit.shape().kind);
        let mut receipts = Vec::new();
        for who in ["first", "second"] {
            let mut before = node(who);
            let leased = before.ask_until_leased(&name, &limit, 60);
            assert_eq!(tokens(leased), 30);
            receipts.push(receipt(leased));
        }
        // Redis knows of that epoch: nothing is counted twice.
        let mut nodes = ["first", "second"].map(node);
        for (node, receipt) in nodes.iter_mut().zip(&receipts) {
            node.recall(recalled(&name, &limit, 30, *receipt));
        }
        let rest = nodes[0].ask_until_leased(&name, &limit, 2);
        assert_eq!(tokens(rest), 1);
        let () = server.say("FLUSHALL");
        let leased = nodes[0].wait_for(|node| {
            let answer = node.ask(&name, &limit, 10);
            matches!(answer, LeaseAnswer::Leased { .. }).then_some(answer)
        });
        assert_eq!(tokens(leased), 5);
        // Nor is what a node reported before it was restarted once more.
        let mut nodes = ["first", "second"].map(node);
        for (node, receipt) in nodes.iter_mut().zip(&receipts) {
            node.recall(recalled(&name, &limit, 30, *receipt));
        }
        let rest = tokens(nodes[1].ask_until_leased(&name, &limit, 200));
        // 60 by those before, 1 and 5 since, and 2 promised by each.
        assert_eq!(rest, 100 - 60 - 1 - 5 - 4, "of {name}");
    }
}

#[test]
fn a_window_that_a_file_kept_is_not_counted_twice() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut node = Node::new(&server.url());
    let leased = node.ask_until_leased("acme", &hour(100), 60);
    assert_eq!(tokens(leased), 30);
    server.stop();
    server.run();
    let leased = tokens(node.ask_until_leased("acme", &hour(100), 200));
    assert_eq!(leased, 70);
}

#[test]
fn what_was_debited_in_another_epoch_does_not_come_back() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    let leased = node.ask_until_leased("acme", &spec(SLOW), 1);
    let receipt = receipt(leased);
    let () = server.say("FLUSHALL");
    node.give_back("acme", &spec(SLOW), 1_000, receipt);
    let answer = node.ask("acme", &spec(SLOW), 1);
    assert!(matches!(answer, LeaseAnswer::Refused { .. }), "{answer:?}");
}

#[test]
fn what_comes_back_late_is_worth_less() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    let limit = spec("100/s burst 200");
    node.ask_until_leased("acme", &limit, 1);
    sleep(3_500);
    let first = node.ask("acme", &limit, 50);
    assert_eq!(tokens(first), 50);
    let full_at = |server: &RedisServer| -> f64 {
        let keys: Vec<String> = server.say("KEYS outflow:limit:*");
        server.say(&format!("HGET {} full_at", keys[0]))
    };
    let before = full_at(&server);
    sleep(200);
    node.give_back("acme", &limit, 50, receipt(first));
    let after = node.wait_for(|_| {
        let after = full_at(&server);
        (after < before).then_some(after)
    });
    let credit = (before - after) / 10_000.0;
    assert!(
        credit <= 30.0,
        "{credit} of 50 after 200 ms at 100 a second"
    );
}
