//! A connection that is dropped before or after a script was executed: nothing
//! is credited or debited twice, over one server and over a cluster.

use std::time::{Duration, Instant};

use outflow_core::engine::action::Receipt;
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::limit::LimitSpec;
use outflow_core::time::Nanos;
use outflow_ledger_redis::RedisSettings;

use crate::ask::{Node, receipt, spec, tokens};
use crate::proxy::{Drop, Proxy};
use crate::server::{RedisServer, free_port};

/// A server, the proxy before it and a node behind that.
struct Dropped {
    server: RedisServer,
    proxy: Proxy,
    node: Node,
    is_cluster: bool,
}

/// How many scripts a server knows.
fn scripts(server: &RedisServer) -> u64 {
    let memory: String = server.say("INFO memory");
    let mut lines = memory.lines();
    let count = lines.find_map(|line| line.strip_prefix("number_of_cached_scripts:"));
    count.expect("a count").trim().parse().expect("a number")
}

impl Dropped {
    fn one() -> Self {
        let server = RedisServer::start(&[]);
        let proxy = Proxy::start(free_port(), server.port);
        Self::with(server, proxy, false)
    }

    /// A cluster of one server, which says that it lives where the proxy does.
    fn cluster() -> Self {
        let port = free_port();
        let announced = port.to_string();
        let server = RedisServer::start(&[
            "--cluster-enabled",
            "yes",
            "--cluster-announce-ip",
            "127.0.0.1",
            "--cluster-announce-port",
            &announced,
        ]);
        let () = server.say("CLUSTER ADDSLOTSRANGE 0 16383");
        let deadline = Instant::now() + Duration::from_secs(30);
        while !server
            .say::<String>("CLUSTER INFO")
            .contains("cluster_state:ok")
        {
            assert!(Instant::now() < deadline, "the cluster never begins");
            std::thread::sleep(Duration::from_millis(20));
        }
        let proxy = Proxy::start(port, server.port);
        Self::with(server, proxy, true)
    }

    fn with(server: RedisServer, proxy: Proxy, is_cluster: bool) -> Self {
        let settings = RedisSettings::new(&proxy.url()).expect("a URL");
        let settings = settings.timeout(Duration::from_secs(5));
        let settings = settings.expect("a time-out").cluster(is_cluster);
        let node = Node::with(settings);
        Self {
            server,
            proxy,
            node,
            is_cluster,
        }
    }

    /// Gives back over a connection that is dropped.
    fn give_back(&mut self, limit: &LimitSpec, tokens: u32, receipt: Receipt, when: Drop) {
        // A cluster learns a script when it is first called.
        if self.is_cluster {
            let (server, before) = (&self.server, scripts(&self.server));
            self.node.give_back("acme", limit, 0, receipt);
            self.node
                .wait_for(|_| (scripts(server) > before).then_some(()));
        }
        self.proxy.drop_at(&receipt.at.to_string(), when);
        self.node.give_back("acme", limit, tokens, receipt);
        self.dropped();
    }

    /// What the only limit's field says.
    fn field(&self, field: &str) -> f64 {
        let keys: Vec<String> = self.server.say("KEYS outflow:limit:tenant:acme{*");
        let key = keys.first().expect("the limit was asked for");
        self.server.say(&format!("HGET {key} {field}"))
    }

    /// Waits until the connection was dropped and there is another one, over
    /// which whatever is repeated has gone before.
    fn dropped(&mut self) {
        let proxy = &self.proxy;
        self.node.wait_for(|_| proxy.has_dropped().then_some(()));
        let limit = spec("1000/s burst 100");
        self.node.ask_until_leased("another", &limit, 1);
        std::thread::sleep(Duration::from_millis(100));
        self.node.ask_until_leased("another", &limit, 1);
    }
}

fn hour(count: u32) -> LimitSpec {
    let window = Nanos::from_secs(3_600);
    LimitSpec::SlidingWindow { count, window }
}

fn each(check: impl Fn(Dropped, Drop)) {
    for when in [Drop::Before, Drop::After] {
        check(Dropped::one(), when);
        check(Dropped::cluster(), when);
    }
}

#[test]
fn what_comes_back_over_a_dropped_connection_is_credited_once_at_most() {
    each(|mut it, when| {
        // Enough in use that a second credit would find something to take off.
        let first = it.node.ask_until_leased("acme", &hour(1_000), 100);
        let second = it.node.ask_until_leased("acme", &hour(1_000), 400);
        let used = tokens(first) + tokens(second);
        assert_eq!(it.field("used"), f64::from(used));
        let receipt = receipt(first);
        it.give_back(&hour(1_000), 20, receipt, when);
        let credited = f64::from(used) - it.field("used");
        match when {
            Drop::Before => assert!((0.0..=20.0).contains(&credited), "{credited} of 20"),
            Drop::After => assert_eq!(credited, 20.0, "the server had executed it"),
        }
    });
}

#[test]
fn a_bucket_is_credited_once_at_most_over_a_dropped_connection() {
    each(|mut it, when| {
        // It fills so slowly that time does not matter.
        let limit = spec("4000/h burst 4000");
        let first = it.node.ask_until_leased("acme", &limit, 1);
        let interval = 900_000.0;
        let before = it.field("full_at");
        let receipt = receipt(first);
        it.give_back(&limit, 200, receipt, when);
        let credited = (before - it.field("full_at")) / interval;
        let least = if when == Drop::Before { 0.0 } else { 100.0 };
        assert!((least..=200.0).contains(&credited), "{credited} of 200");
    });
}

#[test]
fn a_lease_whose_answer_is_lost_is_debited_once() {
    each(|mut it, when| {
        let limit = hour(1_000);
        let used = f64::from(tokens(it.node.ask_until_leased("acme", &limit, 100)));
        // The limit's key is in every script that is about it.
        it.proxy.drop_at("tenant:acme", when);
        assert_eq!(it.node.ask("acme", &limit, 100), LeaseAnswer::Away);
        it.dropped();
        let debited = it.field("used") - used;
        let expected = if when == Drop::Before { 0.0 } else { 50.0 };
        assert_eq!(debited, expected, "{when:?}");
    });
}
