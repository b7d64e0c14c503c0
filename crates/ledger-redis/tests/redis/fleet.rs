//! What one node does and all hear of: pauses, policies, versions.

use std::time::Duration;

use outflow_core::engine::event::LeaseAnswer;
use outflow_core::time::Nanos;
use outflow_ledger_redis::{PoliciesError, SharedPolicy};

use crate::ask::{Node, spec, tokens};
use crate::server::RedisServer;

const FAST: &str = "1000/s burst 100";

#[test]
fn all_nodes_hear_of_a_pause() {
    let server = RedisServer::start(&[]);
    let mut nodes = [Node::new(&server.url()), Node::new(&server.url())];
    for node in &mut nodes {
        node.ask_until_leased("acme", &spec(FAST), 1);
    }
    let listeners = |node: &mut Node| {
        let heard: Vec<(String, u64)> = server.say("PUBSUB NUMSUB outflow:changes");
        let _ = node;
        heard
            .first()
            .is_some_and(|(_, count)| *count == 2)
            .then_some(())
    };
    nodes[0].wait_for(listeners);
    nodes[0].pause("acme", Nanos::from_secs(20));
    for node in &mut nodes {
        node.wait_for(|node| node.heard_of_pause("acme").then_some(()));
        let answer = node.ask("acme", &spec(FAST), 1);
        let LeaseAnswer::Refused { retry_after } = answer else {
            unreachable!("leased during a pause: {answer:?}");
        };
        assert!(retry_after > Nanos::from_secs(5), "{retry_after}");
    }
    // Others go on.
    nodes[1].ask_until_leased("other", &spec(FAST), 1);
}

#[test]
fn a_pause_that_nobody_heard_is_seen() {
    let server = RedisServer::start(&[]);
    let mut deaf = Node::new(&server.url());
    deaf.ask_until_leased("acme", &spec(FAST), 1);
    // As the script does it, but nothing is published.
    let now: u64 = server.say("HGET outflow:epoch:{07} seen");
    let until = now + 20_000_000;
    let () = server.say(&format!("ZADD outflow:pauses:{{07}} {until} tenant:acme"));
    deaf.wait_for(|deaf| deaf.heard_of_pause("acme").then_some(()));
}

#[test]
fn a_pause_while_redis_is_away_is_told_later() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    node.ask_until_leased("acme", &spec(FAST), 1);
    server.signal("STOP");
    assert_eq!(node.ask("acme", &spec(FAST), 1), LeaseAnswer::Away);
    node.pause("acme", Nanos::from_secs(60));
    server.signal("CONT");
    node.wait_for(|node| node.heard_of_pause("acme").then_some(()));
}

#[test]
fn old_numbers_are_not_leased() {
    let server = RedisServer::start(&[]);
    let mut node = Node::new(&server.url());
    node.ask_until_leased("acme", &spec(FAST), 1);
    node.wait_for(|node| {
        let answer = node.ask_with("acme", &spec("500/s burst 50"), |it| it.version = 7);
        (tokens(answer) > 0).then_some(())
    });
    let answer = node.ask_with("acme", &spec(FAST), |it| it.version = 6);
    let retry_after = Nanos::from_millis(50);
    assert_eq!(answer, LeaseAnswer::Refused { retry_after });
}

#[test]
fn the_largest_cost_of_any_node_counts() {
    let server = RedisServer::start(&[]);
    let mut nodes = [Node::new(&server.url()), Node::new(&server.url())];
    let limit = spec("1000/s burst 100");
    nodes[0].wait_for(|node| {
        let answer = node.ask_with("acme", &limit, |it| (it.tokens, it.at_least) = (60, 60));
        (tokens(answer) > 0).then_some(())
    });
    let LeaseAnswer::Leased { life, .. } = nodes[1].ask_until_leased("acme", &limit, 1) else {
        unreachable!("it was leased");
    };
    // (100 - 60) / 2 tokens pay for 20 ms; alone it would be 49.
    assert!(life <= Nanos::from_millis(20), "{life}");
    // A burst below that cost still lets others through.
    nodes[1].ask_until_leased("acme", &spec("1000/s burst 50"), 1);
}

#[test]
fn policies_are_shared() {
    let server = RedisServer::start(&[]);
    let nodes = [Node::new(&server.url()), Node::new(&server.url())];
    let [writer, reader] = nodes.map(Node::connected);
    let mut heard = reader.ledger.policies_version();
    let publish = |id, json, expected| writer.block_on(writer.ledger.publish(id, json, expected));
    assert_eq!(publish("isp/google", Some("{\"rate\":1}"), Some(0)), Ok(1));
    reader.block_on(async {
        let it = tokio::time::timeout(Duration::from_secs(20), heard.wait_for(|it| *it == 1));
        it.await
            .expect("it is heard of")
            .map(drop)
            .expect("a ledger");
    });
    assert_eq!(publish("tenant/a b", Some("{}"), None), Ok(2));
    assert_eq!(
        publish("isp/google", Some("{}"), Some(0)),
        Err(PoliciesError::Changed(1))
    );
    assert_eq!(publish("isp/google", None, Some(1)), Ok(3));
    let (version, policies) = reader.block_on(reader.ledger.read_policies()).expect("all");
    assert_eq!(version, 3);
    let shared = |id: &str, version, json: Option<&str>| SharedPolicy {
        id: id.to_owned(),
        version,
        json: json.map(str::to_owned),
    };
    let expected = [
        shared("isp/google", 3, None),
        shared("tenant/a b", 2, Some("{}")),
    ];
    assert_eq!(policies, expected);
    // Versions only grow, whatever Redis forgets.
    let () = server.say("FLUSHALL");
    assert_eq!(publish("isp/google", Some("{}"), None), Ok(4));
    let long = "x".repeat(1 << 20);
    let too_long = publish("isp/google", Some(&long), None);
    assert_eq!(too_long, Err(PoliciesError::TooLong));
}

#[test]
fn nothing_can_be_published_while_redis_is_away() {
    let mut server = RedisServer::start(&[]);
    let node = Node::new(&server.url()).connected();
    server.stop();
    let publish = node.ledger.publish("isp/google", None, None);
    assert_eq!(node.block_on(publish), Err(PoliciesError::Away));
    let read = node.block_on(node.ledger.read_policies());
    assert_eq!(read, Err(PoliciesError::Away));
}
