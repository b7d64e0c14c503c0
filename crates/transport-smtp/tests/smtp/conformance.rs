//! The contract of transports, over real sockets.

use std::time::Duration;

use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::conformance::transport::{Harness, exercise};
use outflow_ports::parcel::ParcelRef;
use outflow_transport_smtp::{
    Exchanger, Exchangers, Found, Missing, Relay, SmtpTransport, Takes, Target, Tls,
};
use std::sync::Arc;

use crate::server::{Manner, Server};
use crate::world::{World, relay, simple};

/// Sends everything to one port, but nothing to `isp:nowhere`.
struct One(u16);

impl One {
    fn servers(&self) -> Vec<Exchanger> {
        vec![Exchanger {
            host: "localhost".to_owned(),
            port: self.0,
            addresses: vec![[127, 0, 0, 1].into()],
            messages_max: None,
            must_verify: false,
        }]
    }
}

impl Exchangers for One {
    fn of_destination<'a>(&'a self, destination: &'a Destination) -> Found<'a, Vec<Exchanger>> {
        Box::pin(async move {
            match destination.name.as_str() {
                "nowhere" => Err(Missing::NotNow("nobody takes mail there".to_owned())),
                _ => Ok(self.servers()),
            }
        })
    }

    fn of_domain<'a>(&'a self, _: &'a str) -> Found<'a, Vec<Exchanger>> {
        Box::pin(async { Ok(self.servers()) })
    }

    fn takes<'a>(&'a self, host: &'a str, _: &'a str) -> Found<'a, Takes> {
        Box::pin(async move {
            Ok(match host == "localhost" {
                true => Takes::Yes,
                false => Takes::No,
            })
        })
    }
}

struct Bench {
    world: World,
    /// Time that was skipped because nothing could happen in it.
    skipped: Nanos,
}

impl Harness for Bench {
    type Transport = SmtpTransport;

    fn transport(&mut self) -> &mut SmtpTransport {
        &mut self.world.transport
    }

    fn now(&self) -> Now {
        let now = self.world.now();
        Now {
            mono: now.mono + self.skipped,
            wall: now.wall + self.skipped,
            ..now
        }
    }

    /// While an answer is to come, time passes as it does. Else it is skipped.
    fn advance(&mut self, to: Mono) {
        let time = to.since(self.now().mono);
        if self.world.transport.pending() > 0 {
            self.world.bell.wait(Duration::from_nanos(time.0));
        } else {
            self.skipped = self.skipped + time;
        }
    }

    fn account(&self) -> AccountSpec {
        self.world.account.clone()
    }

    fn destination(&self) -> Destination {
        self.world.destination.clone()
    }

    fn dead_end(&self) -> Option<Destination> {
        Some(Destination::isp("nowhere"))
    }

    fn parcel(&self) -> Option<ParcelRef> {
        Some(simple("user@example.org"))
    }

    fn foretells(&self) -> bool {
        false
    }
}

fn bench(manner: &Manner) -> Bench {
    let world = World::new();
    let server = world.runtime.block_on(Server::start(manner.clone()));
    let one = Target::Exchangers(Arc::new(One(server.address.port())));
    let usual = relay(0, Tls::None);
    world.set(&Relay {
        target: one,
        ..usual
    });
    Bench {
        world,
        skipped: Nanos::ZERO,
    }
}

#[test]
fn it_keeps_the_contract_whatever_the_server_offers() {
    let full = [
        "PIPELINING",
        "SIZE 1000000",
        "8BITMIME",
        "SMTPUTF8",
        "CHUNKING",
    ];
    for offers in [&full[..0], &full[..1], &full[..]] {
        let manner = Manner::offering(offers);
        exercise(|| bench(&manner));
    }
}

#[test]
fn it_keeps_the_contract_when_everything_is_refused() {
    let manner = Manner {
        refuses: vec![("user@example.org", "421 4.7.0 too much")],
        ..Manner::offering(&["PIPELINING"])
    };
    exercise(|| bench(&manner));
}
