//! DMARC: whether author, signature and return path agree, and what receivers
//! are told to do if not (RFC 7489).

use crate::finding::{Check, Finding, Findings, Record, quoted};
use crate::known::Known;
use crate::names::{are_kin, normal, owner};
use crate::subject::{Subject, Way};
use crate::tags::Tags;

/// Addresses for reports that are looked at.
const REPORTS_MAX: usize = 5;

pub(crate) fn judge(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Dmarc);
    let domain = &subject.domain;
    match find(domain, known) {
        Err(why) => {
            findings.unknown(
                format!("the DMARC record of {domain} cannot be had: {why}"),
                "ask again, or another DNS server with --dns",
            );
        }
        Ok(None) => {
            findings
                .fail(
                    format!("{domain} has no DMARC record: Google, Yahoo and Microsoft want one"),
                    "publish one that only watches, read its reports, then tighten it",
                )
                .publish(wanted(domain, "none"));
        }
        Ok(Some((owner, texts))) => match texts.as_slice() {
            [text] => record(subject, &owner, text, known, &mut findings),
            several => {
                let count = several.len();
                findings.fail(
                    format!("_dmarc.{owner} has {count} DMARC records: receivers ignore them all"),
                    "publish exactly one",
                );
            }
        },
    }
    findings.all
}

fn wanted(domain: &str, policy: &str) -> Record {
    let value = format!("v=DMARC1; p={policy}; rua=mailto:dmarc-reports@{domain}");
    Record::new(format!("_dmarc.{domain}"), "TXT", value)
}

/// The records at the domain, or else at what its owner registered: receivers
/// ask nowhere in between (RFC 7489, 6.6.3).
fn find(domain: &str, known: &mut Known) -> Result<Option<(String, Vec<String>)>, String> {
    let above = Some(owner(domain)).filter(|above| *above != domain);
    for name in std::iter::once(domain).chain(above) {
        let texts = known.texts(&format!("_dmarc.{name}"))?;
        let is_record = |text: &String| {
            let start = text.split(';').next().unwrap_or_default();
            let start: String = start.split_whitespace().collect();
            start.eq_ignore_ascii_case("v=dmarc1")
        };
        let found: Vec<String> = texts.into_iter().filter(is_record).collect();
        if !found.is_empty() {
            return Ok(Some((name.to_owned(), found)));
        }
    }
    Ok(None)
}

fn record(subject: &Subject, owner: &str, text: &str, known: &mut Known, findings: &mut Findings) {
    let domain = &subject.domain;
    let tags = match Tags::parse(text) {
        Ok(tags) => tags,
        Err(why) => {
            findings
                .fail(
                    format!("the DMARC record of {owner} cannot be read: {why}"),
                    "publish it anew",
                )
                .publish(wanted(owner, "none"));
            return;
        }
    };
    // Below its owner a record may say something else.
    let tag = match owner != domain && tags.get("sp").is_some() {
        true => "sp",
        false => "p",
    };
    let policy = tags.get(tag);
    let changed = |tag: &str, value: &str| {
        Record::new(format!("_dmarc.{owner}"), "TXT", tags.with(tag, value))
    };
    match policy.map(str::to_ascii_lowercase).as_deref() {
        Some("none") => {
            findings
                .warn(
                    format!("the DMARC policy for {domain} is none: forged mail is delivered too"),
                    "read the reports, and when all of your mail passes publish quarantine",
                )
                .publish(changed(tag, "quarantine"));
        }
        Some("quarantine" | "reject") => {}
        other => {
            let what = match other {
                Some(word) => format!("has the unknown policy {}", quoted(word)),
                None => "has no policy (p=)".to_owned(),
            };
            findings
                .fail(
                    format!("the DMARC record of {owner} {what}"),
                    "write p=none, p=quarantine or p=reject",
                )
                .publish(wanted(owner, "none"));
        }
    }
    reports(owner, &tags, known, findings);
    alignment(subject, &tags, findings);
    if findings.are_good() {
        let policy = policy.unwrap_or_default();
        findings.ok(format!(
            "{owner} has one DMARC record, with the policy {policy}"
        ));
    }
}

fn reports(owner: &str, tags: &Tags, known: &mut Known, findings: &mut Findings) {
    let rua = tags.get("rua").unwrap_or_default();
    let addresses = rua.split(',').map(str::trim).filter(|it| !it.is_empty());
    let addresses: Vec<&str> = addresses.take(REPORTS_MAX).collect();
    if addresses.is_empty() {
        findings.warn(
            format!("the DMARC record of {owner} asks for no reports: you will not see failures"),
            "say where to, at a mailbox that somebody or something reads",
        );
        let (name, mailbox) = (
            format!("_dmarc.{owner}"),
            format!("mailto:dmarc-reports@{owner}"),
        );
        findings.publish(Record::new(name, "TXT", tags.with("rua", &mailbox)));
    }
    for address in addresses {
        let mailbox = address
            .get(..7)
            .filter(|start| start.eq_ignore_ascii_case("mailto:"));
        let host = mailbox.and(address.split_once('@'));
        let Some((_, host)) = host else {
            findings.warn(
                format!("DMARC reports cannot be sent to {}", quoted(address)),
                "write addresses as mailto:user@example.com",
            );
            continue;
        };
        // A size may stand behind it: `mailto:a@b.example!10m`.
        let host = normal(host.split('!').next().unwrap_or_default());
        if are_kin(&host, owner) {
            continue;
        }
        let name = format!("{owner}._report._dmarc.{host}");
        let consents = |text: &String| {
            text.trim_start()
                .to_ascii_lowercase()
                .starts_with("v=dmarc1")
        };
        match known.texts(&name) {
            Ok(texts) if texts.iter().any(consents) => {}
            Ok(_) => {
                findings
                    .warn(
                        format!("{host} does not agree to take DMARC reports about {owner}"),
                        format!("have {host} publish its consent, or take reports at {owner}"),
                    )
                    .publish(Record::new(name, "TXT", "v=DMARC1"));
            }
            Err(_) => {}
        }
    }
}

/// Mail passes if the signature or the return path agrees with the author.
fn alignment(subject: &Subject, tags: &Tags, findings: &mut Findings) {
    let domain = &subject.domain;
    let is_strict = |tag| {
        tags.get(tag)
            .is_some_and(|mode| mode.eq_ignore_ascii_case("s"))
    };
    let agrees = |other: &str, tag| match is_strict(tag) {
        true => normal(other) == *domain,
        false => are_kin(&normal(other), domain),
    };
    let return_path = subject.bounce_domain.as_deref().unwrap_or(domain);
    let path_agrees = agrees(return_path, "aspf");
    for sender in &subject.senders {
        let account = &sender.account;
        let signature = sender.key.as_ref().map(|key| agrees(&key.domain, "adkim"));
        // Through a relay the return path may be the relay's own.
        let path_agrees = path_agrees && matches!(sender.way, Way::Direct { .. });
        match (signature, path_agrees) {
            (Some(true), true) => {}
            (Some(true), false) if matches!(sender.way, Way::Relay { .. }) => {}
            (Some(true), false) => {
                findings.warn(
                    format!("mail of {account} passes DMARC by its signature alone"),
                    format!("use a return path at {domain}: forwarded mail needs both"),
                );
            }
            (_, true) => {
                findings.warn(
                    format!("mail of {account} passes DMARC by its return path alone"),
                    format!("sign as {domain}: whoever forwards mail breaks SPF"),
                );
            }
            (None, false) if matches!(sender.way, Way::Relay { .. }) => {
                findings.unknown(
                    format!("whether mail of {account} passes DMARC depends on its provider"),
                    format!("have the provider sign as {domain}, or sign it ourselves"),
                );
            }
            (_, false) => {
                let strict = match is_strict("adkim") || is_strict("aspf") {
                    true => " (the record demands exactly the same domain)",
                    false => "",
                };
                findings.fail(
                    format!(
                        "neither signature nor return path of {account} agrees with {domain}{strict}"
                    ),
                    format!("sign as {domain}, or use a return path there"),
                );
            }
        }
    }
}
