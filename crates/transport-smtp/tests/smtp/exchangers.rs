//! Mail straight to the servers of each domain.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outflow_core::destination::Destination;
use outflow_core::limit::spec::Rate;
use outflow_core::reply::{Enhanced, Reply, Stage};
use outflow_core::time::Nanos;
use outflow_transport_smtp::{Exchanger, Exchangers, Found, Missing, Relay, Takes, Target, Tls};

use crate::server::{Manner, Server};
use crate::world::{World, relay, simple};

/// Domains with their servers; the session is opened to those of `first`.
#[derive(Default)]
struct Zone {
    domains: BTreeMap<String, Result<Vec<Exchanger>, Missing>>,
    first: Option<String>,
}

struct Zones(Mutex<Zone>);

impl Zones {
    fn get(&self, domain: &str) -> Result<Vec<Exchanger>, Missing> {
        let unknown = || Missing::NotNow("nobody knows".to_owned());
        let zone = self.0.lock().unwrap();
        zone.domains
            .get(domain)
            .cloned()
            .unwrap_or_else(|| Err(unknown()))
    }
}

impl Exchangers for Zones {
    fn of_destination<'a>(&'a self, _: &'a Destination) -> Found<'a, Vec<Exchanger>> {
        let first = self.0.lock().unwrap().first.clone();
        Box::pin(async move { first.map_or(Ok(Vec::new()), |first| self.get(&first)) })
    }

    fn of_domain<'a>(&'a self, domain: &'a str) -> Found<'a, Vec<Exchanger>> {
        Box::pin(async move { self.get(domain) })
    }

    fn takes<'a>(&'a self, host: &'a str, domain: &'a str) -> Found<'a, Takes> {
        Box::pin(async move {
            let hosts = self.get(domain)?;
            Ok(match hosts.iter().any(|known| known.host == host) {
                true => Takes::Yes,
                false => Takes::No,
            })
        })
    }
}

fn exchanger(host: &str, port: u16) -> Exchanger {
    Exchanger {
        host: host.to_owned(),
        port,
        addresses: vec![[127, 0, 0, 1].into()],
        messages_max: None,
        must_verify: false,
    }
}

/// A port at which nobody listens.
fn dead() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

struct Setting {
    world: World,
    zones: Arc<Zones>,
    one: Server,
    other: Server,
}

fn setting(first: Option<&str>) -> Setting {
    let world = World::new();
    let start = || {
        world
            .runtime
            .block_on(Server::start(Manner::offering(&["PIPELINING"])))
    };
    let (one, other) = (start(), start());
    let to_one = exchanger("mx.one.example", one.address.port());
    let to_other = exchanger("mx.other.example", other.address.port());
    let null = Reply::said(Stage::Recipient, 556, "5.1.10 null MX");
    let domains = [
        ("a.example", Ok(vec![to_one.clone()])),
        (
            "b.example",
            Ok(vec![exchanger("dead.example", dead()), to_one]),
        ),
        ("c.example", Ok(vec![to_other])),
        ("null.example", Err(Missing::Never(null))),
        ("dead.example", Ok(vec![exchanger("dead.example", dead())])),
    ];
    let zone = Zone {
        domains: domains.map(|(domain, it)| (domain.to_owned(), it)).into(),
        first: first.map(str::to_owned),
    };
    let zones = Arc::new(Zones(Mutex::new(zone)));
    let usual = relay(0, Tls::None);
    world.set(&Relay {
        target: Target::Exchangers(Arc::clone(&zones) as _),
        ..usual
    });
    Setting {
        world,
        zones,
        one,
        other,
    }
}

#[test]
fn each_message_goes_to_a_server_of_its_own_domain() {
    let Setting {
        mut world,
        one,
        other,
        ..
    } = setting(Some("a.example"));
    world.ready(0);
    // The second server of b is the one that we are connected to.
    for to in [
        "1@a.example",
        "2@b.example",
        "3@c.example",
        "4@c.example",
        "5@b.example",
    ] {
        let became = world.send(0, simple(to));
        assert!(
            became.reply.is_accepted() && became.lives,
            "{to}: {:?}",
            became.reply
        );
    }
    let recipients = |server: &Server| {
        let taken = server.taken().into_iter();
        let taken = taken.map(|taken| (taken.recipient, taken.connection));
        taken.collect::<Vec<_>>()
    };
    let expected = |list: &[(&str, usize)]| {
        let list = list.iter().map(|(to, no)| ((*to).to_owned(), *no));
        list.collect::<Vec<_>>()
    };
    assert_eq!(
        recipients(&one),
        expected(&[("1@a.example", 0), ("2@b.example", 0), ("5@b.example", 1)])
    );
    assert_eq!(
        recipients(&other),
        expected(&[("3@c.example", 0), ("4@c.example", 0)])
    );
}

#[test]
fn who_takes_no_mail_is_refused_by_a_reply() {
    // A session for it opens without a connection, to answer.
    for first in [Some("null.example"), Some("a.example"), None] {
        let Setting { mut world, one, .. } = setting(first);
        world.ready(0);
        let became = world.send(0, simple("user@null.example"));
        let Reply::Said {
            code,
            enhanced,
            stage,
            ..
        } = became.reply
        else {
            panic!("{:?}", became.reply);
        };
        assert_eq!(
            (code, enhanced, stage),
            (556, Some(Enhanced(5, 1, 10)), Stage::Recipient)
        );
        let became = world.send(0, simple("user@a.example"));
        assert!(became.reply.is_accepted(), "and the session lives");
        assert_eq!(one.taken().len(), 1);
    }
}

/// A server that says this to everybody, and hangs up.
fn saying(line: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.and_then(|mut stream| stream.write_all(line.as_bytes()));
        }
    });
    port
}

fn to_host_saying(line: &'static str) -> World {
    let Setting { world, zones, .. } = setting(Some("mute.example"));
    let hosts = vec![exchanger("mute.example", saying(line))];
    let mut zone = zones.0.lock().unwrap();
    zone.domains.insert("mute.example".to_owned(), Ok(hosts));
    drop(zone);
    world
}

/// Whether the session was opened for it or was there already, its messages are
/// told the same.
#[test]
fn a_server_that_never_takes_mail_refuses_messages_and_not_the_session() {
    let mut world = to_host_saying("521 mute.example does not accept mail\r\n");
    world.ready(0);
    let became = world.send(0, simple("user@mute.example"));
    let text = "mute.example does not accept mail";
    assert_eq!(became.reply, Reply::said(Stage::Greeting, 521, text));
    // A block says something of us, and nothing of the messages.
    let mut world = to_host_saying("521 5.7.1 Access denied\r\n");
    let text = "5.7.1 Access denied";
    assert_eq!(world.refused(0), Reply::said(Stage::Greeting, 521, text));
}

#[test]
fn who_cannot_be_reached_or_found_is_tried_later() {
    let Setting { mut world, one, .. } = setting(Some("a.example"));
    world.ready(0);
    let became = world.send(0, simple("user@unknown.example"));
    assert!(matches!(
        became.reply,
        Reply::Network {
            stage: Stage::Connect,
            ..
        }
    ));
    assert!(became.lives, "the connection is as good as before");
    let became = world.send(0, simple("user@dead.example"));
    assert!(matches!(
        became.reply,
        Reply::Network {
            stage: Stage::Connect,
            ..
        }
    ));
    assert!(!became.lives);
    assert!(one.taken().is_empty());
}

#[test]
fn no_connection_carries_more_than_its_server_wants() {
    let Setting {
        mut world,
        zones,
        one,
        ..
    } = setting(Some("a.example"));
    {
        let mut zone = zones.0.lock().unwrap();
        let hosts = zone.domains.get_mut("a.example").unwrap();
        hosts.as_mut().unwrap()[0].messages_max = Some(2);
    }
    world.ready(0);
    assert!(world.send(0, simple("1@a.example")).lives);
    let became = world.send(0, simple("2@a.example"));
    assert!(became.reply.is_accepted() && !became.lives);
    while one.goodbyes() == 0 {
        world.bell.wait(std::time::Duration::from_millis(5));
    }
}

#[test]
fn connecting_anew_within_a_session_takes_turns_at_the_connection_rate() {
    let Setting {
        mut world,
        one,
        other,
        ..
    } = setting(Some("a.example"));
    let per = Duration::from_millis(200);
    world.account.sessions.connect_rate = Some(Rate {
        count: 1,
        per: Nanos::from_millis(200),
    });
    let began = Instant::now();
    world.ready(0);
    for to in ["1@a.example", "2@c.example", "3@a.example"] {
        let became = world.send(0, simple(to));
        assert!(became.reply.is_accepted(), "{to}: {:?}", became.reply);
    }
    assert_eq!((one.taken().len(), other.taken().len()), (2, 1));
    // Three connections are two rests apart.
    assert!(began.elapsed() >= 2 * per, "{:?}", began.elapsed());
}
