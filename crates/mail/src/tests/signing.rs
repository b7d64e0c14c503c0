//! Signatures hold, and what they cover cannot be changed.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

use mail_auth::common::parse::TxtRecordParser;
use mail_auth::common::verify::DomainKey;
use mail_auth::hickory_resolver::config::{ResolverConfig, ResolverOpts};
use mail_auth::{
    AuthenticatedMessage, DkimResult, MessageAuthenticator, Parameters, ResolverCache, Txt,
};

use super::letters::letters;
use crate::compose::{Can, compose};
use crate::dkim::{DkimKey, Keyring};

const RSA: &[u8] = include_bytes!("rsa.pem");
const ED25519: &[u8] = include_bytes!("ed25519.pem");
const SEVEN: Can = Can { eight_bit: false };

/// DNS that knows two keys.
struct Known(HashMap<Box<str>, Txt>);

impl ResolverCache<Box<str>, Txt> for Known {
    fn get<Q>(&self, name: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.0.get(name).cloned()
    }

    fn remove<Q>(&self, _: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        None
    }

    fn insert(&self, _: Box<str>, _: Txt, _: Instant) {}
}

fn ring() -> (Keyring, Known) {
    let (mut ring, mut known) = (Keyring::default(), HashMap::new());
    for (selector, pem) in [("rsa", RSA), ("ed", ED25519)] {
        let key = DkimKey::from_pem("example.com", selector, pem).unwrap();
        let record = DomainKey::parse(key.record().as_bytes()).unwrap();
        let name = format!("{selector}._domainkey.example.com.");
        known.insert(name.into_boxed_str(), Txt::DomainKey(Arc::new(record)));
        ring.add(key);
    }
    (ring, Known(known))
}

/// Whether each signature of a mail holds.
fn verified(bytes: &[u8], known: &Known) -> Vec<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let resolver =
            MessageAuthenticator::new(ResolverConfig::default(), ResolverOpts::default()).unwrap();
        let message = AuthenticatedMessage::parse(bytes).unwrap();
        let asked = Parameters::new(&message).with_txt_cache(known);
        let results = resolver.verify_dkim(asked).await;
        let holds = |result: &DkimResult| *result == DkimResult::Pass;
        results.iter().map(|it| holds(it.result())).collect()
    })
}

#[test]
fn every_letter_is_signed_twice_and_both_hold() {
    let (ring, known) = ring();
    for letter in letters() {
        let mut mail = compose(&letter.envelope, &letter.content, SEVEN).unwrap();
        ring.sign(&mut mail).unwrap();
        assert_eq!(
            verified(&mail.bytes, &known),
            [true, true],
            "{}",
            letter.name
        );
        assert!(
            mail.bytes
                .split(|byte| *byte == b'\n')
                .all(|line| line.len() < 998)
        );
    }
}

#[test]
fn what_a_reader_sees_cannot_be_changed() {
    let (ring, known) = ring();
    let letters = letters();
    let letter = letters.iter().find(|it| it.name == "30 headers").unwrap();
    let mut mail = compose(&letter.envelope, &letter.content, SEVEN).unwrap();
    ring.sign(&mut mail).unwrap();
    let text = String::from_utf8(mail.bytes).unwrap();
    for field in [
        "From: other@example.com",
        "Subject: another",
        "To: other@example.org",
        "Cc: other@example.org",
        "Reply-To: other@example.org",
        "Content-Type: text/html",
        "List-Unsubscribe: <https://example.net>",
    ] {
        let added = format!("{field}\r\n{text}");
        assert_eq!(
            verified(added.as_bytes(), &known),
            [false, false],
            "{field}"
        );
    }
    let body = text.replace("see header", "see footer");
    assert_eq!(verified(body.as_bytes(), &known), [false, false]);
    let traced = format!("Received: from a by b\r\n{text}");
    assert_eq!(verified(traced.as_bytes(), &known), [true, true]);
}

#[test]
fn the_nearest_domain_above_signs() {
    let mut ring = Keyring::default();
    for (domain, pem) in [("example.com", RSA), ("news.example.com", ED25519)] {
        ring.add(DkimKey::from_pem(domain, "s", pem).unwrap());
    }
    let signs = |author: &str| -> Vec<String> {
        ring.keys(author)
            .map(|key| key.domain().to_owned())
            .collect()
    };
    assert_eq!(signs("example.com"), ["example.com"]);
    assert_eq!(signs("a.news.example.com"), ["news.example.com"]);
    assert_eq!(signs("shop.example.com"), ["example.com"]);
    assert!(signs("example.net").is_empty());
    assert!(signs("com").is_empty());
    ring.add_for_all(DkimKey::from_pem("esp.example", "s", ED25519).unwrap());
    assert_eq!(ring.keys("example.net").count(), 1);
}

#[test]
fn a_field_that_a_relay_replaces_can_be_left_out() {
    let (_, known) = ring();
    let mut ring = Keyring::default();
    let key = DkimKey::from_pem("example.com", "rsa", RSA).unwrap();
    ring.add(key.without(&["Message-ID", "Date"]));
    let letter = &letters()[0];
    let mut mail = compose(&letter.envelope, &letter.content, SEVEN).unwrap();
    ring.sign(&mut mail).unwrap();
    let text = String::from_utf8(mail.bytes).unwrap();
    let replaced = text.replace("<1.2.3@example.com>", "<other@relay.example>");
    assert_ne!(text, replaced);
    assert_eq!(verified(replaced.as_bytes(), &known), [true]);
}

/// As `openssl rsa -pubout` writes it.
#[test]
fn the_record_is_what_receivers_expect() {
    let key = DkimKey::from_pem("example.com", "s", RSA).unwrap();
    let record = key.record();
    let public = include_str!("rsa.pub");
    let expected: String = public
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    assert_eq!(record, format!("v=DKIM1; k=rsa; p={expected}"));
}

#[test]
fn a_bad_key_says_what_is_wrong() {
    let none = DkimKey::from_pem("example.com", "s", b"hello").unwrap_err();
    assert!(none.to_string().contains("openssl genrsa"), "{none}");
    let missing = DkimKey::from_file("example.com", "s", "/nowhere/dkim.pem".as_ref());
    assert!(
        missing
            .unwrap_err()
            .to_string()
            .contains("/nowhere/dkim.pem")
    );
    assert!(DkimKey::from_pem("bad domain", "s", RSA).is_err());
}
