//! Certificates, made by a library that is not ours.

use outflow_doctor::der::{Certificate, rsa_bits};
use outflow_doctor::subject::Listener;
use outflow_doctor::{Check, ServerSeen, Status};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::world::{World, bad};

fn certificate(names: &[&str], from: (i32, u8, u8), until: (i32, u8, u8)) -> Vec<u8> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = date_time_ymd(from.0, from.1, from.2);
    params.not_after = date_time_ymd(until.0, until.1, until.2);
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().to_vec()
}

#[test]
fn a_certificate_says_how_long_and_for_whom() {
    let names = ["Mail.Example.com", "*.example.org", "192.0.2.1"];
    let der = certificate(&names, (2025, 1, 1), (2055, 3, 1));
    let read = Certificate::parse(&der).unwrap();
    assert_eq!(read.from_s, 1_735_689_600);
    assert_eq!(read.until_s, 2_687_472_000);
    assert_eq!(
        read.names,
        ["mail.example.com", "*.example.org", "192.0.2.1"]
    );
    assert!(read.is_for("mail.example.com") && read.is_for("a.example.org"));
    assert!(!read.is_for("a.b.example.org") && !read.is_for("example.org"));
    // Cut anywhere it is no certificate, or at least no panic.
    for end in 0..der.len() {
        assert_eq!(Certificate::parse(&der[..end]), None);
    }
    assert_eq!(rsa_bits(&der), None);
}

#[test]
fn the_end_of_a_certificate_is_told_in_time() {
    // The world's time is 2026-11-16.
    for (from, until, names, wanted) in [
        ((2026, 1, 1), (2027, 6, 1), "smtp.example.com", None),
        ((2026, 1, 1), (2027, 6, 1), "*.example.com", None),
        (
            (2026, 1, 1),
            (2026, 11, 20),
            "smtp.example.com",
            Some((Status::Warn, "ends in 3 days")),
        ),
        (
            (2025, 1, 1),
            (2026, 11, 1),
            "smtp.example.com",
            Some((Status::Fail, "ended 15 days")),
        ),
        (
            (2027, 1, 1),
            (2028, 1, 1),
            "smtp.example.com",
            Some((Status::Fail, "not hold yet")),
        ),
        (
            (2026, 1, 1),
            (2027, 6, 1),
            "smtp.other.org",
            Some((Status::Warn, "not for a name")),
        ),
    ] {
        let mut world = World::good();
        world.subject.listeners.push(Listener {
            part: "smtp".to_owned(),
            address: "0.0.0.0:587".to_owned(),
            is_local: false,
            certificate: Some(Ok(certificate(&[names], from, until))),
        });
        let findings = world.judge();
        let bad = bad(&findings, Check::Tls);
        match wanted {
            None => assert_eq!(bad, []),
            Some((status, words)) => {
                assert!(
                    bad[0].0 == status && bad[0].1.contains(words),
                    "{words}: {bad:?}"
                );
            }
        }
    }
}

#[test]
fn the_certificate_of_a_mail_server_is_looked_at_too() {
    let mut world = World::good();
    world.server(ServerSeen {
        offers_tls: true,
        certificate: Some(certificate(&["mx.example.com"], (2025, 1, 1), (2026, 1, 1))),
        ..ServerSeen::default()
    });
    let findings = world.judge();
    let bad = bad(&findings, Check::Tls);
    assert!(
        bad[0].1.contains("the certificate of mx.example.com ended"),
        "{bad:?}"
    );
}
