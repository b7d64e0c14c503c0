//! `many_destinations`: how busy the real server keeps its connections while it
//! has far more destinations than connections, and how much longer that takes
//! than as many messages to one destination.
//!
//! A relay account with 8 connections and an `mx` account with 100 send three
//! messages to each of 2,000 domains, and then as many to one. The sink takes a
//! fixed time for each message, so that connections are what is short. A
//! connection is busy from MAIL to the answer to the final dot, as the sink sees
//! it; all are busy if these times add up to connections x elapsed. Elapsed is
//! from the first connection that the sink accepts to the last message.

mod sink;

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use self::sink::SlowSink;
use crate::dns::DnsServer;
use crate::letters::{self, Letter};
use crate::server::{Scratch, Server, block_on, progress};

/// How long all messages of a run may take.
const PATIENCE: Duration = Duration::from_secs(600);
const BATCH: u64 = 1_000;

/// What is sent.
pub struct Plan {
    pub domains: u64,
    pub each: u64,
}

/// How an account sends, and how long the sink takes for a message.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    is_relay: bool,
    connections: u32,
    service: Duration,
}

const RELAY: Way = Way {
    name: "relay",
    is_relay: true,
    connections: 8,
    service: Duration::from_millis(20),
};

/// Slower, so that a hundred connections are not more than two cores can feed.
const MX: Way = Way {
    name: "mx",
    is_relay: false,
    connections: 100,
    service: Duration::from_millis(200),
};

/// What came of one run.
struct Run {
    elapsed: f64,
    busy: f64,
    connections: u64,
}

impl Way {
    fn config(self, dns: &DnsServer, sink: &SlowSink) -> String {
        let Self { connections, .. } = self;
        let (servers, port) = (dns.address, sink.port);
        let to = match self.is_relay {
            true => "host = \"127.0.0.1\"\ntls = \"none\"",
            false => "transport = \"mx\"",
        };
        format!(
            "[dns]\nservers = [\"{servers}\"]\nallowed_networks = [\"127.0.0.0/8\"]\n\
             [[account]]\nid = \"bench\"\n{to}\nport = {port}\nhelo = \"bench.example\"\n\
             max_connections = {connections}\n\
             max_connections_per_destination = {connections}\n"
        )
    }

    async fn run(self, dns: &DnsServer, domains: u64, messages: u64) -> io::Result<Run> {
        let sink = SlowSink::start(self.service)?;
        let scratch = Scratch::new("many-destinations")?;
        let server = Server::start(scratch.path(), &self.config(dns, &sink)).await?;
        let mut connection = server.connect().await?;
        for first in (0..messages).step_by(usize::try_from(BATCH).unwrap_or(1)) {
            let mut body = Vec::new();
            let numbers = first..messages.min(first + BATCH);
            let batch = numbers.map(|no| Letter {
                tenant: 0,
                class: "normal",
                domain: no % domains,
                no,
                has_key: false,
            });
            letters::batch(&mut body, batch);
            let answer = connection.call(&server.submission(&body)).await?;
            if answer.status != 202 {
                return Err(io::Error::other(format!("answered {}", answer.status)));
            }
        }
        let elapsed = sink.wait(messages, PATIENCE).await?.as_secs_f64();
        let used = sink.busy().as_secs_f64();
        let run = Run {
            elapsed,
            busy: used / (f64::from(self.connections) * elapsed),
            connections: sink.connections(),
        };
        progress(&format!(
            "{} to {domains} destinations: {:.2} s, {:.1} % busy, {} connections opened",
            self.name,
            run.elapsed,
            100.0 * run.busy,
            run.connections
        ));
        Ok(run)
    }
}

pub fn run(plan: &Plan) -> io::Result<Value> {
    let dns = DnsServer::start();
    for no in 0..plan.domains {
        let host = format!("mx.d{no}.example");
        dns.mx(&format!("d{no}.example"), 3_600, &[(10, &host)]);
        dns.addresses(&host, 3_600, &["127.0.0.1"]);
    }
    let messages = plan.domains * plan.each;
    let mut last = json!({
        "benchmark": "many_destinations",
        "messages": messages,
        "domains": plan.domains,
    });
    for way in [RELAY, MX] {
        let many = block_on(way.run(&dns, plan.domains, messages))?;
        let one = block_on(way.run(&dns, 1, messages))?;
        let name = way.name;
        last[format!("{name}_busy")] = rounded(many.busy);
        last[format!("{name}_ratio")] = rounded(many.elapsed / one.elapsed);
        last[format!("{name}_s")] = rounded(many.elapsed);
        last[format!("{name}_one_s")] = rounded(one.elapsed);
        last[format!("{name}_connections")] = json!(many.connections);
    }
    Ok(last)
}

fn rounded(figure: f64) -> Value {
    json!((figure * 1_000.0).round() / 1_000.0)
}
