//! What plain clients meet.

use std::time::Duration;

use outflow_core::class::Class;
use outflow_core::engine::admission::{FlowCap, FlowField, TooManyFlows};
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::time::Wall;
use outflow_intake_smtp::{Happened, Pass};
use outflow_mail::{Can, Mail, compose};
use outflow_ports::intake::{Refused, Submission};
use outflow_ports::letter::{Content, Envelope};

use crate::clients::{Client, base64};
use crate::world::World;

const FROM: &str = "From: Ann <ann@example.com>\r\n";

/// As a transport would send it.
pub fn mail(submission: &Submission) -> Mail {
    let envelope = Envelope::from_bytes(&submission.envelope).unwrap();
    let content = Content::from_bytes(&submission.body).unwrap();
    compose(&envelope, &content, Can { eight_bit: true }).unwrap()
}

#[test]
fn one_message_for_each_recipient_when_it_is_durable() {
    let world = World::new(|_| {});
    let mut client = Client::with(&world, "token");
    world.memory.hold();
    client.begin(&["b@example.net", "c@Example.ORG", "b@example.net"]);
    client.say(&format!(
        "{FROM}Bcc: d@example.net\r\n\r\nHello\r\n.\r\nNOOP\r\n"
    ));
    while world.memory.holding() == 0 {
        std::thread::yield_now();
    }
    let peer = client.try_hear();
    assert_eq!(peer, None, "an answer before it was durable");
    world.memory.let_go();
    let reply = client.hear();
    let id = reply
        .strip_prefix("250 2.0.0 Ok: queued as ")
        .unwrap()
        .trim();
    let id: MessageId = id.parse().unwrap();
    assert_eq!(client.hear(), "250 2.0.0 Ok\r\n");
    let batches = world.memory.batches();
    let [first, second] = &batches[0][..] else {
        panic!("{batches:?}");
    };
    assert_eq!(id.seq().0, 0);
    assert!(std::sync::Arc::ptr_eq(&first.body, &second.body));
    assert_eq!(first.key.destination.name.as_str(), "example.net");
    assert_eq!(second.key.destination.name.as_str(), "example.org");
    assert_eq!(first.key.tenant.as_str(), "default");
    assert_eq!(first.key.class, Class::Normal);
    assert_eq!(first.key.sender_domain, Some(Name::from("example.com")));
    assert_eq!((first.not_before, first.expires_at), (None, Wall::NEVER));
    assert_ne!(first.recipient, second.recipient);
    let mail = mail(second);
    assert_eq!(mail.sender.unwrap().as_str(), "bounces@example.com");
    assert_eq!(mail.recipient.as_str(), "c@example.org");
    let text = String::from_utf8(mail.bytes).unwrap();
    assert!(
        text.contains("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"),
        "{text}"
    );
    assert!(
        text.contains("Message-ID: <18bcfe56800.0000000000000007.0@example.com>"),
        "{text}"
    );
    assert!(
        text.starts_with("Received: by mail.example.com with ESMTPA;\r\n"),
        "{text}"
    );
    assert!(
        !text.contains("Bcc") && text.ends_with("\r\n\r\nHello\r\n"),
        "{text}"
    );
}

#[test]
fn the_header_says_how_it_goes() {
    let world = World::new(|_| {});
    let mut client = Client::with(&world, "token");
    let marks = "X-Outflow-Tenant: acme\r\nX-Outflow-Class: critical\r\nx-outflow-campaign: =?utf-8?q?Fr=C3=BChling?=\r\n\
         X-Outflow-Pool: fast\r\nX-Outflow-Not-Before: 2023-11-15T00:00:00Z\r\n\
         X-Outflow-Expires-At:\r\n 2023-11-16T00:00:00Z\r\nX-Outflow-Idempotency-Key: order 1\r\n";
    let reply = client.send(
        &["b@example.net", "c@example.net"],
        &format!("{marks}{FROM}"),
    );
    assert_eq!(reply[..3], *"250", "{reply}");
    let one = client.send(
        &["b@example.net"],
        "From: b@x.example\r\nX-Outflow-Idempotency-Key: k\r\n",
    );
    assert_eq!(one[..3], *"250", "{one}");
    let batches = world.memory.batches();
    let [first, second] = &batches[0][..] else {
        panic!("{batches:?}");
    };
    assert_eq!(first.key.tenant.as_str(), "acme");
    assert_eq!(first.key.class, Class::Critical);
    assert_eq!(first.key.campaign, Some(Name::from("Frühling")));
    assert_eq!(first.key.pool.as_str(), "fast");
    assert_eq!(first.not_before, Some(Wall(1_700_006_400_000_000_000)));
    assert_eq!(first.expires_at, Wall(1_700_092_800_000_000_000));
    assert_eq!(
        first.idempotency_key.as_deref(),
        Some("acme\u{1f}order 1\u{1f}r0")
    );
    assert_eq!(
        second.idempotency_key.as_deref(),
        Some("acme\u{1f}order 1\u{1f}r1")
    );
    assert_eq!(
        batches[1][0].idempotency_key.as_deref(),
        Some("default\u{1f}k")
    );
    let text = String::from_utf8(mail(first).bytes).unwrap().to_lowercase();
    assert!(!text.contains("x-outflow"), "{text}");
    let wrong = [
        ("X-Outflow-Class: urgent\r\n", "unknown class"),
        ("X-Outflow-Clas: high\r\n", "has no field"),
        ("X-Outflow-Class: high\r\nX-OUTFLOW-CLASS: low\r\n", "twice"),
        ("X-Outflow-Not-Before: tomorrow\r\n", "is no time"),
        (
            "X-Outflow-Not-Before: 2026-11-15T00:00:00Z\r\n",
            "within a year",
        ),
        (
            "X-Outflow-Expires-At: 2023-11-01T00:00:00Z\r\n",
            "later than now",
        ),
        ("X-Outflow-Tenant:\r\n", "empty"),
        ("From: x@example.com\r\n", "one From field"),
    ];
    for (field, why) in wrong {
        let reply = client.send(&["b@example.net"], &format!("{FROM}{field}"));
        assert!(
            reply.starts_with("554 5.6.0") && reply.contains(why),
            "{field}: {reply}"
        );
    }
    assert_eq!(world.memory.batches().len(), 2);
}

#[test]
fn a_token_opens_what_it_says_and_no_more() {
    let world = World::new(|_| {});
    let pass = Pass {
        name: "shop".to_owned(),
        party: "shop".to_owned(),
        tenant: Some(Name::from("shop")),
        classes: vec![Class::Normal, Class::Low],
        pools: vec!["default".to_owned()],
        from_domains: vec!["shop.example".to_owned()],
    };
    world.token("narrow", pass);
    let mut client = Client::with(&world, "narrow");
    let from = "From: a@SHOP.example\r\n";
    let good = client.send(
        &["b@example.net"],
        &format!("{from}X-Outflow-Tenant: other\r\n"),
    );
    assert_eq!(good[..3], *"250", "{good}");
    assert_eq!(world.memory.batches()[0][0].key.tenant.as_str(), "shop");
    let refused = [
        format!("{from}X-Outflow-Class: critical\r\n"),
        format!("{from}X-Outflow-Pool: fast\r\n"),
        "From: a@other.example\r\n".to_owned(),
        "From: a@shop.example, b@other.example\r\n".to_owned(),
        format!("{from}Sender: b@other.example\r\n"),
        format!("{from}Resent-From: b@other.example\r\n"),
        // The sender of the envelope would be the author.
        "Subject: x\r\n".to_owned(),
    ];
    for header in refused {
        let reply = client.send(&["b@example.net"], &header);
        assert!(reply.starts_with("550 5.7.1"), "{header}: {reply}");
    }
    assert_eq!(world.memory.batches().len(), 1);
    // Withdrawn in the middle of a session.
    world.tokens.0.lock().unwrap().remove("narrow");
    let reply = client.send(&["b@example.net"], from);
    assert!(reply.starts_with("530 5.7.0"), "{reply}");
    let again = client.ask("MAIL FROM:<a@shop.example>\r\n");
    assert!(again.starts_with("530 5.7.0"), "{again}");
    assert_eq!(world.memory.batches().len(), 1);
}

#[test]
fn refusals_of_the_node_are_told() {
    let world = World::new(|settings| settings.busy = Duration::from_secs(3_600));
    let mut client = Client::with(&world, "token");
    world.memory.refuse(Some(Refused::NotStored));
    assert!(
        client
            .send(&["b@example.net"], FROM)
            .starts_with("451 4.3.0")
    );
    world.memory.refuse(Some(Refused::Busy));
    assert!(
        client
            .send(&["b@example.net"], FROM)
            .starts_with("452 4.3.1")
    );
    // Before the data of the next one, here and elsewhere.
    let mut other = Client::with(&world, "token");
    let early = other.ask("MAIL FROM:<a@example.com>\r\n");
    assert!(early.starts_with("452 4.3.1"), "{early}");
    let world = World::new(|_| {});
    let mut client = Client::with(&world, "token");
    world.memory.refuse(Some(Refused::Closing));
    assert!(
        client
            .send(&["b@example.net"], FROM)
            .starts_with("421 4.3.2")
    );
    assert_eq!(client.hear(), "");
    assert!(world.memory.batches().is_empty());
}

#[test]
fn too_many_values_are_told_and_the_session_goes_on() {
    let world = World::new(|_| {});
    let mut client = Client::with(&world, "token");
    assert!(client.send(&["b@example.net"], FROM).starts_with("250"));
    world.memory.crowd(TooManyFlows {
        cap: FlowCap::Tenant(7),
        field: FlowField::RecipientDomain,
    });
    for to in [&["b@example.net"][..], &["b@example.net", "c@example.org"]] {
        let reply = client.send(to, FROM);
        assert!(reply.starts_with("452 4.3.1"), "{reply}");
        assert!(reply.contains("recipient domains"), "{reply}");
    }
    assert_eq!(world.memory.whole(), [2], "one answer for two recipients");
    assert_eq!(world.memory.batches().len(), 1);
    assert!(client.ask("NOOP\r\n").starts_with("250"));
}

#[test]
fn connections_are_bounded_in_number() {
    let world = World::new(|settings| settings.connections_per_address_max = 2);
    let (first, greeting) = Client::connect(&world);
    assert!(greeting.starts_with("220 mail.example.com"));
    let second = Client::connect(&world);
    let (_, refused) = Client::connect(&world);
    assert!(refused.starts_with("421 4.7.0"), "{refused}");
    drop((first, second));
    while !Client::connect(&world).1.starts_with("220") {
        std::thread::yield_now();
    }
}

#[test]
fn connections_are_bounded_in_time() {
    let world = World::new(|settings| settings.idle = Duration::from_millis(50));
    let (mut idle, _) = Client::connect(&world);
    assert!(idle.hear().starts_with("421 4.4.2"));
    assert_eq!(idle.hear(), "");
    // A byte now and then is not enough.
    let world = World::new(|settings| settings.data = Duration::from_millis(50));
    let mut slow = Client::with(&world, "token");
    slow.begin(&["b@example.net"]);
    while slow.try_hear().is_none() {
        slow.say("x");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(slow.hear().starts_with("421 4.4.2"));
    assert!(world.memory.batches().is_empty());
}

#[test]
fn memory_is_bounded() {
    let world = World::new(|settings| {
        settings.rules.message_bytes_max = 1 << 20;
        settings.held_bytes_max = 64 << 10;
    });
    let mut large = Client::with(&world, "token");
    large.begin(&["b@example.net"]);
    large.say(&format!(
        "{FROM}\r\n{}",
        "0123456789abcdef\r\n".repeat(5_000)
    ));
    let mut other = Client::with(&world, "token");
    // As soon as the bytes have come, others are told to wait.
    while other
        .ask("MAIL FROM:<a@example.com>\r\n")
        .starts_with("250")
    {
        other.ask("RSET\r\n");
    }
    large.say(&"0123456789abcdef\r\n".repeat(20_000));
    assert!(large.ask(".\r\n").starts_with("452 4.3.1"));
    while !other
        .ask("MAIL FROM:<a@example.com>\r\n")
        .starts_with("250")
    {
        other = Client::with(&world, "token");
    }
    assert!(world.memory.batches().is_empty());
}

#[test]
fn shutdown_lets_messages_finish() {
    let mut world = World::new(|_| {});
    let mut busy = Client::with(&world, "token");
    let mut idle = Client::with(&world, "token");
    busy.begin(&["b@example.net"]);
    busy.say(FROM);
    world.shut_down();
    assert!(idle.hear().starts_with("421 4.3.2"));
    assert!(busy.ask("\r\nHello\r\n.\r\n").starts_with("250 2.0.0"));
    assert!(busy.hear().starts_with("421 4.3.2"));
    assert_eq!(world.memory.batches().len(), 1);
    drop((busy, idle));
    world.wait();
}

#[test]
fn shutdown_does_not_wait_for_ever() {
    let mut world = World::new(|settings| settings.grace = Duration::from_millis(50));
    let mut stuck = Client::with(&world, "token");
    stuck.begin(&["b@example.net"]);
    world.shut_down();
    world.wait();
    assert_eq!(stuck.hear(), "");
}

#[test]
fn everything_that_happens_at_the_door_is_told() {
    let mut world = World::new(|_| {});
    let (mut client, _) = Client::connect(&world);
    let wrong = base64(b"\0user\0wrong");
    client.ask("EHLO client.example\r\n");
    assert!(
        client
            .ask(&format!("AUTH PLAIN {wrong}\r\n"))
            .starts_with("535")
    );
    assert!(
        client
            .ask("MAIL FROM:<ann@example.com>\r\n")
            .starts_with("530")
    );
    let right = base64(b"\0user\0token");
    assert!(
        client
            .ask(&format!("AUTH PLAIN {right}\r\n"))
            .starts_with("235")
    );
    client.send(&["b@example.net", "c@example.net"], FROM);
    world.memory.refuse(Some(Refused::Busy));
    assert!(client.send(&["b@example.net"], FROM).starts_with("452"));
    assert!(client.ask("QUIT\r\n").starts_with("221"));
    drop(client);
    let seen = std::sync::Arc::clone(&world.seen);
    world.shut_down();
    world.wait();
    let refused = |code, status| Happened::Refused { code, status };
    assert_eq!(
        *seen.0.lock().unwrap(),
        [
            Happened::Connected,
            Happened::LoginRefused,
            refused(535, "5.7.8"),
            refused(530, "5.7.0"),
            Happened::LoggedIn,
            Happened::Taken { recipients: 2 },
            refused(452, "4.3.1"),
            Happened::Left,
        ]
    );
}
