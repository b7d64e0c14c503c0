//! What is wrong with names, addresses and servers, case by case.

use outflow_doctor::Check::{Bounces, Helo, Mx, ReverseDns, Tls};
use outflow_doctor::Status::{Fail, Unknown, Warn};
use outflow_doctor::subject::{Listener, Way};
use outflow_doctor::{Answer, Question, ServerSeen};

use crate::findings::Case;
use crate::world::{address, silence};

fn listener(is_local: bool, certificate: Option<Result<Vec<u8>, String>>) -> Listener {
    Listener {
        part: "smtp".to_owned(),
        address: "0.0.0.0:587".to_owned(),
        is_local,
        certificate,
    }
}

pub const CASES: &[Case] = &[
    // MX
    (
        |w| w.forget(Question::Hosts("example.com".into())),
        Mx,
        Fail,
        "neither MX nor address",
    ),
    (
        |w| {
            w.forget(Question::Hosts("example.com".into()));
            w.addresses("example.com", &["192.0.2.20"]);
        },
        Mx,
        Warn,
        "has no MX",
    ),
    (
        |w| {
            w.forget(Question::Hosts("example.com".into()));
            silence(w, Question::Addresses("example.com".into()));
        },
        Mx,
        Unknown,
        "its address cannot be had",
    ),
    (|w| w.hosts("example.com", &[""]), Mx, Fail, "null MX"),
    (
        |w| w.hosts("example.com", &["gone.example"]),
        Mx,
        Fail,
        "no mail server",
    ),
    (
        |w| w.hosts("example.com", &["gone.example", "mx.example.com"]),
        Mx,
        Warn,
        "gone.example",
    ),
    (
        |w| silence(w, Question::Hosts("example.com".into())),
        Mx,
        Unknown,
        "cannot be had",
    ),
    (
        |w| silence(w, Question::Addresses("mx.example.com".into())),
        Mx,
        Unknown,
        "looked up",
    ),
    // Bounces
    (
        |w| w.subject.bounce_domain = Some("b.example.com".into()),
        Bounces,
        Fail,
        "neither MX",
    ),
    (
        |w| {
            w.subject.bounce_domain = Some("b.example.com".into());
            w.hosts("b.example.com", &["mx.example.com"]);
        },
        Bounces,
        Warn,
        "which is not us",
    ),
    // Names of addresses
    (
        |w| w.forget(Question::Names(address("192.0.2.10"))),
        ReverseDns,
        Fail,
        "has no name",
    ),
    (
        |w| w.names("192.0.2.10", &["wrong.example.com"]),
        ReverseDns,
        Fail,
        "does not lead back",
    ),
    (
        |w| {
            w.names("192.0.2.10", &["192-0-2-10.isp.example"]);
            w.addresses("192-0-2-10.isp.example", &["192.0.2.10"]);
        },
        ReverseDns,
        Warn,
        "name whole networks",
    ),
    (
        |w| {
            w.names("192.0.2.10", &["mail.other.example"]);
            w.addresses("mail.other.example", &["192.0.2.10"]);
        },
        ReverseDns,
        Warn,
        "calls itself mail.example.com",
    ),
    (
        |w| silence(w, Question::Names(address("192.0.2.10"))),
        ReverseDns,
        Unknown,
        "cannot be had",
    ),
    (
        |w| {
            silence(w, Question::Addresses("mail.example.com".into()));
        },
        ReverseDns,
        Unknown,
        "leads back cannot be said",
    ),
    (
        |w| {
            let addresses = Vec::new();
            w.sender().way = Way::Direct {
                addresses,
                port: 25,
            };
        },
        ReverseDns,
        Unknown,
        "is not known",
    ),
    (
        |w| {
            let addresses = vec![address("10.0.0.1")];
            w.sender().way = Way::Direct {
                addresses,
                port: 25,
            };
        },
        ReverseDns,
        Unknown,
        "private address",
    ),
    // What we call ourselves
    (
        |w| w.sender().helo = "localhost".into(),
        Helo,
        Fail,
        "nobody else knows",
    ),
    (
        |w| w.sender().helo = "[192.0.2.10]".into(),
        Helo,
        Warn,
        "no name",
    ),
    (
        |w| w.sender().helo = "gone.example.com".into(),
        Helo,
        Fail,
        "has no address",
    ),
    (
        |w| w.addresses("mail.example.com", &["192.0.2.99"]),
        Helo,
        Warn,
        "another address",
    ),
    (
        |w| silence(w, Question::Addresses("mail.example.com".into())),
        Helo,
        Unknown,
        "looked up",
    ),
    // TLS
    (
        |w| w.server(ServerSeen::default()),
        Tls,
        Warn,
        "does not offer STARTTLS",
    ),
    (
        |w| {
            w.server(ServerSeen {
                offers_tls: true,
                handshake_error: Some("no cipher".into()),
                ..ServerSeen::default()
            })
        },
        Tls,
        Fail,
        "no cipher",
    ),
    (
        |w| {
            w.server(ServerSeen {
                offers_tls: true,
                distrust: Some("unknown issuer".into()),
                ..ServerSeen::default()
            })
        },
        Tls,
        Warn,
        "unknown issuer",
    ),
    (
        |w| {
            let (host, address) = ("mx.example.com".to_owned(), address("192.0.2.20"));
            let question = Question::Server {
                host,
                address,
                port: 25,
            };
            w.tell(question, Answer::Failed("refused".into()));
        },
        Tls,
        Unknown,
        "refused",
    ),
    (
        |w| w.subject.listeners.push(listener(false, None)),
        Tls,
        Warn,
        "others reach it",
    ),
    (
        |w| {
            w.subject
                .listeners
                .push(listener(false, Some(Err("not there".into()))));
        },
        Tls,
        Fail,
        "not there",
    ),
    (
        |w| {
            w.subject
                .listeners
                .push(listener(false, Some(Ok(vec![1, 2]))))
        },
        Tls,
        Fail,
        "be read",
    ),
];
