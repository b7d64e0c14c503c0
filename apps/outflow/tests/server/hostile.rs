//! An honest client beside many that mean harm, of every kind that
//! `outflow-bench hostile` knows: it is answered as usual over all protocols,
//! and the server stays small. How fast is for the benchmark.

#[path = "../../../../benches/src/hostile/crowd.rs"]
mod crowd;
#[path = "../../../../benches/src/hostile/kinds.rs"]
mod kinds;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::json;

use crate::process::{Place, Server, message, submit, wait_for, wait_state};
use crate::submitter::{Submitter, address_of};
use crowd::Crowd;
use kinds::{Door, KINDS, Target};

const CLIENTS: usize = 300;
/// More than the submission port has places.
const SMTP_CLIENTS: usize = 1_200;
/// How much larger than idle the server may become.
const GROWTH_MB: u64 = 300;

fn throttle_of(server: &Server) -> SocketAddr {
    let mut lines = server.greeting.iter();
    let line = lines.find_map(|line| line.strip_prefix("throttle"));
    let address = line.unwrap().split_whitespace().next();
    address.unwrap().parse().unwrap()
}

fn token(server: &Server, tenant: &str) -> String {
    let form = json!({ "name": tenant, "scope": "submit", "tenant": tenant });
    let made = server.client().post("/api/v1/tokens", &form).unwrap();
    made.json()["token"].as_str().unwrap().to_owned()
}

/// What somebody hears who shows a token over the Redis protocol and pings.
fn ping(address: SocketAddr, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let login = format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{token}\r\n", token.len());
    stream.write_all(login.as_bytes()).unwrap();
    stream
        .write_all(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n")
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn an_honest_client_is_served_beside_hostile_ones() {
    let place = Place::new("hostile");
    place.configure(
        "[smtp]\nlisten = \"127.0.0.1:0\"\n\
         [throttle]\nlisten = \"127.0.0.1:0\"\nconnections_max = 200\n",
    );
    let server = place.start();
    let target = Target {
        http: server.address,
        smtp: address_of(&server),
        resp: throttle_of(&server),
        token: token(&server, "hostile"),
    };
    let honest = token(&server, "honest");
    let idle = server.memory_mb("VmRSS");
    for kind in KINDS {
        let clients = match kind.door {
            Door::Smtp => SMTP_CLIENTS,
            Door::Http | Door::Resp => CLIENTS,
        };
        let crowd = Crowd::start(kind, &target, clients, 8).unwrap();
        wait_for(&format!("{kind:?}"), || crowd.is_begun().then_some(()));
        for _ in 0..3 {
            let mut client = crate::client::Client::new(server.address, &honest);
            assert_eq!(client.get("/healthz").unwrap().status, 200, "{kind:?}");
            let sent = client.post("/api/v1/messages", &message(json!({})));
            assert_eq!(sent.unwrap().status, 202, "{kind:?}");
            let mut smtp = Submitter::login(target.smtp, &honest);
            let smtp = smtp
                .as_mut()
                .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            smtp.submit("user@gmail.com", "honest").unwrap();
            let said = ping(target.resp, &honest);
            assert!(said.starts_with("+OK\r\n+PONG\r\n"), "{kind:?}: {said:?}");
        }
        eprintln!(
            "{kind:?}: {} connected, {} came back, {} MB",
            crowd.connected(),
            crowd.returned(),
            server.memory_mb("VmRSS")
        );
    }
    let peak = server.memory_mb("VmHWM");
    assert!(peak <= idle + GROWTH_MB, "{peak} MB, idle {idle} MB");
    // What is left of them is in nobody's way.
    let id = submit(&mut server.client(), json!({}));
    wait_state(&mut server.client(), &id, "delivered");
    server.stop();
}
