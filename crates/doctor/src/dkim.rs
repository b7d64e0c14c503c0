//! DKIM: whether what we sign can be verified (RFC 6376, RFC 8301, RFC 8463).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::der;
use crate::finding::{Check, Finding, Findings, Record};
use crate::known::Known;
use crate::names::{are_kin, normal};
use crate::subject::{Key, Subject, Way};
use crate::tags::Tags;

/// Verifiers refuse shorter RSA keys.
const BITS_MIN: u32 = 1_024;
/// And think little of those below this.
const BITS_GOOD: u32 = 2_048;

pub(crate) fn judge(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Dkim);
    who_signs(subject, &mut findings);
    let mut seen = BTreeSet::new();
    for key in subject
        .senders
        .iter()
        .filter_map(|sender| sender.key.as_ref())
    {
        let is_ours = are_kin(&normal(&key.domain), &subject.domain);
        if is_ours && seen.insert((normal(&key.domain), normal(&key.selector))) {
            record(key, known, &mut findings);
        }
    }
    findings.all
}

/// Accounts that do not sign for the domain.
fn who_signs(subject: &Subject, findings: &mut Findings) {
    let domain = &subject.domain;
    let aligned = |key: &Key| are_kin(&normal(&key.domain), domain);
    let is_signed = |key: Option<&Key>| key.is_some_and(aligned);
    let mut senders = subject.senders.iter();
    let somebody_signs = senders.any(|sender| is_signed(sender.key.as_ref()));
    for sender in &subject.senders {
        let account = &sender.account;
        match (&sender.key, &sender.way) {
            (Some(key), _) if aligned(key) => {}
            (Some(key), _) => {
                let what = format!(
                    "{account} signs as {}, which does not vouch for {domain}",
                    key.domain
                );
                let action = format!(
                    "send mail from {domain} through a pool whose accounts sign as {domain}"
                );
                match somebody_signs {
                    true => findings.warn(what, action),
                    false => findings.fail(what, action),
                };
            }
            (None, Way::Relay { host }) => {
                findings.warn(
                    format!("{account} does not sign, and whether {host} does is not known"),
                    format!(
                        "have the provider sign as {domain}, or give the account dkim = {{ \
                         domain, selector, key_file }}"
                    ),
                );
            }
            (None, Way::Direct { .. }) => {
                findings.fail(
                    format!("{account} does not sign: Google, Yahoo and Microsoft refuse bulk"),
                    format!(
                        "make a key with `openssl genrsa -out dkim.pem 2048`, write dkim = {{ \
                         domain = \"{domain}\", selector = \"s1\", key_file = \"dkim.pem\" }} \
                         and ask again for the record to publish"
                    ),
                );
            }
        }
    }
    if subject.senders.is_empty() {
        findings.unknown(
            "no account sends mail: there is no key to look at",
            "configure an account with transport = \"mx\" or \"smtp\"",
        );
    }
}

fn record(key: &Key, known: &mut Known, findings: &mut Findings) {
    let name = format!(
        "{}._domainkey.{}",
        normal(&key.selector),
        normal(&key.domain)
    );
    let ours = match &key.record {
        Ok(record) => record,
        Err(why) => {
            findings.fail(
                format!("the key for {name} cannot be read: {why}"),
                "mend key_file: without it the account sends nothing",
            );
            return;
        }
    };
    let wanted = || Record::new(&*name, "TXT", ours.as_str());
    let texts = match known.texts(&name) {
        Ok(texts) => texts,
        Err(why) => {
            findings.unknown(
                format!("the key record {name} cannot be had: {why}"),
                "ask again, or another DNS server with --dns",
            );
            return;
        }
    };
    let text = match texts.as_slice() {
        [] => {
            findings
                .fail(
                    format!("{name} has no key record: signatures cannot be verified"),
                    "publish our key, in strings of at most 255 characters",
                )
                .publish(wanted());
            return;
        }
        [text] => text,
        several => {
            findings
                .fail(
                    format!(
                        "{name} has {} records: verifiers take any or none",
                        several.len()
                    ),
                    "publish exactly one",
                )
                .publish(wanted());
            return;
        }
    };
    let tags = match Tags::parse(text) {
        Ok(tags) => tags,
        Err(why) => {
            findings
                .fail(
                    format!("the key record {name} cannot be read: {why}"),
                    "publish it anew",
                )
                .publish(wanted());
            return;
        }
    };
    judged(&name, &tags, ours, &wanted, findings);
}

fn judged(
    name: &str,
    tags: &Tags,
    ours: &str,
    wanted: &dyn Fn() -> Record,
    findings: &mut Findings,
) {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let own = Tags::parse(ours).unwrap_or_default();
    let published = bare(tags.get("p").unwrap_or_default());
    let before = findings.all.len();
    if published.is_empty() {
        let what = match tags.get("p") {
            Some(_) => format!("the key {name} is revoked: its p= is empty"),
            None => format!("the record {name} has no key in it: p= is missing"),
        };
        findings.fail(what, "publish our key").publish(wanted());
        return;
    }
    let kind = tags.get("k").unwrap_or("rsa").to_ascii_lowercase();
    let own_kind = own.get("k").unwrap_or("rsa");
    let decoded = base64().decode(&published).ok();
    match (&decoded, kind.as_str()) {
        (None, _) => {
            findings
                .fail(
                    format!("the key in {name} is not base64"),
                    "publish it anew",
                )
                .publish(wanted());
            return;
        }
        (Some(der), "rsa") => length(name, der::rsa_bits(der), findings, wanted),
        _ => {}
    }
    let own_key = base64().decode(bare(own.get("p").unwrap_or_default()));
    let is_ours = decoded.zip(own_key.ok());
    let is_ours = is_ours.is_some_and(|(published, own)| is_same_key(&published, &own));
    if kind != own_kind || !is_ours {
        findings
            .fail(
                format!("the key in {name} is not the one we sign with"),
                "publish ours, or give the account the key that is published",
            )
            .publish(wanted());
    }
    let version = tags.get("v");
    if version.is_some_and(|version| version != "DKIM1")
        || version.is_some() && tags.first().is_some_and(|(first, _)| first != "v")
    {
        findings
            .fail(
                format!("the record {name} does not begin with v=DKIM1"),
                "publish it anew",
            )
            .publish(wanted());
    }
    if tags.get("h").is_some() && !tags.has_word("h", "sha256") {
        findings
            .fail(
                format!("the record {name} does not allow SHA-256, which we sign with"),
                "take h= out of it",
            )
            .publish(wanted());
    }
    let services = ["*", "email"];
    if tags.get("s").is_some() && !services.iter().any(|word| tags.has_word("s", word)) {
        findings
            .fail(
                format!(
                    "the key {name} is not for mail: it says s={}",
                    tags.get("s").unwrap_or("")
                ),
                "take s= out of it",
            )
            .publish(wanted());
    }
    if tags.has_word("t", "y") {
        findings
            .warn(
                format!("{name} says that it is a test (t=y): some verifiers then ignore it"),
                "take t=y out of it",
            )
            .publish(wanted());
    }
    if findings.all.len() == before {
        findings.ok(format!("{name} holds the {kind} key that we sign with"));
    }
}

/// Whether two keys are one, however they are wrapped.
fn is_same_key(one: &[u8], other: &[u8]) -> bool {
    let numbers = der::rsa_key(one).zip(der::rsa_key(other));
    one == other || numbers.is_some_and(|(one, other)| one == other)
}

fn length(name: &str, bits: Option<u32>, findings: &mut Findings, wanted: &dyn Fn() -> Record) {
    match bits {
        None => {
            findings
                .fail(
                    format!("the key in {name} is no RSA key"),
                    "publish it anew",
                )
                .publish(wanted());
        }
        Some(bits @ ..BITS_MIN) => {
            findings
                .fail(
                    format!("the key in {name} has {bits} bits: verifiers refuse it"),
                    "sign with a key of 2048 bits",
                )
                .publish(wanted());
        }
        Some(bits @ ..BITS_GOOD) => {
            findings
                .warn(
                    format!("the key in {name} has {bits} bits, which is short"),
                    "sign with a key of 2048 bits",
                )
                .publish(wanted());
        }
        Some(_) => {}
    }
}

/// Padding is often lost on the way into DNS, and verifiers do not mind.
fn base64() -> GeneralPurpose {
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&STANDARD, lenient)
}
