//! Servers that misbehave: each way ends in one stated outcome.

use std::net::SocketAddr;
use std::time::Duration;

use outflow_core::engine::event::Event;
use outflow_core::reply::{Reply, Stage};
use outflow_transport_smtp::{Relay, Timeouts, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{World, relay, simple};

/// What a server does, step by step.
#[derive(Clone)]
enum Act {
    /// Says this.
    Say(&'static str),
    /// Says this, a byte at a time.
    Drip(&'static str),
    /// Says this again and again, until nobody listens.
    Flood(&'static str),
    /// Waits until it has heard this at the end.
    Hear(&'static str),
    /// Says nothing, and keeps the line open.
    Hang,
    /// Closes the line.
    Close,
}

use Act::{Close, Drip, Flood, Hang, Hear, Say};

async fn act(mut stream: TcpStream, acts: Vec<Act>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut heard = Vec::new();
    for act in acts {
        match act {
            Say(text) => stream.write_all(text.as_bytes()).await.ok()?,
            Drip(text) => {
                for byte in text.as_bytes() {
                    stream.write_all(&[*byte]).await.ok()?;
                    tokio::task::yield_now().await;
                }
            }
            Flood(text) => loop {
                stream.write_all(text.as_bytes()).await.ok()?;
            },
            Hear(end) => {
                while !heard.ends_with(end.as_bytes()) {
                    let mut bytes = [0; 4_096];
                    let count = stream
                        .read(&mut bytes)
                        .await
                        .ok()
                        .filter(|count| *count > 0)?;
                    heard.extend_from_slice(&bytes[..count]);
                }
                heard.clear();
            }
            Hang => std::future::pending().await,
            Close => return None,
        }
    }
    std::future::pending().await
}

async fn stage(acts: Vec<Act>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(act(stream, acts.clone()));
        }
    });
    address
}

/// A world whose server does this.
fn world(acts: &[Act], change: impl Fn(Relay) -> Relay) -> World {
    let world = World::new();
    let address = world.runtime.block_on(stage(acts.to_vec()));
    let relay = relay(address.port(), Tls::None);
    world.set(&change(Relay {
        target: outflow_transport_smtp::Target::Host {
            host: "127.0.0.1".to_owned(),
            port: address.port(),
        },
        ..relay
    }));
    world
}

fn brief(relay: Relay) -> Relay {
    Relay {
        timeouts: Timeouts::all(Duration::from_millis(300)),
        ..relay
    }
}

/// Acts up to a session that is ready, and these.
fn after_hello(offers: &'static str, then: &[Act]) -> Vec<Act> {
    let mut acts = vec![
        Say("220 x\r\n"),
        Hear("EHLO client.example\r\n"),
        Say(offers),
    ];
    acts.extend_from_slice(then);
    acts
}

const PIPELINING: &str = "250-x\r\n250 PIPELINING\r\n";
const BARE: &str = "250 x\r\n";

fn network(reply: &Reply, at: Stage, words: &str) -> bool {
    matches!(reply, Reply::Network { stage, text } if *stage == at && text.contains(words))
}

#[test]
fn a_session_that_cannot_be_opened_says_why() {
    let cases: [(&[Act], &str); 6] = [
        (&[Say("SSH-2.0-OpenSSH_9.6\r\n")], "garbled"),
        (&[Flood("220-and so on\r\n")], "10000 lines"),
        (&[Flood("2200000000000000000000000000")], "1048576 bytes"),
        (&[Drip("220 x\r\n"), Hear("\r\n"), Close], "closed"),
        (&[Close], "closed"),
        (
            &[Say("220 x\r\n"), Hear("\r\n"), Say("250-x\r\n451 y\r\n")],
            "codes 250 and 451",
        ),
    ];
    for (acts, words) in cases {
        let reply = world(acts, |relay| relay).refused(0);
        let reset = network(&reply, Stage::Greeting, "reset");
        assert!(
            network(&reply, Stage::Greeting, words) || reset,
            "{words}: {reply:?}"
        );
    }
}

#[test]
fn silence_ends() {
    let cases: [Vec<Act>; 4] = [
        vec![Hang],
        vec![Say("220 x\r\n"), Hang],
        vec![Say("220-x\r\n"), Hang],
        vec![Say("220 x\r\n"), Hear("\r\n"), Drip("250-x\r\n250"), Hang],
    ];
    for acts in cases {
        let reply = world(&acts, brief).refused(0);
        let at_greeting = network(&reply, Stage::Greeting, "timed out");
        assert!(
            at_greeting || network(&reply, Stage::Connect, "timed out"),
            "{reply:?}"
        );
    }
}

#[test]
fn a_banner_may_come_a_byte_at_a_time() {
    let acts = [
        Drip("220-hello\r\n220 x\r\n"),
        Hear("EHLO client.example\r\n"),
        Drip("250-x\r\n250-PIPELINING\r\n250 SIZE\r\n"),
        Hear("DATA\r\n"),
        Drip("250 2.1.0 Ok\r\n250 2.1.5 Ok\r\n354 go\r\n"),
        Hear("\r\n.\r\n"),
        Drip("250-2.0.0 Ok\r\n250 2.0.0 queued\r\n"),
    ];
    let mut world = world(&acts, |relay| relay);
    world.ready(0);
    let became = world.send(0, simple("user@example.org"));
    assert!(
        became.reply.is_accepted() && became.lives,
        "{:?}",
        became.reply
    );
}

#[test]
fn what_was_put_in_before_tls_is_not_believed() {
    let acts = [
        Say("220 x\r\n"),
        Hear("EHLO client.example\r\n"),
        Say("250-x\r\n250 STARTTLS\r\n"),
        Hear("STARTTLS\r\n"),
        Say("220 go\r\n250-x\r\n250 AUTH PLAIN\r\n"),
    ];
    let starttls = |relay| Relay {
        tls: Tls::Starttls,
        ..relay
    };
    let reply = world(&acts, starttls).refused(0);
    assert!(network(&reply, Stage::Greeting, "TLS"), "{reply:?}");
}

/// What became of a message, and whether the session lived.
fn outcome(acts: &[Act], change: impl Fn(Relay) -> Relay) -> (Reply, bool) {
    let mut world = world(acts, change);
    world.ready(0);
    let became = world.send(0, simple("user@example.org"));
    (became.reply, became.lives)
}

#[test]
fn before_the_last_byte_it_was_not_sent() {
    let until_data: &[Act] = &[Hear("DATA\r\n"), Say("250 Ok\r\n"), Close];
    let at_once: &[Act] = &[Hear("\r\n"), Close];
    let at_data: &[Act] = &[Hear("DATA\r\n"), Say("250 Ok\r\n250 Ok\r\n"), Close];
    for (offers, then, stage) in [
        (PIPELINING, until_data, Stage::Recipient),
        (BARE, at_once, Stage::Sender),
        (PIPELINING, at_data, Stage::Data),
    ] {
        let (reply, lives) = outcome(&after_hello(offers, then), |relay| relay);
        assert!(network(&reply, stage, ""), "{reply:?}");
        assert!(!lives);
    }
    let (reply, lives) = outcome(&after_hello(BARE, &[Hear("\r\n"), Hang]), brief);
    assert!(
        network(&reply, Stage::Sender, "timed out") && !lives,
        "{reply:?}"
    );
}

#[test]
fn after_the_last_byte_nobody_knows() {
    let until_dot = [
        Hear("DATA\r\n"),
        Say("250 Ok\r\n250 Ok\r\n354 go\r\n"),
        Hear("\r\n.\r\n"),
    ];
    for (end, is_brief) in [(Close, false), (Say("what?\r\n"), false), (Hang, true)] {
        let mut then = until_dot.to_vec();
        then.push(end);
        let acts = after_hello(PIPELINING, &then);
        let (reply, lives) = match is_brief {
            true => outcome(&acts, brief),
            false => outcome(&acts, |relay| relay),
        };
        assert_eq!((reply, lives), (Reply::Uncertain, false));
    }
}

#[test]
fn a_long_verdict_counts() {
    let text: String = (0..149).map(|no| format!("250-line {no}\r\n")).collect();
    let verdict: &'static str = Box::leak((text + "250 2.0.0 Ok\r\n").into_boxed_str());
    let then = [
        Hear("DATA\r\n"),
        Say("250 Ok\r\n250 Ok\r\n354 go\r\n"),
        Hear("\r\n.\r\n"),
        Say(verdict),
        Hang,
    ];
    let (reply, lives) = outcome(&after_hello(PIPELINING, &then), |relay| relay);
    assert!(reply.is_accepted() && lives, "{reply:?}");
}

#[test]
fn a_verdict_without_end_counts_by_its_first_line() {
    let until_dot = [
        Hear("DATA\r\n"),
        Say("250 Ok\r\n250 Ok\r\n354 go\r\n"),
        Hear("\r\n.\r\n"),
    ];
    let cases: [(&[Act], u16, bool); 5] = [
        (&[Flood("250-and so on\r\n")], 250, false),
        (&[Flood("550-and so on\r\n")], 550, false),
        (&[Say("250-"), Flood("x")], 250, false),
        (&[Say("250-taken\r\n"), Close], 250, false),
        (&[Say("451-later\r\n"), Hang], 451, true),
    ];
    for (end, expected, is_brief) in cases {
        let acts = after_hello(PIPELINING, &[&until_dot[..], end].concat());
        let (reply, lives) = match is_brief {
            true => outcome(&acts, brief),
            false => outcome(&acts, |relay| relay),
        };
        let is_kept = matches!(
            reply,
            Reply::Said { stage: Stage::Data, code, .. } if code == expected
        );
        assert!(is_kept && !lives, "{expected}: {reply:?}");
    }
}

#[test]
fn goodbye_in_the_middle_ends_the_session() {
    let then = [
        Hear("DATA\r\n"),
        Say("250 Ok\r\n421 4.7.0 too much\r\n"),
        Close,
    ];
    let (reply, lives) = outcome(&after_hello(PIPELINING, &then), |relay| relay);
    let expected = Reply::said(Stage::Recipient, 421, "4.7.0 too much");
    assert_eq!((reply, lives), (expected, false));
}

#[test]
fn a_refusal_while_we_still_write_is_heard() {
    let then = [
        Hear("DATA\r\n"),
        Say("250 Ok\r\n250 Ok\r\n354 go\r\n552 5.3.4 stop it\r\n"),
        Hang,
    ];
    let mut world = world(&after_hello(PIPELINING, &then), |relay| relay);
    world.ready(0);
    let mut large = crate::letters::content("Large", "attached\n");
    let bytes = crate::letters::bytes(8 << 20);
    large.attachments = vec![crate::letters::file("x.bin", "application/x-any", &bytes)];
    let envelope = crate::letters::envelope("user@example.org");
    let became = world.send(0, crate::world::parcel(&envelope, &large));
    let expected = Reply::said(Stage::Data, 552, "5.3.4 stop it");
    assert_eq!((became.reply, became.lives), (expected, false));
}

#[test]
fn a_server_that_hangs_up_on_an_idle_session_is_told_of() {
    for last in [Say("421 4.4.2 idle\r\n"), Close] {
        let mut world = world(&after_hello(BARE, &[last]), |relay| relay);
        world.ready(0);
        let event = world.event();
        assert!(matches!(event, Event::SessionClosed { .. }), "{event:?}");
        let late = world.send(0, simple("user@example.org"));
        assert!(network(&late.reply, Stage::Connect, "closed") && !late.lives);
    }
}
