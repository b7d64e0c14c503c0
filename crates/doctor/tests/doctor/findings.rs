//! Each finding, by what brings it about.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use outflow_doctor::subject::{Key, Sender, Way};
use outflow_doctor::{Check, Question, Status};

use crate::records::{dmarc, key, spf};
use crate::world::{KEY, World, address, bad};
use crate::{hosts, records, settings};

use Check::{Bounces, Dkim, Dmarc, Helo, Limits, Mx, ReverseDns, Spf, TenDlc, Tls, WarmUp as Warm};

pub const KEY_NAME: &str = "s1._domainkey.example.com";

/// What is changed, and what then must be found: one finding of this check, of
/// this status, with these words.
pub type Case = (Change, Check, Status, &'static str);

/// What a test changes.
pub type Change = fn(&mut World);

#[test]
fn nothing_is_found_where_all_is_well() {
    let findings = World::good().judge();
    for finding in &findings {
        let is_note = finding.check == Check::Unsubscribe;
        assert!(is_note || finding.status == Status::Ok, "{finding:?}");
    }
    for check in [
        Spf, Dkim, Dmarc, Mx, ReverseDns, Helo, Tls, Limits, Warm, TenDlc,
    ] {
        assert!(
            findings.iter().any(|finding| finding.check == check),
            "{check:?}"
        );
    }
}

#[test]
fn every_fault_is_found_and_something_is_to_be_done() {
    let cases = [records::CASES, hosts::CASES, settings::CASES].concat();
    for (no, (change, check, status, words)) in cases.iter().enumerate() {
        let mut world = World::good();
        change(&mut world);
        let findings = world.judge();
        let bad = bad(&findings, *check);
        let found = |(own, what): &(Status, &str)| own == status && what.contains(words);
        assert!(bad.iter().any(found), "case {no}, {words:?}: {bad:?}");
        for finding in &findings {
            let is_good = finding.status == Status::Ok;
            assert_eq!(is_good, finding.action.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn records_to_publish_mend_what_they_are_for() {
    let cases: &[(Change, Check)] = &[
        (|w| w.texts("example.com", &[]), Spf),
        (|w| spf(w, "v=spf1 ip4:198.51.100.1 -all"), Spf),
        (|w| spf(w, "v=spf1 ip4:192.0.2.10"), Spf),
        (|w| key(w, "v=DKIM1; p="), Dkim),
        (|w| w.forget(Question::Texts(KEY_NAME.into())), Dkim),
        (
            |w| w.forget(Question::Names(address("192.0.2.10"))),
            ReverseDns,
        ),
        (
            |w| dmarc(w, "v=DMARC1; p=none; rua=mailto:d@example.com"),
            Dmarc,
        ),
    ];
    for (no, (change, check)) in cases.iter().enumerate() {
        let mut world = World::good();
        change(&mut world);
        let findings = world.judge();
        let mut records = findings.iter().filter(|finding| finding.check == *check);
        let record = records.find_map(|finding| finding.record.clone());
        let record = record.unwrap_or_else(|| panic!("case {no}: {findings:?}"));
        match record.kind {
            "TXT" => world.texts(&record.name, &[&record.value]),
            "PTR" => {
                assert_eq!(record.name, "10.2.0.192.in-addr.arpa");
                world.names("192.0.2.10", &[&record.value]);
            }
            other => panic!("case {no}: {other}"),
        }
        let findings = world.judge();
        assert_eq!(bad(&findings, *check), [], "case {no}: {record:?}");
    }
}

#[test]
fn addresses_are_found_by_every_mechanism() {
    for record in [
        "v=spf1 a:mail.example.com -all",
        "v=spf1 mx -all",
        "v=spf1 a:mail.example.com/24 -all",
        "v=spf1 include:_spf.example.net -all",
        "v=spf1 redirect=_spf.example.net",
        "v=spf1 +ip4:192.0.2.10 -all",
    ] {
        let mut world = World::good();
        spf(&mut world, record);
        world.hosts("example.com", &["mail.example.com"]);
        world.texts("_spf.example.net", &["v=spf1 ip4:192.0.2.8/29 ~all"]);
        assert_eq!(bad(&world.judge(), Spf), [], "{record}");
    }
    // An include matches only by a pass, and -ip4 is none.
    for record in [
        "v=spf1 include:_spf.example.net ~all",
        "v=spf1 -ip4:192.0.2.10 +ip4:192.0.2.0/24 ~all",
    ] {
        let mut world = World::good();
        spf(&mut world, record);
        world.texts("_spf.example.net", &["v=spf1 ip4:198.51.100.1 ~all"]);
        assert_eq!(bad(&world.judge(), Spf).len(), 1, "{record}");
    }
}

/// The record of a domain is its own or its owner's, never one between or above.
#[test]
fn a_dmarc_record_is_looked_for_where_receivers_look() {
    let strict = ["v=DMARC1; p=reject; rua=mailto:d@example.com"];
    for (domain, place, is_found) in [
        ("a.b.example.com", "example.com", true),
        ("a.b.example.com", "b.example.com", false),
        ("foo.gov.uk", "gov.uk", false),
        ("foo.gov.uk", "foo.gov.uk", true),
        ("mail.foo.gov.uk", "foo.gov.uk", true),
    ] {
        let mut world = World::good();
        world.forget(Question::Texts("_dmarc.example.com".into()));
        world.subject.domain = domain.to_owned();
        world.texts(&format!("_dmarc.{place}"), &strict);
        let findings = world.judge();
        let bad = bad(&findings, Dmarc);
        let is_missing = bad.iter().any(|(_, what)| what.contains("has no DMARC"));
        assert_eq!(!is_missing, is_found, "{domain}, {place}: {bad:?}");
    }
}

/// Padding that was lost, another wrapping: the numbers count.
#[test]
fn a_key_is_known_by_its_numbers() {
    let whole = KEY.trim();
    let der = BASE64_STANDARD.decode(whole).unwrap();
    // What says that it is RSA takes 24 bytes before the key itself.
    let bare = BASE64_STANDARD.encode(&der[24..]);
    for published in [whole.trim_end_matches('='), &bare] {
        let mut world = World::good();
        key(&mut world, &format!("v=DKIM1; k=rsa; p={published}"));
        assert_eq!(bad(&world.judge(), Dkim), [], "{published}");
    }
    let mut world = World::good();
    world.key().record = Ok(format!("v=DKIM1; k=rsa; p={bare}"));
    assert_eq!(bad(&world.judge(), Dkim), []);
}

/// Nobody is told to publish an address that receivers never see.
#[test]
fn addresses_of_private_networks_are_not_published() {
    for own in ["10.0.0.1", "100.64.3.4", "fd00::1"] {
        let mut world = World::good();
        let addresses = vec![address(own)];
        world.sender().way = Way::Direct {
            addresses,
            port: 25,
        };
        world.texts("example.com", &[]);
        world.forget(Question::Addresses("mail.example.com".into()));
        let findings = world.judge();
        assert!(!bad(&findings, Spf).is_empty() && !bad(&findings, Helo).is_empty());
        for finding in &findings {
            let record = finding.record.as_ref().map(|it| it.value.as_str());
            let record = record.unwrap_or_default();
            assert!(!record.contains(own), "{finding:?}");
            assert_ne!(record, "v=spf1 ~all", "it would doubt everybody");
        }
        spf(&mut world, "v=spf1 ip4:192.0.2.0/24 -all");
        let findings = world.judge();
        let bad = bad(&findings, Spf);
        let unknown = |(status, what): &(Status, &str)| {
            *status == Status::Unknown && what.contains("lets direct send cannot be said")
        };
        assert!(bad.iter().all(unknown) && bad.len() == 1, "{own}: {bad:?}");
    }
}

#[test]
fn what_belongs_together_is_aligned() {
    let mut world = World::good();
    world.subject.domain = "news.example.com".to_owned();
    world.texts("news.example.com", &["v=spf1 ip4:192.0.2.10 -all"]);
    world.hosts("news.example.com", &["mx.example.com"]);
    // The record above holds, and the key above vouches.
    let findings = world.judge();
    assert_eq!(bad(&findings, Dmarc), []);
    assert_eq!(bad(&findings, Dkim), []);
    world.texts(
        "_dmarc.example.com",
        &["v=DMARC1; p=reject; sp=none; rua=mailto:d@example.com"],
    );
    let findings = world.judge();
    let bad = bad(&findings, Dmarc);
    assert!(
        bad.iter().any(|(_, what)| what.contains("is none")),
        "{bad:?}"
    );
}

#[test]
fn bounces_that_come_to_us_are_well() {
    let mut world = World::good();
    world.subject.bounce_domain = Some("bounce.example.com".to_owned());
    world.texts("bounce.example.com", &["v=spf1 ip4:192.0.2.10 -all"]);
    world.hosts("bounce.example.com", &["mail.example.com"]);
    let findings = world.judge();
    for check in [Spf, Dmarc, Bounces] {
        assert_eq!(bad(&findings, check), [], "{check:?}");
    }
}

#[test]
fn a_tighter_policy_keeps_the_rest_of_the_record() {
    let mut world = World::good();
    dmarc(
        &mut world,
        "v=DMARC1;p=none; adkim=s ; rua=mailto:d@example.com",
    );
    let findings = world.judge();
    let mut records = findings
        .iter()
        .filter_map(|finding| finding.record.as_ref());
    let value = records.next().map(|record| record.value.as_str());
    let wanted = "v=DMARC1; p=quarantine; adkim=s; rua=mailto:d@example.com";
    assert_eq!(value, Some(wanted));
}

#[test]
fn reports_may_go_to_who_agrees() {
    let mut world = World::good();
    dmarc(
        &mut world,
        "v=DMARC1; p=reject; rua=mailto:d@reports.example",
    );
    world.texts("example.com._report._dmarc.reports.example", &["v=DMARC1"]);
    assert_eq!(bad(&world.judge(), Dmarc), []);
}

#[test]
fn each_key_is_looked_at_once() {
    let mut world = World::good();
    let twin = Sender {
        account: "second".to_owned(),
        key: Some(Key {
            selector: "S1".to_owned(),
            ..world.key().clone()
        }),
        ..world.sender().clone()
    };
    world.subject.senders.push(twin);
    let findings = world.judge();
    let keys = findings.iter().filter(|finding| finding.check == Dkim);
    assert_eq!(keys.count(), 1);
}
