//! Mail to domains that demand something of whoever sends to them (MTA-STS):
//! policies from a real web server, found by a real DNS server.

use std::path::PathBuf;
use std::sync::Arc;

use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::reply::Reply;
use outflow_resolver_dns::{AddressOrder, Directory, Network, Reach, Settings, StsSettings, Table};
use outflow_transport_smtp::{Relay, Target, Tls};
use tokio_rustls::TlsAcceptor;

use crate::certificates::certificate;
use crate::direct::DirectExchangers;
use crate::dns::DnsServer;
use crate::server::{Manner, Server};
use crate::web::{Authority, WebServer};
use crate::world::{Became, World, relay, simple};

/// What the mail server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// A certificate for its name, by somebody whom we trust.
    Good,
    /// One that it made itself.
    SelfMade,
    /// One for another name.
    OtherName,
    /// No TLS at all.
    Nothing,
}

/// `example.com` and `free.example` have one server, `mx.example.com`. The
/// first has a policy.
struct Setting {
    world: World,
    dns: DnsServer,
    web: WebServer,
    server: Server,
    directory: Arc<Directory>,
    files: Vec<PathBuf>,
}

impl Drop for Setting {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn setting(shows: Shows, tls: Tls) -> Setting {
    let (world, dns, authority) = (World::new(), DnsServer::start(), Authority::new());
    let (self_made, self_made_file) = certificate("mx.example.com");
    let ca_file = self_made_file.with_extension("ca.pem");
    std::fs::write(&ca_file, authority.pem()).unwrap();
    let acceptor: Option<TlsAcceptor> = match shows {
        Shows::Good => Some(authority.acceptor(&["mx.example.com"])),
        Shows::OtherName => Some(authority.acceptor(&["mx.example.org"])),
        Shows::SelfMade => Some(self_made),
        Shows::Nothing => None,
    };
    let manner = Manner {
        tls: acceptor,
        ..Manner::offering(&["PIPELINING"])
    };
    let server = world.runtime.block_on(Server::start(manner));
    let web = WebServer::start(authority.acceptor(&["mta-sts.example.com"]));
    let web = world.runtime.block_on(web);
    for domain in ["example.com", "free.example"] {
        dns.mx(domain, 60, &[(10, "mx.example.com")]);
    }
    dns.addresses("mx.example.com", 60, &["127.0.0.1"]);
    dns.addresses("mta-sts.example.com", 60, &["127.0.0.1"]);
    let settings = Settings {
        servers: vec![dns.address],
        lookups_max: 64,
        patience: std::time::Duration::from_secs(60),
        cache_max: 10_000,
        order: AddressOrder::Ipv4First,
        sts: Some(StsSettings {
            port: web.address.port(),
            roots: vec![authority.root()],
            ..StsSettings::default()
        }),
        reach: Reach::new(vec![Network::new([127, 0, 0, 0].into(), 8)]),
    };
    let runtime = world.runtime.handle().clone();
    let directory = Directory::new(Table::built_in(), Some(&settings), runtime).unwrap();
    directory.begin_to_ask();
    world.set(&Relay {
        target: Target::Exchangers(Arc::new(DirectExchangers {
            directory: Arc::clone(&directory),
            port: server.address.port(),
        })),
        ca_file: Some(ca_file.clone()),
        ..relay(0, tls)
    });
    Setting {
        world,
        dns,
        web,
        server,
        directory,
        files: vec![self_made_file, ca_file],
    }
}

impl Setting {
    /// The domain has this policy from now on.
    fn publish(&self, id: &str, mode: &str, servers: &[&str]) {
        let text = format!("v=STSv1; id={id};");
        self.dns.texts("_mta-sts.example.com", 1, &[&text]);
        self.web.publish(mode, servers, 86_400);
    }

    /// Sends a message over the one session.
    fn send(&mut self, to: &str) -> Became {
        self.world.send(0, simple(to))
    }

    fn taken(&self) -> Vec<(String, bool, usize)> {
        let taken = self.server.taken().into_iter();
        let taken = taken.map(|it| (it.recipient, it.is_protected, it.connection));
        taken.collect()
    }
}

/// That a message waits since the policy is not kept, and why.
fn waits(became: &Became) -> &str {
    assert!(became.lives, "others may go on");
    match &became.reply {
        Reply::Network { text, .. } if text.starts_with("MTA-STS: ") => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_enforced_is_delivered_over_a_verified_connection() {
    for tls in [Tls::Opportunistic, Tls::None, Tls::Starttls] {
        let mut setting = setting(Shows::Good, tls);
        setting.publish("1", "enforce", &["mx.example.com"]);
        setting.world.ready(0);
        let became = setting.send("user@example.com");
        assert!(became.reply.is_accepted(), "{tls:?}: {:?}", became.reply);
        let expected = vec![("user@example.com".to_owned(), true, 0)];
        assert_eq!(setting.taken(), expected, "{tls:?}");
    }
}

#[test]
fn what_is_enforced_waits_if_the_server_cannot_prove_its_name() {
    for (shows, why) in [
        (Shows::SelfMade, "certificate"),
        (Shows::OtherName, "certificate"),
        (Shows::Nothing, "does not offer STARTTLS"),
    ] {
        let mut setting = setting(shows, Tls::Opportunistic);
        setting.publish("1", "enforce", &["*.example.com"]);
        setting.world.ready(0);
        let became = setting.send("user@example.com");
        let text = waits(&became);
        assert!(
            text.contains("mx.example.com") && text.contains(why),
            "{text}"
        );
        assert!(setting.taken().is_empty(), "{shows:?}");
        // A domain that demands nothing is sent to by the same server as ever.
        let became = setting.send("user@free.example");
        assert!(became.reply.is_accepted(), "{shows:?}: {:?}", became.reply);
        let is_protected = shows != Shows::Nothing;
        let taken = setting.taken();
        assert_eq!(
            (taken[0].0.as_str(), taken[0].1),
            ("user@free.example", is_protected)
        );
        waits(&setting.send("user@example.com"));
        assert_eq!(setting.taken().len(), 1);
    }
}

#[test]
fn a_policy_that_is_not_kept_does_not_close_the_destination() {
    for servers in [["mx.example.com"], ["mx.example.org"]] {
        let mut setting = setting(Shows::SelfMade, Tls::Opportunistic);
        setting.publish("1", "enforce", &servers);
        // The session is opened by the domain that has the policy.
        let resolved = setting.directory.resolve("example.com");
        let resolved = setting.world.runtime.block_on(resolved);
        let host = Destination::new(DestinationKind::Host, "mx.example.com");
        assert_eq!(resolved, host);
        setting.world.destination = host;
        setting.world.ready(0);
        waits(&setting.send("user@example.com"));
        assert!(setting.send("user@free.example").reply.is_accepted());
        assert_eq!(setting.taken().len(), 1);
    }
}

#[test]
fn a_server_that_the_policy_does_not_name_gets_nothing() {
    let mut setting = setting(Shows::Good, Tls::Opportunistic);
    setting.publish("1", "enforce", &["mx.example.org", "*.mx.example.com"]);
    setting.world.ready(0);
    let became = setting.send("user@example.com");
    let text = "MTA-STS: no server of example.com matches its policy";
    assert_eq!(waits(&became), text);
    // Also if there is a connection to it.
    assert!(setting.send("user@free.example").reply.is_accepted());
    assert_eq!(waits(&setting.send("user@example.com")), text);
    assert_eq!(setting.taken().len(), 1);
}

#[test]
fn what_is_not_enforced_changes_nothing() {
    for shows in [Shows::SelfMade, Shows::Nothing] {
        let is_protected = shows != Shows::Nothing;
        // A policy on trial, one that cannot be had, and none.
        for what in ["testing", "lost", "none"] {
            let mut setting = setting(shows, Tls::Opportunistic);
            match what {
                "testing" => setting.publish("1", "testing", &["mx.example.org"]),
                "lost" => {
                    setting.publish("1", "enforce", &["mx.example.org"]);
                    setting.web.say("HTTP/1.1 503 Sorry\r\n\r\n");
                }
                _ => (),
            }
            setting.world.ready(0);
            for no in 0..2 {
                let became = setting.send("user@example.com");
                assert!(became.reply.is_accepted(), "{what}: {:?}", became.reply);
                let taken = setting.taken();
                assert_eq!(taken[no].1, is_protected, "{what} {shows:?}");
                assert_eq!(taken[no].2, taken[0].2, "over the same connection");
            }
            assert_eq!(setting.web.asked().len(), usize::from(what != "none"));
        }
    }
}

#[test]
fn no_message_goes_over_a_connection_that_is_not_safe_enough_for_it() {
    let mut setting = setting(Shows::Good, Tls::Opportunistic);
    setting.publish("1", "enforce", &["mx.example.com"]);
    setting.world.ready(0);
    for to in [
        "1@free.example",
        "2@example.com",
        "3@free.example",
        "4@example.com",
    ] {
        let became = setting.send(to);
        assert!(became.reply.is_accepted(), "{to}: {:?}", became.reply);
    }
    // What was verified is good enough for all.
    let expected = [
        ("1@free.example", 0),
        ("2@example.com", 1),
        ("3@free.example", 1),
        ("4@example.com", 1),
    ];
    let expected = expected.map(|(to, no)| (to.to_owned(), true, no));
    assert_eq!(setting.taken(), expected.to_vec());
}

#[test]
fn a_policy_that_is_taken_back_lets_mail_go() {
    let mut setting = setting(Shows::SelfMade, Tls::Opportunistic);
    setting.publish("1", "enforce", &["mx.example.com"]);
    setting.world.ready(0);
    waits(&setting.send("user@example.com"));
    setting.publish("2", "none", &[]);
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !setting.send("user@example.com").reply.is_accepted() {
        assert!(std::time::Instant::now() < patience, "not in time");
        setting
            .world
            .bell
            .wait(std::time::Duration::from_millis(50));
    }
    assert_eq!(setting.web.asked().len(), 2);
}
