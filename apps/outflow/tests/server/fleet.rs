//! Two servers, each its own process, that share limits and policies through a
//! real Redis: what one sends the other does not, what is set on one holds on
//! both, and while Redis is away each limit does as its policy says.

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, Server, metric, show, submit, wait_for, wait_state};
use crate::redis_server::RedisServer;

struct Fleet {
    redis: RedisServer,
    places: [Place; 2],
    servers: [Server; 2],
}

impl Fleet {
    fn start(name: &str, more: &str) -> Self {
        let redis = RedisServer::start(&[]);
        let places = [Place::new(name), Place::new(name)];
        let servers = places.each_ref().map(|place| {
            let url = redis.url();
            place.configure(&format!("[ledger]\nurl = \"{url}\"\n{more}"));
            place.start()
        });
        Self {
            redis,
            places,
            servers,
        }
    }

    fn clients(&self) -> [Client; 2] {
        self.servers.each_ref().map(Server::client)
    }

    /// Messages that left, through either server.
    fn taken(&self) -> usize {
        self.places.iter().map(|place| place.taken().len()).sum()
    }
}

fn set(client: &mut Client, path: &str, fields: &Value) -> u16 {
    let path = format!("/api/v1/policies/{path}");
    let answer = client.call("PUT", &path, Some(fields));
    answer.unwrap().status
}

/// Something that no limit holds: when it has left, whatever could have left
/// before it has, too.
fn goes_on(clients: &mut [Client; 2]) {
    for client in clients {
        let id = submit(client, json!({ "tenant": "other" }));
        wait_state(client, &id, "delivered");
    }
}

#[test]
fn two_servers_share_a_quota_and_what_is_set() {
    let fleet = Fleet::start(
        "fleet",
        "[[policy]]\nmatch = { tenant = \"acme\" }\nlimits = [\"40/h\"]\nwhen_away = \"closed\"\n",
    );
    let mut clients = fleet.clients();
    let mut ids = Vec::new();
    for client in &mut clients {
        let many = (0..60).map(|_| submit(client, json!({ "tenant": "acme" })));
        ids.push(many.collect::<Vec<String>>());
    }
    wait_for("the quota is used up", || {
        (fleet.taken() == 40).then_some(())
    });
    goes_on(&mut clients);
    assert_eq!(fleet.taken(), 42, "40 of acme's, and two others");
    let last = show(&mut clients[0], ids[0].last().unwrap());
    assert_eq!(last["attempts"], 0, "{last}");
    assert!(
        last["waiting_on"].to_string().contains("tenant:acme"),
        "{last}"
    );

    // What is set on one server holds on both.
    let more = json!({ "limits": ["50/h"], "when_away": "closed" });
    assert_eq!(set(&mut clients[0], "tenant/acme", &more), 200);
    wait_for("the other server has it", || {
        let policy = clients[1].get("/api/v1/policies/tenant/acme").unwrap();
        policy.text.contains("50/h").then_some(())
    });
    wait_for("ten more", || (fleet.taken() == 52).then_some(()));

    // Redis loses everything; what was used is known by those who used it.
    let flushed: String = fleet.redis.say("FLUSHALL");
    assert_eq!(flushed, "OK");
    let more = json!({ "limits": ["55/h"], "when_away": "closed" });
    assert_eq!(set(&mut clients[1], "tenant/acme", &more), 200);
    wait_for("five more", || (fleet.taken() == 57).then_some(()));
    goes_on(&mut clients);
    assert_eq!(fleet.taken(), 59, "and not one more");
    for server in fleet.servers {
        server.stop();
    }
}

/// A rolling deploy, then Redis is restarted without its counts: nobody who used
/// the quota is in memory any more, but each server wrote down what it used.
#[test]
fn a_quota_is_not_granted_again_after_a_rolling_restart_and_a_lost_redis() {
    let fleet = Fleet::start(
        "fleet-rolling",
        "[[policy]]\nmatch = { tenant = \"acme\" }\nlimits = [\"40/h\"]\nwhen_away = \"closed\"\n",
    );
    for client in &mut fleet.clients() {
        for _ in 0..100 {
            submit(client, json!({ "tenant": "acme" }));
        }
    }
    wait_for("the quota is used up", || {
        (fleet.taken() == 40).then_some(())
    });
    let Fleet {
        mut redis,
        places,
        servers: [first, second],
    } = fleet;
    first.stop();
    let first = places[0].start();
    second.kill();
    let second = places[1].start();
    redis.stop();
    redis.run();
    let fleet = Fleet {
        redis,
        places,
        servers: [first, second],
    };
    let mut clients = fleet.clients();
    let more = json!({ "limits": ["80/h"], "when_away": "closed" });
    wait_for("a larger quota is set", || {
        (set(&mut clients[0], "tenant/acme", &more) == 200).then_some(())
    });
    // A server that was killed counts what it had reserved as spent.
    wait_for("the larger quota is used", || {
        (fleet.taken() >= 70).then_some(())
    });
    for _ in 0..5 {
        goes_on(&mut clients);
    }
    let others = 10;
    assert!(fleet.taken() <= 80 + others, "{} left", fleet.taken());
    for server in fleet.servers {
        server.stop();
    }
}

#[test]
fn a_ledger_that_is_away_holds_up_what_its_policy_says_and_no_more() {
    let mut fleet = Fleet::start(
        "fleet-away",
        "[[policy]]\nmatch = { tenant = \"closed\" }\nrate = \"1000/s\"\nburst = 100\n\
         when_away = \"closed\"\n\
         [[policy]]\nmatch = { tenant = \"open\" }\nrate = \"1000/s\"\nburst = 100\n",
    );
    let mut clients = fleet.clients();
    for client in &mut clients {
        for tenant in ["closed", "open"] {
            let id = submit(client, json!({ "tenant": tenant }));
            wait_state(client, &id, "delivered");
        }
    }
    fleet.redis.stop();
    let client = &mut clients[0];
    wait_for("it is noticed", || {
        (metric(client, "outflow_ledger_away") == Some(1.0)).then_some(())
    });
    let ready = client.get("/readyz").unwrap();
    assert_eq!(ready.status, 200, "the server can do its work");
    assert!(ready.text.contains("ledger"), "{}", ready.text);
    let answer = client.call(
        "PUT",
        "/api/v1/policies/tenant/closed",
        Some(&json!({ "rate": "1/s" })),
    );
    let answer = answer.unwrap();
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(answer.text.contains("ledger_away"), "{}", answer.text);
    let waits = submit(client, json!({ "tenant": "closed" }));
    let goes = submit(client, json!({ "tenant": "open" }));
    wait_state(client, &goes, "delivered");
    let shown = show(client, &waits);
    assert_eq!(
        (&shown["state"], &shown["attempts"]),
        (&json!("queued"), &json!(0))
    );

    fleet.redis.run();
    wait_state(client, &waits, "delivered");
    wait_for("it is noticed that it is back", || {
        (metric(client, "outflow_ledger_away") == Some(0.0)).then_some(())
    });
    for server in fleet.servers {
        server.stop();
    }
}

#[test]
fn a_far_end_that_asks_for_a_rest_is_left_alone_by_all() {
    let fleet = Fleet::start(
        "fleet-rest",
        "[[account]]\nid = \"main\"\ntransport = \"sandbox\"\n\
         sandbox = { hidden_rate = \"1/h burst 1\", over = 429, retry_after = \"1h\" }\n",
    );
    let mut clients = fleet.clients();
    for _ in 0..2 {
        submit(&mut clients[0], json!({}));
    }
    let blocked = |client: &mut Client| {
        let id = submit(client, json!({}));
        let shown = show(client, &id);
        shown["waiting_on"]
            .to_string()
            .contains("account_blocked")
            .then_some(())
    };
    wait_for("the server that was told rests", || {
        blocked(&mut clients[0])
    });
    // The other one was told nothing by its own far end.
    wait_for("the other server rests, too", || blocked(&mut clients[1]));
    for server in fleet.servers {
        server.kill();
    }
}
