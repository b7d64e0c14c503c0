//! SPF: whether receivers see our addresses as allowed (RFC 7208).
//!
//! `record` reads one record, `walk` follows includes and redirects, `providers`
//! knows what relays want included; this file judges.

pub mod providers;
pub mod record;
pub mod walk;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::finding::{Check, Finding, Findings, Record, quoted};
use crate::known::Known;
use crate::subject::{Subject, Way};
use record::{Qualifier, SpfRecord, with_terms};
use walk::{Cost, LOOKUPS_MAX, LOOKUPS_SEEN_MAX, Trouble, VOIDS_MAX, Verdict};

/// Addresses that are kept for examples, so that nobody sends from them
/// (RFC 5737, RFC 3849).
const STRANGERS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 77)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 0x77)),
];

/// Beyond this many lookups a change of an included record can break ours.
const LOOKUPS_SAFE: u32 = 8;

pub(crate) fn judge(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Spf);
    let domain = subject.bounce_domain.as_deref();
    let domain = domain.unwrap_or(&subject.domain);
    match walk::record_of(domain, known) {
        Err(Trouble::NotNow(why)) => {
            findings.unknown(
                format!("the SPF record of {domain} cannot be had: {why}"),
                "ask again, or another DNS server with --dns",
            );
        }
        Err(Trouble::Wrong(why)) => {
            findings.fail(
                why,
                "publish exactly one TXT record that begins with v=spf1 and can be read",
            );
        }
        Ok(None) => {
            findings.fail(
                format!("{domain} has no SPF record"),
                "publish one that names who sends for it",
            );
            if let Some(wanted) = wanted(subject) {
                findings.publish(Record::new(domain, "TXT", wanted));
            }
        }
        Ok(Some((text, record))) => {
            everybody_else(subject, domain, &text, &record, known, &mut findings);
            let cost = Cost::of(domain, &record, known);
            self::cost(domain, &cost, &mut findings);
            addresses(subject, domain, &text, &record, known, &mut findings);
            relays(subject, domain, &text, &cost, &mut findings);
            if findings.are_good() {
                let lookups = cost.lookups;
                findings.ok(format!(
                    "{domain} has one SPF record, which takes {lookups} of {LOOKUPS_MAX} lookups"
                ));
            }
        }
    }
    findings.all
}

/// A record for a domain that has none; nothing if nobody is known who may
/// send, since it would doubt everybody.
fn wanted(subject: &Subject) -> Option<String> {
    let mut terms: BTreeSet<String> = subject.addresses().iter().map(term).collect();
    for sender in &subject.senders {
        if let Way::Relay { host } = &sender.way {
            let include = providers::include_for(host);
            terms.extend(include.map(|name| format!("include:{name}")));
        }
    }
    let terms: Vec<String> = terms.into_iter().collect();
    (!terms.is_empty()).then(|| with_terms("v=spf1 ~all", &terms))
}

fn term(address: &IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("ip4:{address}"),
        IpAddr::V6(address) => format!("ip6:{address}"),
    }
}

/// What the record says of two addresses of nobody's, one of each kind: all
/// that it includes or redirects to may have let them in.
fn everybody_else(
    subject: &Subject,
    domain: &str,
    text: &str,
    record: &SpfRecord,
    known: &mut Known,
    findings: &mut Findings,
) {
    let ours = subject.addresses();
    let strangers = STRANGERS.iter().filter(|it| !ours.contains(it));
    let said = strangers.map(|stranger| walk::verdict(*stranger, domain, record, known));
    let said: Vec<Verdict> = said.collect();
    let is_said =
        |qualifier| record.all() == Some(qualifier) || said.contains(&Verdict::Said(qualifier));
    if is_said(Qualifier::Pass) {
        findings.fail(
            format!(
                "the SPF record of {domain} lets everybody send: {}",
                quoted(text)
            ),
            "end it, and what it includes, with ~all or -all, and take out what matches strangers",
        );
    } else if is_said(Qualifier::Neutral) {
        findings.warn(
            format!("the SPF record of {domain} says nothing of strangers: it ends with ?all"),
            "end it with ~all or -all",
        );
    } else if said.contains(&Verdict::Silent) {
        findings.warn(
            format!("the SPF record of {domain} does not say what becomes of strangers"),
            "end it with ~all or -all",
        );
        if record.redirect.is_none() {
            let closed = format!("{} ~all", text.trim_end());
            findings.publish(Record::new(domain, "TXT", closed));
        }
    }
}

fn cost(domain: &str, cost: &Cost, findings: &mut Findings) {
    for trouble in cost.troubles.iter().take(5) {
        match trouble {
            Trouble::Wrong(why) => findings.fail(
                format!("the SPF record of {domain} cannot be followed: {why}"),
                "take that include out, or have its owner mend it: receivers treat the whole \
                 record as broken",
            ),
            Trouble::NotNow(why) => findings.unknown(
                format!("the SPF record of {domain} could not be followed to its end: {why}"),
                "ask again, or another DNS server with --dns",
            ),
        };
    }
    let lookups = match cost.lookups {
        LOOKUPS_SEEN_MAX.. => format!("{LOOKUPS_SEEN_MAX} or more"),
        lookups => lookups.to_string(),
    };
    if cost.lookups > LOOKUPS_MAX {
        findings.fail(
            format!(
                "the SPF record of {domain} takes {lookups} lookups: receivers stop at \
                 {LOOKUPS_MAX}, and then it counts as broken"
            ),
            "take out includes that are not needed, or write networks as ip4: and ip6:",
        );
    } else if cost.lookups > LOOKUPS_SAFE {
        findings.warn(
            format!("the SPF record of {domain} takes {lookups} of {LOOKUPS_MAX} lookups"),
            "leave room: a provider that adds an include to its own record breaks yours",
        );
    }
    if cost.voids > VOIDS_MAX {
        findings.fail(
            format!(
                "{} lookups of the SPF record of {domain} find nothing: receivers stop after \
                 {VOIDS_MAX}",
                cost.voids
            ),
            "take out names that are gone",
        );
    }
    if cost.uses_ptr {
        findings.warn(
            format!("the SPF record of {domain} uses ptr, which many receivers ignore"),
            "write networks as ip4: and ip6:, or a: with the name of the host",
        );
    }
}

fn addresses(
    subject: &Subject,
    domain: &str,
    text: &str,
    record: &SpfRecord,
    known: &mut Known,
    findings: &mut Findings,
) {
    let direct = subject
        .senders
        .iter()
        .filter(|it| matches!(it.way, Way::Direct { .. }));
    for sender in direct.filter(|it| it.public_addresses().is_empty()) {
        findings.unknown(
            format!(
                "whether {domain} lets {} send cannot be said: its address, as receivers see it, \
                 is not known",
                sender.account
            ),
            "write the account's ip as receivers see it, or say it with --ip",
        );
    }
    for address in subject.addresses() {
        let answer = match walk::verdict(address, domain, record, known) {
            Verdict::Said(Qualifier::Pass) => {
                findings.ok(format!("{domain} lets {address} send"));
                continue;
            }
            Verdict::Said(Qualifier::Fail) => "refuses it",
            Verdict::Said(Qualifier::SoftFail) => "doubts it",
            Verdict::Said(Qualifier::Neutral) | Verdict::Silent => "says nothing of it",
            Verdict::Trouble(Trouble::Wrong(_)) => "is broken before it comes to it",
            Verdict::Trouble(Trouble::NotNow(why)) => {
                findings.unknown(
                    format!("whether {domain} lets {address} send cannot be said: {why}"),
                    "ask again, or write the address into the record",
                );
                continue;
            }
        };
        findings
            .fail(
                format!("we send from {address}, and the SPF record of {domain} {answer}"),
                "add the address",
            )
            .publish(Record::new(
                domain,
                "TXT",
                with_terms(text, &[term(&address)]),
            ));
    }
}

/// A provider often sends with a return path of its own, and then SPF is its
/// own affair: so what is missing may be meant so.
fn relays(subject: &Subject, domain: &str, text: &str, cost: &Cost, findings: &mut Findings) {
    for sender in &subject.senders {
        let Way::Relay { host } = &sender.way else {
            continue;
        };
        let account = &sender.account;
        match providers::include_for(host) {
            Some(name) if cost.included.iter().any(|own| own == name) => {
                findings.ok(format!(
                    "{domain} includes {name}, through which {account} sends"
                ));
            }
            Some(name) => {
                findings
                    .warn(
                        format!(
                            "{account} sends through {host}, and the SPF record of {domain} does \
                             not include {name}"
                        ),
                        "add the include, unless the provider uses a return path of its own",
                    )
                    .publish(Record::new(
                        domain,
                        "TXT",
                        with_terms(text, &[format!("include:{name}")]),
                    ));
            }
            None => {
                findings.unknown(
                    format!("{account} sends through {host}, whose addresses are not known here"),
                    "ask its operator what the SPF record must include",
                );
            }
        }
    }
}
