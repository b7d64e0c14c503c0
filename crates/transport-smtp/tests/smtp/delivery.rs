//! Mail arrives as it was written, over every kind of connection.

use std::sync::Arc;

use outflow_core::engine::event::Event;
use outflow_core::reply::{Reply, Stage};
use outflow_mail::{DkimKey, Keyring};
use outflow_ports::letter::{Content, Envelope};
use outflow_transport_smtp::{Login, Relay, Tls};

use crate::certificates::certificate;
use crate::letters::{self, letters};
use crate::server::{Manner, Server};
use crate::world::{World, damaged, parcel, relay, simple, unreadable};

const ALL: [&str; 5] = [
    "PIPELINING",
    "SIZE 10000000",
    "8BITMIME",
    "SMTPUTF8",
    "CHUNKING",
];

fn start(world: &World, manner: Manner) -> Server {
    world.runtime.block_on(Server::start(manner))
}

/// A world in which the account's relay is this server.
fn joined(manner: Manner, tls: Tls, change: impl Fn(Relay) -> Relay) -> (World, Server) {
    let world = World::new();
    let server = start(&world, manner);
    world.set(&change(relay(server.address.port(), tls)));
    (world, server)
}

#[test]
fn every_letter_arrives_over_one_connection() {
    for offers in [&ALL[1..4], &ALL[..4], &ALL[..]] {
        let (mut world, server) = joined(Manner::offering(offers), Tls::None, |relay| relay);
        world.ready(0);
        let letters = letters();
        for letter in &letters {
            let became = world.send(0, parcel(&letter.envelope, &letter.content));
            assert!(
                became.reply.is_accepted(),
                "{}: {:?}",
                letter.name,
                became.reply
            );
            assert!(became.lives);
        }
        let taken = server.taken();
        assert_eq!(taken.len(), letters.len());
        for (letter, taken) in letters.iter().zip(&taken) {
            let name = letter.name;
            assert_eq!(taken.connection, 0, "{name}");
            assert_eq!(taken.sender, "sender@example.com", "{name}");
            assert_eq!(taken.is_chunked, offers.contains(&"CHUNKING"), "{name}");
            assert_eq!(taken.is_utf8, name == "idn recipient", "{name}");
            assert_eq!(
                taken.is_8bit,
                taken.bytes.iter().any(|byte| *byte > 127),
                "{name}"
            );
            let message = mail_parser::MessageParser::default().parse(&taken.bytes);
            let message = message.unwrap();
            assert_eq!(message.message_id(), Some("1.2.3@example.com"), "{name}");
            if letter.content.raw.is_none() {
                let subject = letter.content.subject.as_deref();
                assert_eq!(message.subject(), subject, "{name}");
                let text = message.body_text(0).unwrap().replace("\r\n", "\n");
                let meant = letter.content.text.clone().unwrap();
                let meant = meant.replace("\r\n", "\n").replace('\r', "\n");
                assert_eq!(text.trim_end(), meant.trim_end(), "{name}");
            }
        }
        assert_eq!(taken[8].recipient, "jürgen@xn--bcher-kva.example");
        world.close(0);
        while server.goodbyes() == 0 {
            world.bell.wait(std::time::Duration::from_millis(5));
        }
    }
}

#[test]
fn eight_bit_is_brought_down_where_it_is_not_taken() {
    let (mut world, server) = joined(Manner::default(), Tls::None, |relay| relay);
    world.ready(0);
    let raw = letters::raw(&letters::nested());
    let became = world.send(0, parcel(&letters::envelope("user@example.org"), &raw));
    assert!(became.reply.is_accepted(), "{:?}", became.reply);
    assert!(server.taken()[0].bytes.is_ascii());
    let idn = world.send(0, simple("jürgen@example.org"));
    assert!(
        matches!(idn.reply, Reply::Said { code: 553, .. }),
        "{:?}",
        idn.reply
    );
    assert!(idn.lives);
    assert_eq!(server.taken().len(), 1);
}

#[test]
fn a_refusal_leaves_the_session_for_the_next_message() {
    for offers in [&ALL[..0], &ALL[..1], &ALL[..]] {
        let manner = Manner {
            refuses: vec![("nobody@example.org", "550 5.1.1 no such user")],
            ..Manner::offering(offers)
        };
        let (mut world, server) = joined(manner, Tls::None, |relay| relay);
        world.ready(0);
        for _ in 0..3 {
            let refused = world.send(0, simple("nobody@example.org"));
            let expected = Reply::said(Stage::Recipient, 550, "5.1.1 no such user");
            assert_eq!((refused.reply, refused.lives), (expected, true));
            assert!(
                world
                    .send(0, simple("user@example.org"))
                    .reply
                    .is_accepted()
            );
        }
        let taken = server.taken();
        assert_eq!(taken.len(), 3);
        assert!(taken.iter().all(|taken| taken.connection == 0));
    }
}

#[test]
fn what_is_too_large_or_unreadable_is_not_sent() {
    let (mut world, server) = joined(Manner::offering(&["SIZE 600"]), Tls::None, |relay| relay);
    world.ready(0);
    let long = letters::content("Long", &"x".repeat(2_000));
    let large = world.send(0, parcel(&letters::envelope("user@example.org"), &long));
    assert!(matches!(large.reply, Reply::Said { code: 552, .. }) && large.lives);
    let gone = world.send(0, unreadable());
    let network = matches!(
        gone.reply,
        Reply::Network {
            stage: Stage::Sender,
            ..
        }
    );
    assert!(network && gone.lives, "{:?}", gone.reply);
    let damaged = world.send(0, damaged());
    assert!(matches!(damaged.reply, Reply::Damaged { .. }) && damaged.lives);
    let injected = letters::envelope("user@example.org>\r\nRSET\r\n");
    let wrong = world.send(0, parcel(&injected, &letters::content("x", "y")));
    assert!(matches!(wrong.reply, Reply::Said { code: 554, .. }) && wrong.lives);
    let nothing = world.send(0, parcel(&Envelope::default(), &Content::default()));
    assert!(matches!(nothing.reply, Reply::Said { code: 554, .. }) && nothing.lives);
    assert!(
        world
            .send(0, simple("user@example.org"))
            .reply
            .is_accepted()
    );
    assert_eq!(server.taken().len(), 1);
}

#[test]
fn tls_is_checked_as_it_was_told() {
    let (acceptor, ca_file) = certificate("localhost");
    let (other, other_file) = certificate("other.example");
    let manner = |tls, is_implicit| Manner {
        tls: Some(tls),
        is_implicit,
        ..Manner::offering(&ALL)
    };
    for (tls, is_implicit) in [(Tls::Starttls, false), (Tls::Implicit, true)] {
        // Known by its own certificate.
        let trusting = |relay| Relay {
            ca_file: Some(ca_file.clone()),
            ..relay
        };
        let (mut world, server) = joined(manner(acceptor.clone(), is_implicit), tls, trusting);
        world.ready(0);
        assert!(
            world
                .send(0, simple("user@example.org"))
                .reply
                .is_accepted()
        );
        assert!(server.taken()[0].is_protected);
        // Signed by nobody we trust.
        world.set(&relay(server.address.port(), tls));
        let stranger = world.refused(1);
        let Reply::Network { stage, text } = &stranger else {
            panic!("{stranger:?}");
        };
        assert!(
            *stage == Stage::Greeting && text.contains("certificate"),
            "{text}"
        );
        // Another's certificate.
        let misled = |relay| Relay {
            ca_file: Some(other_file.clone()),
            ..relay
        };
        let (mut world, server) = joined(manner(other.clone(), is_implicit), tls, misled);
        let wrong = world.refused(0);
        let Reply::Network { text, .. } = &wrong else {
            panic!("{wrong:?}");
        };
        assert!(text.contains("certificate"), "{text}");
        assert!(server.taken().is_empty());
        // Any certificate will do.
        world.set(&Relay {
            insecure: true,
            ..relay(server.address.port(), tls)
        });
        world.ready(1);
        assert!(
            world
                .send(1, simple("user@example.org"))
                .reply
                .is_accepted()
        );
    }
    // Welcome, but not required.
    let (mut world, server) = joined(manner(other, false), Tls::Opportunistic, |relay| relay);
    world.ready(0);
    assert!(
        world
            .send(0, simple("user@example.org"))
            .reply
            .is_accepted()
    );
    assert!(server.taken()[0].is_protected);
    let open = start(&world, Manner::offering(&ALL));
    world.set(&relay(open.address.port(), Tls::Opportunistic));
    world.ready(1);
    assert!(
        world
            .send(1, simple("user@example.org"))
            .reply
            .is_accepted()
    );
    // Required, but not offered.
    world.set(&relay(open.address.port(), Tls::Starttls));
    let refused = world.refused(2);
    assert!(matches!(refused, Reply::Network { text, .. } if text.contains("STARTTLS")));
    for file in [ca_file, other_file] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn it_logs_in_by_every_way() {
    let login = |password: &str| Login {
        user: "tim".to_owned(),
        password: password.to_owned(),
    };
    // PLAIN, LOGIN and CRAM-MD5, as they come over the wire.
    let logins = [
        "AHRpbQB0YW5zdGFhZnRhbnN0YWFm",
        "dGltdGFuc3RhYWZ0YW5zdGFhZg==",
        "dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw",
    ];
    for (offer, insecure) in [
        ("AUTH PLAIN", true),
        ("AUTH LOGIN", true),
        ("AUTH CRAM-MD5", false),
    ] {
        let manner = Manner {
            logins: logins.map(str::to_owned).to_vec(),
            ..Manner::offering(&[offer])
        };
        let with = |password: &'static str| {
            move |relay| Relay {
                login: Some(login(password)),
                insecure,
                ..relay
            }
        };
        let (mut world, server) = joined(manner, Tls::None, with("tanstaaftanstaaf"));
        world.ready(0);
        assert!(
            world
                .send(0, simple("user@example.org"))
                .reply
                .is_accepted()
        );
        world.set(&with("wrong")(relay(server.address.port(), Tls::None)));
        let refused = world.refused(1);
        let wrong = Reply::said(Stage::Auth, 535, "5.7.8 wrong");
        assert_eq!(refused, wrong, "{offer}");
    }
}

#[test]
fn the_source_address_is_the_one_that_was_told() {
    let from = |relay| Relay {
        source_ip: Some([127, 0, 0, 3].into()),
        ..relay
    };
    let (mut world, server) = joined(Manner::default(), Tls::None, from);
    world.ready(0);
    assert!(
        world
            .send(0, simple("user@example.org"))
            .reply
            .is_accepted()
    );
    assert_eq!(server.taken()[0].peer.ip().to_string(), "127.0.0.3");
}

#[test]
fn new_keys_sign_at_once() {
    let (mut world, server) = joined(Manner::offering(&ALL), Tls::None, |relay| relay);
    world.ready(0);
    assert!(
        world
            .send(0, simple("user@example.org"))
            .reply
            .is_accepted()
    );
    let pem = include_bytes!("../../../mail/src/tests/ed25519.pem");
    let mut keys = Keyring::default();
    keys.add(DkimKey::from_pem("example.com", "s", pem).unwrap());
    world.set(&Relay {
        keys: Arc::new(keys),
        ..relay(server.address.port(), Tls::None)
    });
    assert!(
        world
            .send(0, simple("user@example.org"))
            .reply
            .is_accepted()
    );
    let taken = server.taken();
    assert!(!taken[0].bytes.starts_with(b"DKIM-Signature"));
    assert!(taken[1].bytes.starts_with(b"DKIM-Signature"));
    assert_eq!(taken[1].connection, 0);
}

#[test]
fn an_account_without_a_server_opens_nothing() {
    let mut world = World::new();
    let refused = world.refused(0);
    assert!(matches!(
        refused,
        Reply::Network {
            stage: Stage::Connect,
            ..
        }
    ));
    // Nobody listens there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    world.set(&relay(port, Tls::None));
    let refused = world.refused(1);
    assert!(
        matches!(
            refused,
            Reply::Network {
                stage: Stage::Connect,
                ..
            }
        ),
        "{refused:?}"
    );
    world.open(2);
    world.close(2);
    world.open(3);
    let event = world.event();
    let Event::SessionRefused { session, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(
        session,
        crate::world::session(3),
        "what was closed is not answered"
    );
}
