//! What is wrong with records that vouch for mail, case by case.

use outflow_doctor::Check::{Dkim, Dmarc, Spf};
use outflow_doctor::Question;
use outflow_doctor::Status::{Fail, Unknown, Warn};
use outflow_doctor::subject::Way;

use crate::findings::{Case, KEY_NAME};
use crate::world::{KEY, KEY_512, KEY_1024, World, silence};

pub fn spf(world: &mut World, record: &str) {
    world.texts("example.com", &[record]);
}

fn relay(world: &mut World, host: &str) {
    let host = host.to_owned();
    world.sender().way = Way::Relay { host };
}

pub fn key(world: &mut World, record: &str) {
    world.texts(KEY_NAME, &[record]);
}

pub fn dmarc(world: &mut World, record: &str) {
    world.texts("_dmarc.example.com", &[record]);
}

pub const CASES: &[Case] = &[
    // SPF
    (
        |w| w.texts("example.com", &[]),
        Spf,
        Fail,
        "has no SPF record",
    ),
    (
        |w| w.texts("example.com", &["v=spf1 -all", "v=spf1 ~all"]),
        Spf,
        Fail,
        "2 SPF records",
    ),
    (
        |w| spf(w, "v=spf1 ip4:192.0.2 -all"),
        Spf,
        Fail,
        "cannot be read",
    ),
    (
        |w| spf(w, "v=spf1 ip4:198.51.100.1 -all"),
        Spf,
        Fail,
        "refuses it",
    ),
    (
        |w| spf(w, "v=spf1 ip4:198.51.100.1 ~all"),
        Spf,
        Fail,
        "doubts it",
    ),
    (|w| spf(w, "v=spf1 +all"), Spf, Fail, "lets everybody send"),
    (
        |w| {
            spf(w, "v=spf1 ip4:192.0.2.10 include:open.example -all");
            w.texts("open.example", &["v=spf1 +all"]);
        },
        Spf,
        Fail,
        "lets everybody send",
    ),
    (
        |w| {
            spf(w, "v=spf1 redirect=open.example");
            w.texts("open.example", &["v=spf1 +all"]);
        },
        Spf,
        Fail,
        "lets everybody send",
    ),
    (
        |w| spf(w, "v=spf1 ip4:0.0.0.0/0 -all"),
        Spf,
        Fail,
        "lets everybody send",
    ),
    (
        |w| spf(w, "v=spf1 ip4:192.0.2.10 ip6:::/0 -all"),
        Spf,
        Fail,
        "lets everybody send",
    ),
    (
        // Without a macro it holds for whoever asks.
        |w| spf(w, "v=spf1 exists:mail.example.com -all"),
        Spf,
        Fail,
        "lets everybody send",
    ),
    (
        |w| {
            spf(w, "v=spf1 redirect=open.example");
            w.texts("open.example", &["v=spf1 ip4:192.0.2.10 ?all"]);
        },
        Spf,
        Warn,
        "?all",
    ),
    (
        |w| {
            spf(w, "v=spf1 redirect=open.example");
            w.texts("open.example", &["v=spf1 ip4:192.0.2.10"]);
        },
        Spf,
        Warn,
        "becomes of strangers",
    ),
    (|w| spf(w, "v=spf1 ip4:192.0.2.10 ?all"), Spf, Warn, "?all"),
    (
        |w| spf(w, "v=spf1 ip4:192.0.2.10"),
        Spf,
        Warn,
        "becomes of strangers",
    ),
    (
        |w| spf(w, "v=spf1 ip4:192.0.2.10 ptr -all"),
        Spf,
        Warn,
        "uses ptr",
    ),
    (
        |w| spf(w, "v=spf1 ip4:192.0.2.10 include:gone.example -all"),
        Spf,
        Fail,
        "gone.example",
    ),
    (
        |w| spf(w, "v=spf1 ip4:192.0.2.10 include:example.com -all"),
        Spf,
        Fail,
        "includes itself",
    ),
    (
        |w| {
            spf(
                w,
                "v=spf1 ip4:192.0.2.10 a:a.example a:b.example a:c.example -all",
            );
        },
        Spf,
        Fail,
        "find nothing",
    ),
    (
        |w| {
            spf(w, "v=spf1 include:many.example ip4:192.0.2.10 -all");
            let many = (0..10)
                .map(|no| format!("a:mail{no}.example"))
                .collect::<Vec<_>>();
            w.texts(
                "many.example",
                &[&format!("v=spf1 {} -all", many.join(" "))],
            );
            (0..10).for_each(|no| w.addresses(&format!("mail{no}.example"), &["198.51.100.1"]));
        },
        Spf,
        Fail,
        "takes 11 lookups",
    ),
    (
        |w| {
            let many = (0..9).map(|_| "a").collect::<Vec<_>>();
            spf(w, &format!("v=spf1 {} ip4:192.0.2.10 -all", many.join(" ")));
            w.addresses("example.com", &["192.0.2.10"]);
        },
        Spf,
        Warn,
        "9 of 10 lookups",
    ),
    (
        |w| silence(w, Question::Texts("example.com".into())),
        Spf,
        Unknown,
        "cannot be had",
    ),
    (
        |w| spf(w, "v=spf1 exists:%{i}.example.net -all"),
        Spf,
        Unknown,
        "depends on the mail",
    ),
    (
        |w| relay(w, "smtp.sendgrid.net"),
        Spf,
        Warn,
        "does not include sendgrid.net",
    ),
    (
        |w| relay(w, "smtp.next-door.example"),
        Spf,
        Unknown,
        "not known here",
    ),
    // DKIM
    (
        |w| w.forget(Question::Texts(KEY_NAME.into())),
        Dkim,
        Fail,
        "has no key record",
    ),
    (
        |w| w.texts(KEY_NAME, &["v=DKIM1; p=a", "v=DKIM1; p=b"]),
        Dkim,
        Fail,
        "has 2 records",
    ),
    (|w| key(w, "v=DKIM1; p="), Dkim, Fail, "revoked"),
    (|w| key(w, "v=DKIM1; k=rsa"), Dkim, Fail, "p= is missing"),
    (|w| key(w, "v=DKIM1; nonsense"), Dkim, Fail, "has no \"=\""),
    (|w| key(w, "v=DKIM1; p=!!!"), Dkim, Fail, "not base64"),
    (|w| key(w, "v=DKIM1; p=AAAA"), Dkim, Fail, "no RSA key"),
    (
        |w| key(w, &format!("v=DKIM1; p={KEY_512}")),
        Dkim,
        Fail,
        "512 bits",
    ),
    (
        |w| key(w, &format!("v=DKIM1; p={KEY_1024}")),
        Dkim,
        Warn,
        "1024 bits",
    ),
    (
        |w| key(w, &format!("v=DKIM1; p={KEY_1024}")),
        Dkim,
        Fail,
        "not the one we sign with",
    ),
    (
        |w| key(w, "v=DKIM1; k=ed25519; p=AAAA"),
        Dkim,
        Fail,
        "not the one we sign with",
    ),
    (
        |w| key(w, &format!("v=DKIM2; p={KEY}")),
        Dkim,
        Fail,
        "does not begin with v=DKIM1",
    ),
    (
        |w| key(w, &format!("v=DKIM1; h=sha1; p={KEY}")),
        Dkim,
        Fail,
        "SHA-256",
    ),
    (
        |w| key(w, &format!("v=DKIM1; s=other; p={KEY}")),
        Dkim,
        Fail,
        "not for mail",
    ),
    (
        |w| key(w, &format!("v=DKIM1; t=y:s; p={KEY}")),
        Dkim,
        Warn,
        "t=y",
    ),
    (
        |w| silence(w, Question::Texts(KEY_NAME.into())),
        Dkim,
        Unknown,
        "cannot be had",
    ),
    (
        |w| w.key().record = Err("no PEM".into()),
        Dkim,
        Fail,
        "cannot be read: no PEM",
    ),
    (
        |w| w.key().domain = "other.example".into(),
        Dkim,
        Fail,
        "does not vouch",
    ),
    (
        |w| {
            let mut other = w.subject.senders[0].clone();
            other.key.as_mut().unwrap().domain = "other.example".into();
            w.subject.senders.push(other);
        },
        Dkim,
        Warn,
        "does not vouch",
    ),
    (|w| w.sender().key = None, Dkim, Fail, "does not sign"),
    (
        |w| {
            w.sender().key = None;
            relay(w, "smtp.sendgrid.net");
        },
        Dkim,
        Warn,
        "does not sign",
    ),
    (
        |w| w.subject.senders.clear(),
        Dkim,
        Unknown,
        "no account sends mail",
    ),
    // DMARC
    (
        |w| w.texts("_dmarc.example.com", &[]),
        Dmarc,
        Fail,
        "has no DMARC record",
    ),
    (
        |w| w.texts("_dmarc.example.com", &["v=DMARC1; p=none", "v=DMARC1"]),
        Dmarc,
        Fail,
        "2 DMARC",
    ),
    (
        |w| dmarc(w, "v=DMARC1; p=none; rua=mailto:d@example.com"),
        Dmarc,
        Warn,
        "is none",
    ),
    (
        |w| dmarc(w, "v=DMARC1; rua=mailto:d@example.com"),
        Dmarc,
        Fail,
        "no policy",
    ),
    (
        |w| dmarc(w, "v=DMARC1; p=maybe; rua=mailto:d@example.com"),
        Dmarc,
        Fail,
        "\"maybe\"",
    ),
    (
        |w| dmarc(w, "v=DMARC1; p=reject; p=none"),
        Dmarc,
        Fail,
        "twice",
    ),
    (
        |w| dmarc(w, "v=DMARC1; p=reject"),
        Dmarc,
        Warn,
        "no reports",
    ),
    (
        |w| dmarc(w, "v=DMARC1; p=reject; rua=https://x"),
        Dmarc,
        Warn,
        "cannot be sent",
    ),
    (
        |w| dmarc(w, "v=DMARC1; p=reject; rua=mailto:d@o.example!10m"),
        Dmarc,
        Warn,
        "not agree",
    ),
    (|w| w.sender().key = None, Dmarc, Warn, "return path alone"),
    (
        |w| w.subject.bounce_domain = Some("b.example".into()),
        Dmarc,
        Warn,
        "signature alone",
    ),
    (
        |w| {
            w.subject.bounce_domain = Some("b.example".into());
            w.sender().key = None;
        },
        Dmarc,
        Fail,
        "neither signature nor return path",
    ),
    (
        |w| {
            w.subject.bounce_domain = Some("b.example.com".into());
            w.key().domain = "k.example.com".into();
            dmarc(
                w,
                "v=DMARC1; p=reject; adkim=s; aspf=s; rua=mailto:d@example.com",
            );
        },
        Dmarc,
        Fail,
        "exactly the same domain",
    ),
    (
        |w| {
            w.sender().key = None;
            relay(w, "smtp.sendgrid.net");
        },
        Dmarc,
        Unknown,
        "depends on its provider",
    ),
    (
        |w| silence(w, Question::Texts("_dmarc.example.com".into())),
        Dmarc,
        Unknown,
        "cannot be had",
    ),
];
