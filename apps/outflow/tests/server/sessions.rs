//! Where connections belong: those to a relay carry mail for any domain, those
//! to a mail exchanger give way to another as soon as they have nothing to do.
//!
//! Idle connections are kept for an hour, so that whoever waits for one to be
//! closed for that reason waits in vain.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::dns::DnsServer;
use crate::process::{Place, message, wait_for};
use crate::sink::{Manner, Sink};

const KEPT: &str = "idle_timeout = \"1h\"\nmax_messages_per_connection = 100000\n";

/// A name server that knows so many domains, each with a server of its own.
fn name_server(domains: usize) -> DnsServer {
    let dns = DnsServer::start();
    for no in 0..domains {
        let host = format!("mx.d{no}.example");
        dns.mx(&format!("d{no}.example"), 300, &[(10, &host)]);
        dns.addresses(&host, 300, &["127.0.0.1"]);
    }
    dns
}

fn relay(sink: &Sink, more: &str) -> String {
    let port = sink.address.port();
    format!(
        "[[account]]\nid = \"relay\"\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"none\"\n\
         helo = \"client.example\"\n{KEPT}{more}"
    )
}

fn direct(sink: &Sink, more: &str) -> String {
    let port = sink.address.port();
    format!(
        "[[account]]\nid = \"direct\"\ntransport = \"mx\"\nport = {port}\n\
         helo = \"client.example\"\n{KEPT}{more}"
    )
}

fn configure(place: &Place, dns: &DnsServer, account: &str) {
    let servers = dns.address;
    place.configure(&format!(
        "[dns]\nservers = [\"{servers}\"]\nallowed_networks = [\"127.0.0.0/8\"]\n{account}"
    ));
}

fn submit(client: &mut Client, recipients: impl IntoIterator<Item = String>) {
    let messages: Vec<Value> = recipients
        .into_iter()
        .map(|to| message(json!({ "to": to })))
        .collect();
    let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
    assert_eq!(answer.unwrap().status, 202);
}

#[test]
fn a_relay_carries_mail_for_a_hundred_domains_over_eight_connections() {
    let manner = Manner {
        data: Duration::from_millis(5),
        ..Manner::default()
    };
    let (place, dns, sink) = (Place::new("relay"), name_server(100), Sink::with(manner));
    configure(&place, &dns, &relay(&sink, ""));
    let server = place.start();
    let mut client = server.client();
    let recipients = (0..300).map(|no| format!("u{no}@d{}.example", no % 100));
    submit(&mut client, recipients);
    wait_for("all came", || (sink.count() == 300).then_some(()));
    let connections = sink.seen().connections;
    assert!(connections.in_all <= 8, "{connections:?}");
    server.stop();
}

#[test]
fn one_connection_to_a_relay_carries_mail_for_two_domains() {
    let (place, dns, sink) = (Place::new("one"), name_server(2), Sink::start());
    configure(&place, &dns, &relay(&sink, "max_connections = 1\n"));
    let server = place.start();
    let mut client = server.client();
    for no in 0..6 {
        submit(&mut client, [format!("u{no}@d{}.example", no % 2)]);
        wait_for("it came", || (sink.count() == no + 1).then_some(()));
    }
    let connections = sink.seen().connections;
    assert_eq!((connections.in_all, connections.most), (1, 1));
    server.stop();
}

#[test]
fn one_connection_to_mail_exchangers_serves_two_in_turn() {
    let (place, dns, sink) = (Place::new("turns"), name_server(2), Sink::start());
    configure(&place, &dns, &direct(&sink, "max_connections = 1\n"));
    let server = place.start();
    let mut client = server.client();
    for no in 0..6 {
        submit(&mut client, [format!("u{no}@d{}.example", no % 2)]);
        wait_for("it came", || (sink.count() == no + 1).then_some(()));
    }
    let connections = sink.seen().connections;
    assert_eq!((connections.in_all, connections.most), (6, 1));
    server.stop();
}

#[test]
fn ten_connections_serve_a_hundred_mail_exchangers() {
    let manner = Manner {
        data: Duration::from_millis(5),
        ..Manner::default()
    };
    let (place, dns, sink) = (Place::new("hosts"), name_server(100), Sink::with(manner));
    configure(&place, &dns, &direct(&sink, "max_connections = 10\n"));
    let server = place.start();
    let mut client = server.client();
    let recipients = (0..300).map(|no| format!("u{no}@d{}.example", no % 100));
    submit(&mut client, recipients);
    wait_for("all came", || (sink.count() == 300).then_some(()));
    let connections = sink.seen().connections;
    assert!(connections.most <= 10, "{connections:?}");
    assert!((100..=300).contains(&connections.in_all), "{connections:?}");
    server.stop();
}
