//! Each finding, by what brings it about.

use outflow_doctor::subject::{Figures, Key, Listener, Pace, Plan, Sender, Texter, WarmUp, Way};
use outflow_doctor::{Answer, Check, Question, ServerSeen, Status};

use crate::world::{KEY, KEY_512, KEY_1024, World, address, bad};

use Check::{Bounces, Dkim, Dmarc, Helo, Limits, Mx, ReverseDns, Spf, TenDlc, Tls, WarmUp as Warm};
use Status::{Fail, Unknown, Warn};

const KEY_NAME: &str = "s1._domainkey.example.com";

/// What is changed, and what then must be found: one finding of this check, of
/// this status, with these words.
type Case = (fn(&mut World), Check, Status, &'static str);

fn spf(world: &mut World, record: &str) {
    world.texts("example.com", &[record]);
}

fn relay(world: &mut World, host: &str) {
    let host = host.to_owned();
    world.sender().way = Way::Relay { host };
}

fn key(world: &mut World, record: &str) {
    world.texts(KEY_NAME, &[record]);
}

fn dmarc(world: &mut World, record: &str) {
    world.texts("_dmarc.example.com", &[record]);
}

fn silence(world: &mut World, question: Question) {
    world.silent.push(question);
}

fn pace(world: &mut World, per_day: Option<u64>, connections: Option<u32>) {
    world.subject.paces = vec![Pace {
        provider: "google".to_owned(),
        account: "direct".to_owned(),
        ours: Figures {
            per_day,
            rate: per_day.map(|_| "50/s".to_owned()),
            connections,
        },
        known: Figures {
            per_day: Some(172_800),
            rate: Some("2/s".to_owned()),
            connections: Some(5),
        },
        has_traffic: Some(true),
    }];
}

const CASES: &[Case] = &[
    // SPF
    (|w| w.texts("example.com", &[]), Spf, Fail, "has no SPF record"),
    (|w| w.texts("example.com", &["v=spf1 -all", "v=spf1 ~all"]), Spf, Fail, "2 SPF records"),
    (|w| spf(w, "v=spf1 ip4:192.0.2 -all"), Spf, Fail, "cannot be read"),
    (|w| spf(w, "v=spf1 ip4:198.51.100.1 -all"), Spf, Fail, "refuses it"),
    (|w| spf(w, "v=spf1 ip4:198.51.100.1 ~all"), Spf, Fail, "doubts it"),
    (|w| spf(w, "v=spf1 +all"), Spf, Fail, "lets everybody send"),
    (|w| spf(w, "v=spf1 ip4:192.0.2.10 ?all"), Spf, Warn, "?all"),
    (|w| spf(w, "v=spf1 ip4:192.0.2.10"), Spf, Warn, "becomes of strangers"),
    (|w| spf(w, "v=spf1 ip4:192.0.2.10 ptr -all"), Spf, Warn, "uses ptr"),
    (|w| spf(w, "v=spf1 ip4:192.0.2.10 include:gone.example -all"), Spf, Fail, "gone.example"),
    (|w| spf(w, "v=spf1 ip4:192.0.2.10 include:example.com -all"), Spf, Fail, "includes itself"),
    (|w| {
        spf(w, "v=spf1 ip4:192.0.2.10 a:a.example a:b.example a:c.example -all");
    }, Spf, Fail, "find nothing"),
    (|w| {
        spf(w, "v=spf1 include:many.example ip4:192.0.2.10 -all");
        let many = (0..10).map(|no| format!("a:mail{no}.example")).collect::<Vec<_>>();
        w.texts("many.example", &[&format!("v=spf1 {} -all", many.join(" "))]);
        (0..10).for_each(|no| w.addresses(&format!("mail{no}.example"), &["198.51.100.1"]));
    }, Spf, Fail, "takes 11 lookups"),
    (|w| {
        let many = (0..9).map(|_| "a").collect::<Vec<_>>();
        spf(w, &format!("v=spf1 {} ip4:192.0.2.10 -all", many.join(" ")));
        w.addresses("example.com", &["192.0.2.10"]);
    }, Spf, Warn, "9 of 10 lookups"),
    (|w| silence(w, Question::Texts("example.com".into())), Spf, Unknown, "cannot be had"),
    (|w| spf(w, "v=spf1 exists:%{i}.example.net -all"), Spf, Unknown, "depends on the mail"),
    (|w| relay(w, "smtp.sendgrid.net"), Spf, Warn, "does not include sendgrid.net"),
    (|w| relay(w, "smtp.next-door.example"), Spf, Unknown, "not known here"),
    // DKIM
    (|w| w.forget(Question::Texts(KEY_NAME.into())), Dkim, Fail, "has no key record"),
    (|w| w.texts(KEY_NAME, &["v=DKIM1; p=a", "v=DKIM1; p=b"]), Dkim, Fail, "has 2 records"),
    (|w| key(w, "v=DKIM1; p="), Dkim, Fail, "revoked"),
    (|w| key(w, "v=DKIM1; k=rsa"), Dkim, Fail, "p= is missing"),
    (|w| key(w, "v=DKIM1; nonsense"), Dkim, Fail, "has no \"=\""),
    (|w| key(w, "v=DKIM1; p=!!!"), Dkim, Fail, "not base64"),
    (|w| key(w, "v=DKIM1; p=AAAA"), Dkim, Fail, "no RSA key"),
    (|w| key(w, &format!("v=DKIM1; p={KEY_512}")), Dkim, Fail, "512 bits"),
    (|w| key(w, &format!("v=DKIM1; p={KEY_1024}")), Dkim, Warn, "1024 bits"),
    (|w| key(w, &format!("v=DKIM1; p={KEY_1024}")), Dkim, Fail, "not the one we sign with"),
    (|w| key(w, "v=DKIM1; k=ed25519; p=AAAA"), Dkim, Fail, "not the one we sign with"),
    (|w| key(w, &format!("v=DKIM2; p={KEY}")), Dkim, Fail, "does not begin with v=DKIM1"),
    (|w| key(w, &format!("v=DKIM1; h=sha1; p={KEY}")), Dkim, Fail, "SHA-256"),
    (|w| key(w, &format!("v=DKIM1; s=other; p={KEY}")), Dkim, Fail, "not for mail"),
    (|w| key(w, &format!("v=DKIM1; t=y:s; p={KEY}")), Dkim, Warn, "t=y"),
    (|w| silence(w, Question::Texts(KEY_NAME.into())), Dkim, Unknown, "cannot be had"),
    (|w| w.key().record = Err("no PEM".into()), Dkim, Fail, "cannot be read: no PEM"),
    (|w| w.key().domain = "other.example".into(), Dkim, Fail, "does not vouch"),
    (|w| {
        let mut other = w.subject.senders[0].clone();
        other.key.as_mut().unwrap().domain = "other.example".into();
        w.subject.senders.push(other);
    }, Dkim, Warn, "does not vouch"),
    (|w| w.sender().key = None, Dkim, Fail, "does not sign"),
    (|w| {
        w.sender().key = None;
        relay(w, "smtp.sendgrid.net");
    }, Dkim, Warn, "does not sign"),
    (|w| w.subject.senders.clear(), Dkim, Unknown, "no account sends mail"),
    // DMARC
    (|w| w.texts("_dmarc.example.com", &[]), Dmarc, Fail, "has no DMARC record"),
    (|w| w.texts("_dmarc.example.com", &["v=DMARC1; p=none", "v=DMARC1"]), Dmarc, Fail, "2 DMARC"),
    (|w| dmarc(w, "v=DMARC1; p=none; rua=mailto:d@example.com"), Dmarc, Warn, "is none"),
    (|w| dmarc(w, "v=DMARC1; rua=mailto:d@example.com"), Dmarc, Fail, "no policy"),
    (|w| dmarc(w, "v=DMARC1; p=maybe; rua=mailto:d@example.com"), Dmarc, Fail, "\"maybe\""),
    (|w| dmarc(w, "v=DMARC1; p=reject; p=none"), Dmarc, Fail, "twice"),
    (|w| dmarc(w, "v=DMARC1; p=reject"), Dmarc, Warn, "no reports"),
    (|w| dmarc(w, "v=DMARC1; p=reject; rua=https://x"), Dmarc, Warn, "cannot be sent"),
    (|w| dmarc(w, "v=DMARC1; p=reject; rua=mailto:d@o.example!10m"), Dmarc, Warn, "not agree"),
    (|w| w.sender().key = None, Dmarc, Warn, "return path alone"),
    (|w| w.subject.bounce_domain = Some("b.example".into()), Dmarc, Warn, "signature alone"),
    (|w| {
        w.subject.bounce_domain = Some("b.example".into());
        w.sender().key = None;
    }, Dmarc, Fail, "neither signature nor return path"),
    (|w| {
        w.subject.bounce_domain = Some("b.example.com".into());
        w.key().domain = "k.example.com".into();
        dmarc(w, "v=DMARC1; p=reject; adkim=s; aspf=s; rua=mailto:d@example.com");
    }, Dmarc, Fail, "exactly the same domain"),
    (|w| {
        w.sender().key = None;
        relay(w, "smtp.sendgrid.net");
    }, Dmarc, Unknown, "depends on its provider"),
    (|w| silence(w, Question::Texts("_dmarc.example.com".into())), Dmarc, Unknown, "cannot be had"),
    // MX
    (|w| w.forget(Question::Hosts("example.com".into())), Mx, Fail, "neither MX nor address"),
    (|w| {
        w.forget(Question::Hosts("example.com".into()));
        w.addresses("example.com", &["192.0.2.20"]);
    }, Mx, Warn, "has no MX"),
    (|w| {
        w.forget(Question::Hosts("example.com".into()));
        silence(w, Question::Addresses("example.com".into()));
    }, Mx, Unknown, "its address cannot be had"),
    (|w| w.hosts("example.com", &[""]), Mx, Fail, "null MX"),
    (|w| w.hosts("example.com", &["gone.example"]), Mx, Fail, "no mail server"),
    (|w| w.hosts("example.com", &["gone.example", "mx.example.com"]), Mx, Warn, "gone.example"),
    (|w| silence(w, Question::Hosts("example.com".into())), Mx, Unknown, "cannot be had"),
    (|w| silence(w, Question::Addresses("mx.example.com".into())), Mx, Unknown, "looked up"),
    // Bounces
    (|w| w.subject.bounce_domain = Some("b.example.com".into()), Bounces, Fail, "neither MX"),
    (|w| {
        w.subject.bounce_domain = Some("b.example.com".into());
        w.hosts("b.example.com", &["mx.example.com"]);
    }, Bounces, Warn, "which is not us"),
    // Names of addresses
    (|w| w.forget(Question::Names(address("192.0.2.10"))), ReverseDns, Fail, "has no name"),
    (|w| w.names("192.0.2.10", &["wrong.example.com"]), ReverseDns, Fail, "does not lead back"),
    (|w| {
        w.names("192.0.2.10", &["192-0-2-10.isp.example"]);
        w.addresses("192-0-2-10.isp.example", &["192.0.2.10"]);
    }, ReverseDns, Warn, "name whole networks"),
    (|w| {
        w.names("192.0.2.10", &["mail.other.example"]);
        w.addresses("mail.other.example", &["192.0.2.10"]);
    }, ReverseDns, Warn, "calls itself mail.example.com"),
    (|w| silence(w, Question::Names(address("192.0.2.10"))), ReverseDns, Unknown, "cannot be had"),
    (|w| {
        silence(w, Question::Addresses("mail.example.com".into()));
    }, ReverseDns, Unknown, "leads back cannot be said"),
    (|w| {
        let addresses = Vec::new();
        w.sender().way = Way::Direct { addresses, port: 25 };
    }, ReverseDns, Unknown, "is not known"),
    (|w| {
        let addresses = vec![address("10.0.0.1")];
        w.sender().way = Way::Direct { addresses, port: 25 };
    }, ReverseDns, Unknown, "private address"),
    // What we call ourselves
    (|w| w.sender().helo = "localhost".into(), Helo, Fail, "nobody else knows"),
    (|w| w.sender().helo = "[192.0.2.10]".into(), Helo, Warn, "no name"),
    (|w| w.sender().helo = "gone.example.com".into(), Helo, Fail, "has no address"),
    (|w| w.addresses("mail.example.com", &["192.0.2.99"]), Helo, Warn, "another address"),
    (|w| silence(w, Question::Addresses("mail.example.com".into())), Helo, Unknown, "looked up"),
    // TLS
    (|w| w.server(ServerSeen::default()), Tls, Warn, "does not offer STARTTLS"),
    (|w| w.server(ServerSeen {
        offers_tls: true,
        handshake_error: Some("no cipher".into()),
        ..ServerSeen::default()
    }), Tls, Fail, "no cipher"),
    (|w| w.server(ServerSeen {
        offers_tls: true,
        distrust: Some("unknown issuer".into()),
        ..ServerSeen::default()
    }), Tls, Warn, "unknown issuer"),
    (|w| {
        let (host, address) = ("mx.example.com".to_owned(), address("192.0.2.20"));
        let question = Question::Server { host, address, port: 25 };
        w.tell(question, Answer::Failed("refused".into()));
    }, Tls, Unknown, "refused"),
    (|w| w.subject.listeners.push(listener(false, None)), Tls, Warn, "others reach it"),
    (|w| {
        w.subject.listeners.push(listener(false, Some(Err("not there".into()))));
    }, Tls, Fail, "not there"),
    (|w| w.subject.listeners.push(listener(false, Some(Ok(vec![1, 2])))), Tls, Fail, "be read"),
    // Limits
    (|w| pace(w, Some(4_320_000), Some(5)), Limits, Warn, "may send 50/s to google"),
    (|w| pace(w, None, Some(5)), Limits, Warn, "no rate for google"),
    (|w| pace(w, Some(1), Some(50)), Limits, Warn, "50 connections"),
    (|w| pace(w, Some(1), None), Limits, Warn, "any number of connections"),
    // Warm-up
    (|w| w.subject.warm_up = WarmUp::default(), Warm, Unknown, "no server was asked"),
    (|w| w.subject.warm_up = WarmUp::Plans(Vec::new()), Warm, Warn, "no address is warming up"),
    (|w| {
        w.subject.warm_up = WarmUp::Plans(vec![Plan {
            about: "192.0.2.10".into(),
            state: "held on day 3".into(),
            is_held: true,
        }]);
    }, Warm, Warn, "held on day 3"),
    // Texts to the US
    (|w| w.subject.texters.push(Texter { account: "sms".into(), brand: None }), TenDlc, Warn, "sms"),
];

fn listener(is_local: bool, certificate: Option<Result<Vec<u8>, String>>) -> Listener {
    Listener {
        part: "smtp".to_owned(),
        address: "0.0.0.0:587".to_owned(),
        is_local,
        certificate,
    }
}

#[test]
fn nothing_is_found_where_all_is_well() {
    let findings = World::good().judge();
    for finding in &findings {
        let is_note = finding.check == Check::Unsubscribe;
        assert!(is_note || finding.status == Status::Ok, "{finding:?}");
    }
    for check in [Spf, Dkim, Dmarc, Mx, ReverseDns, Helo, Tls, Limits, Warm, TenDlc] {
        assert!(findings.iter().any(|finding| finding.check == check), "{check:?}");
    }
}

#[test]
fn every_fault_is_found_and_something_is_to_be_done() {
    for (no, (change, check, status, words)) in CASES.iter().enumerate() {
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
    let cases: &[(fn(&mut World), Check)] = &[
        (|w| w.texts("example.com", &[]), Spf),
        (|w| spf(w, "v=spf1 ip4:198.51.100.1 -all"), Spf),
        (|w| spf(w, "v=spf1 ip4:192.0.2.10"), Spf),
        (|w| key(w, "v=DKIM1; p="), Dkim),
        (|w| w.forget(Question::Texts(KEY_NAME.into())), Dkim),
        (|w| w.forget(Question::Names(address("192.0.2.10"))), ReverseDns),
        (|w| dmarc(w, "v=DMARC1; p=none; rua=mailto:d@example.com"), Dmarc),
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
        "v=spf1 exists:mail.example.com -all",
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
    world.texts("_dmarc.example.com", &["v=DMARC1; p=reject; sp=none; rua=mailto:d@example.com"]);
    let findings = world.judge();
    let bad = bad(&findings, Dmarc);
    assert!(bad.iter().any(|(_, what)| what.contains("is none")), "{bad:?}");
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
fn reports_may_go_to_who_agrees() {
    let mut world = World::good();
    dmarc(&mut world, "v=DMARC1; p=reject; rua=mailto:d@reports.example");
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
