//! The throttle as its users meet it: over HTTP, and over the Redis protocol by
//! clients that know nothing of us.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Place, Server, metric, wait_for};
use crate::programs::run;

const PATIENCE: Duration = Duration::from_secs(60);
const LISTENS: &str = "[throttle]\nlisten = \"127.0.0.1:0\"\n";

fn address_of(server: &Server) -> SocketAddr {
    let mut lines = server.greeting.iter();
    let line = lines.find_map(|line| line.strip_prefix("throttle"));
    let address = line.unwrap().split_whitespace().next();
    address.unwrap().parse().unwrap()
}

fn token(place: &Place) -> String {
    let token = fs::read_to_string(place.data().join("admin-token")).unwrap();
    token.trim().to_owned()
}

/// Somebody who types commands.
struct Typist {
    lines: BufReader<TcpStream>,
}

impl Typist {
    fn at(server: &Server) -> Self {
        let stream = TcpStream::connect_timeout(&address_of(server), PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            lines: BufReader::new(stream),
        }
    }

    fn known(server: &Server, token: &str) -> Self {
        let mut typist = Self::at(server);
        assert_eq!(typist.say(&format!("AUTH {token}"), 1), ["+OK"]);
        typist
    }

    /// Says a line and hears so many.
    fn say(&mut self, line: &str, lines: usize) -> Vec<String> {
        let stream = self.lines.get_mut();
        stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
        (0..lines).map(|_| self.hear()).collect()
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

#[test]
fn clients_of_redis_cell_work_unchanged() {
    let place = Place::new("throttle-python");
    place.configure(LISTENS);
    let server = place.start();
    let address = address_of(&server);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/throttle.py");
    // Debian's modules are for Debian's Python, whichever is first in the path.
    let mut python = Command::new("/usr/bin/python3");
    python.arg(script).arg(address.port().to_string());
    let said = run(python.arg(token(&place)), "python3 python3-redis");
    assert_eq!(said, "done");

    let cli = |words: &[&str]| {
        let mut cli = Command::new("redis-cli");
        cli.args(["-h", "127.0.0.1", "-p", &address.port().to_string()]);
        cli.args(["--no-auth-warning", "-a", &token(&place)]);
        run(cli.args(words), "redis-tools")
    };
    let said = cli(&["CL.THROTTLE", "of-the-manual", "15", "30", "60", "1"]);
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        ["0", "16", "15", "-1", "2"]
    );
    assert_eq!(cli(&["PING"]), "PONG");

    let mut bench = Command::new("redis-benchmark");
    bench.args(["-h", "127.0.0.1", "-p", &address.port().to_string()]);
    bench.args(["-a", &token(&place), "-n", "2000", "-c", "10", "-q"]);
    let said = run(
        bench.args(["CL.THROTTLE", "bench", "15", "1000", "1"]),
        "redis-tools",
    );
    assert!(said.contains("requests per second"), "{said}");
    server.stop();
}

#[test]
fn nothing_is_answered_without_a_token() {
    let place = Place::new("throttle-door");
    place.configure(LISTENS);
    let server = place.start();
    let mut stranger = Typist::at(&server);
    assert_eq!(stranger.say("PING", 1), ["+PONG"]);
    for command in [
        "CL.THROTTLE a 1 1 1",
        "ACQUIRE a RATE 1/s",
        "RELEASE 0-0",
        "INFO",
        "PAUSE a 1",
    ] {
        let said = stranger.say(command, 1);
        assert!(said[0].starts_with("-NOAUTH"), "{command}: {said:?}");
    }
    assert!(stranger.say("AUTH wrong", 1)[0].starts_with("-WRONGPASS"));

    let mut client = server.client();
    let mut mint = |fields: Value| {
        let made = client.post("/api/v1/tokens", &fields).unwrap().json();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("token"), text("id"))
    };
    let (metrics, _) = mint(json!({ "name": "m", "scope": "metrics" }));
    assert!(stranger.say(&format!("AUTH {metrics}"), 1)[0].starts_with("-WRONGPASS"));
    let (acme, id) = mint(json!({ "name": "a", "scope": "submit", "tenant": "acme" }));
    let (other, _) = mint(json!({ "name": "o", "scope": "submit", "tenant": "other" }));

    // The same name is another key for another tenant.
    let mut acme = Typist::known(&server, &acme);
    let mut other = Typist::known(&server, &other);
    assert_eq!(acme.say("ACQUIRE k RATE \"1/min burst 1\"", 4)[1], ":1");
    assert_eq!(acme.say("ACQUIRE k RATE \"1/min burst 1\"", 5)[1], ":0");
    assert_eq!(other.say("ACQUIRE k RATE \"1/min burst 1\"", 4)[1], ":1");
    assert!(acme.say("ACQUIRE isp:google", 1)[0].starts_with("-NOPERM"));
    // Nor does anybody give back what is another's.
    let held = acme.say("ACQUIRE gpu CONCURRENCY 1", 4);
    let permit = held[3].clone();
    assert_eq!(other.say(&format!("RELEASE {permit}"), 1), [":0"]);
    assert_eq!(acme.say(&format!("RELEASE {permit}"), 1), [":1"]);

    // A token that was withdrawn opens nothing any more.
    let path = format!("/api/v1/tokens/{id}");
    client.call("DELETE", &path, None).unwrap();
    wait_for("the token is noticed to be gone", || {
        let said = acme.say("RELEASE 0-0", 1);
        said[0].starts_with("-NOAUTH").then_some(())
    });
    server.stop();
}

#[test]
fn who_waits_holds_nobody_else_back() {
    let place = Place::new("throttle-wait");
    place.configure(LISTENS);
    let server = place.start();
    let mut holder = Typist::known(&server, &token(&place));
    let mut waiter = Typist::known(&server, &token(&place));
    let held = holder.say("ACQUIRE door CONCURRENCY 1", 4);
    assert_eq!(held[1], ":1");
    // Its later answers wait as well, in order.
    waiter.say("ACQUIRE door CONCURRENCY 1 WAIT 60000", 0);
    waiter.say("PING", 0);
    let mut client = server.client();
    wait_for("it waits", || {
        (metric(&mut client, "outflow_throttle_waiting") == Some(1.0)).then_some(())
    });
    assert_eq!(holder.say("PING", 1), ["+PONG"]);
    assert_eq!(holder.say(&format!("RELEASE {}", held[3]), 1), [":1"]);
    assert_eq!(waiter.hear(), "*2");
    assert_eq!(waiter.hear(), ":1");
    assert!(waiter.hear().starts_with('$'));
    waiter.hear();
    assert_eq!(waiter.hear(), "+PONG");

    // Who leaves waits no more.
    let mut gone = Typist::known(&server, &token(&place));
    gone.say("ACQUIRE door CONCURRENCY 1 WAIT 60000", 0);
    wait_for("it waits", || {
        (metric(&mut client, "outflow_throttle_waiting") == Some(1.0)).then_some(())
    });
    drop(gone);
    wait_for("it is gone", || {
        (metric(&mut client, "outflow_throttle_waiting") == Some(0.0)).then_some(())
    });
    server.stop();
}

#[test]
fn over_http_as_well() {
    let place = Place::new("throttle-http");
    let log = place.dir.join("grants.jsonl");
    place.configure(&format!(
        "[throttle]\ngrants_log = {log:?}\n\
         [[policy]]\nmatch = {{ isp = \"google\" }}\nrate = \"1/s\"\nburst = 2\nconcurrency = 1\n"
    ));
    let server = place.start();
    let mut client = server.client();
    let mut ask = |body: Value| client.post("/api/v1/throttle/acquire", &body).unwrap();

    let both = json!({ "class": "critical", "limits": [
        { "key": "isp:gmail" },
        { "key": "user:42", "rate": "10/s", "burst": 20, "cost": 5 },
    ] });
    let granted = ask(both.clone());
    assert_eq!(granted.status, 200, "{}", granted.json());
    let permit = granted.json()["permit"].clone();
    assert!(granted.json()["expires_at"].is_string());
    assert!(
        granted
            .header("ratelimit")
            .unwrap()
            .contains("\"user:42\";r=15")
    );
    let refused = ask(both);
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["granted"], false);
    assert_eq!(refused.json()["refused_by"], "isp:gmail");
    assert!(refused.json()["retry_after_ms"].as_u64().unwrap() > 0);
    assert!(refused.header("retry-after").is_some());
    let policy = refused.header("ratelimit-policy").unwrap();
    // What the node counts is not shown.
    assert!(policy.contains("\"user:42\";q=10;w=1"), "{policy}");

    let unknown = ask(json!({ "limits": [{ "key": "isp:nobody-knows" }] }));
    assert_eq!(unknown.status, 422);
    assert_eq!(unknown.json()["code"], "unknown_limit");
    let never = ask(json!({ "limits": [{ "key": "x", "rate": "1/s", "burst": 2, "cost": 3 }] }));
    assert_eq!(
        (never.status, &never.json()["code"]),
        (422, &json!("cost_too_large"))
    );

    let mut post = |path: &str, body: Value| client.post(path, &body).unwrap().json();
    let released = post("/api/v1/throttle/release", json!({ "permit": permit }));
    assert_eq!(released, json!({ "released": true }));
    let pause = json!({ "key": "user:42", "retry_after_ms": 60_000 });
    post("/api/v1/throttle/pause", pause);
    let paused = post(
        "/api/v1/throttle/acquire",
        json!({ "limits": [{ "key": "user:42", "rate": "10/s", "burst": 20 }] }),
    );
    assert!(paused["retry_after_ms"].as_u64().unwrap() > 50_000);
    server.stop();

    let lines = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let keys: Vec<_> = lines
        .iter()
        .map(|line| line["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["isp:gmail", "user:42"]);
    assert_eq!(lines[1]["cost"], 5);
    assert_eq!(lines[0]["at_ns"], lines[1]["at_ns"]);
}

#[test]
fn after_a_restart_nobody_has_a_burst() {
    let place = Place::new("throttle-restart");
    place.configure(LISTENS);
    let server = place.start();
    let mut first = Typist::known(&server, &token(&place));
    let ask = "CL.THROTTLE slow 4 1 12";
    assert_eq!(first.say(ask, 6)[1..4], [":0", ":5", ":4"]);
    server.stop();
    // It fills in a minute, and was empty when the process began.
    let server = place.start();
    let mut second = Typist::known(&server, &token(&place));
    let said = second.say(ask, 6);
    assert_eq!(said[1], ":1", "{said:?}");
    server.stop();
}
