//! Messages that an older version stored, or nobody should have: they are set
//! aside with their cause, and the server goes on, across restarts.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outflow_core::destination::Destination;
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::Recipient;
use outflow_core::message_id::MessageId;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};
use outflow_store_embedded::{EmbeddedStore, Settings};
use serde_json::json;

use crate::process::{PATIENCE, Place, show, submit, wait_state};
use crate::sink::Sink;

fn now(begun: Instant) -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Now {
        mono: Mono(u64::try_from(begun.elapsed().as_nanos()).unwrap()),
        wall: Wall(i64::try_from(since.as_nanos()).unwrap()),
        entropy: Entropy::default(),
    }
}

/// Stores messages with these envelopes and bodies, as they are: their ids.
fn store(data: &Path, messages: &[(String, String)]) -> Vec<String> {
    let begun = Instant::now();
    let (wakes, woken) = channel();
    let wake = Arc::new(move || {
        // Whoever has heard enough is gone.
        let _ = wakes.send(());
    });
    let (mut store, _) = EmbeddedStore::open(data, Settings::default(), wake).unwrap();
    store.recover(&now(begun));
    let flow = FlowId(0);
    let key = Arc::new(FlowKey::to(Destination::isp("example.org")));
    store.submit(&now(begun), StoreWork::OpenFlow { flow, key });
    let messages = messages
        .iter()
        .zip(1..)
        .map(|((envelope, body), no)| NewMessage {
            flow,
            idempotency_key: None,
            not_before: None,
            expires_at: now(begun).wall + Nanos::from_secs(86_400),
            recipient: Recipient(no),
            cost: 1,
            envelope: envelope.as_bytes().into(),
            body: body.as_bytes().into(),
        });
    let (batch, messages) = (BatchId(1), messages.collect());
    store.submit(&now(begun), StoreWork::Accept { batch, messages });
    let mut done = Vec::new();
    loop {
        store.complete(&now(begun), &mut done);
        for it in done.drain(..) {
            if let StoreDone::Accepted { given, .. } = it {
                let ids = given.iter();
                let ids = ids.map(|it| MessageId::new(it.accepted_at, it.seq).to_string());
                return ids.collect();
            }
        }
        woken.recv_timeout(PATIENCE).expect("it is stored");
    }
}

fn whole(mail: &str) -> (String, String) {
    let envelope = json!({ "to": "b@example.org", "from": "a@shop.example" });
    let body = json!({ "raw": STANDARD.encode(mail) });
    (envelope.to_string(), body.to_string())
}

#[test]
fn stored_messages_that_cannot_be_handled_are_set_aside() {
    let place = Place::new("stored");
    let sink = Sink::start();
    place.configure(&format!(
        "[[account]]\nid = \"a\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n",
        sink.address.port()
    ));
    place.start().stop();
    let messages = "Content-Type: message/rfc822\r\n\r\n".repeat(60_000);
    let multiparts: String = (0..20_000)
        .map(|no| format!("Content-Type: multipart/mixed; boundary=b{no}\r\n\r\n--b{no}\r\n"))
        .collect();
    let deep_json = format!("{{\"text\":{}1{}}}", "[".repeat(60_000), "]".repeat(60_000));
    let envelope = whole("").0;
    let bad = [
        (
            whole(&format!("From: a@shop.example\r\n{messages}")),
            "nested",
        ),
        (
            whole(&format!("From: a@shop.example\r\n{multiparts}")),
            "nested",
        ),
        ((envelope.clone(), deep_json), "cannot be read"),
        ((envelope.clone(), "\u{0}".to_owned()), "cannot be read"),
        (
            ("no envelope".to_owned(), "{}".to_owned()),
            "cannot be read",
        ),
        ((envelope, "{\"raw\":\"no base64\"}".to_owned()), "base64"),
    ];
    let (bad, causes): (Vec<_>, Vec<_>) = bad.into_iter().unzip();
    let ids = store(&place.data(), &bad);
    let server = place.start();
    let mut client = server.client();
    for (id, cause) in ids.iter().zip(&causes) {
        let ended = wait_state(&mut client, id, "bounced");
        assert!(ended.to_string().contains(cause), "{cause}: {ended}");
    }
    // Others go out beside them, and so they do after a restart.
    let good = submit(&mut client, json!({ "to": "c@example.org" }));
    wait_state(&mut client, &good, "delivered");
    server.kill();
    let server = place.start();
    let mut client = server.client();
    for id in &ids {
        assert_eq!(show(&mut client, id)["state"], "bounced");
    }
    let good = submit(&mut client, json!({ "to": "d@example.org" }));
    wait_state(&mut client, &good, "delivered");
    assert_eq!(sink.count(), 2);
    server.stop();
}
