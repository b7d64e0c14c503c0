//! Names of sending addresses, and what we call ourselves: receivers hold the
//! two against each other.

use std::net::IpAddr;

use crate::address::is_public;
use crate::finding::{Check, Finding, Findings, Record};
use crate::known::Known;
use crate::names::{are_kin, is_name, normal};
use crate::subject::{Sender, Subject, Way};

/// Names of an address that are looked at.
const NAMES_MAX: usize = 5;

/// Words in names that access providers give to whole networks.
const GENERIC: [&str; 12] = [
    "broadband",
    "cable",
    "client",
    "customer",
    "dhcp",
    "dial",
    "dsl",
    "dyn",
    "dynamic",
    "pool",
    "ppp",
    "unassigned",
];

pub(crate) fn judge(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::ReverseDns);
    for sender in &subject.senders {
        let account = &sender.account;
        match &sender.way {
            Way::Relay { host } => {
                findings.ok(format!(
                    "{account} sends from addresses of {host}, which names them"
                ));
            }
            Way::Direct { addresses, .. } if addresses.is_empty() => {
                findings.unknown(
                    format!("from which address {account} sends is not known"),
                    "write the account's ip as receivers see it, or say it with --ip",
                );
            }
            Way::Direct { addresses, .. } => {
                for address in addresses {
                    named(*address, sender, known, &mut findings);
                }
            }
        }
    }
    findings.all
}

fn named(address: IpAddr, sender: &Sender, known: &mut Known, findings: &mut Findings) {
    let helo = normal(&sender.helo);
    let wanted = || Record::new(pointer(address), "PTR", format!("{helo}."));
    if !is_public(address) {
        findings.unknown(
            format!("{address} is a private address: receivers see another"),
            "write the account's ip as receivers see it, or say it with --ip",
        );
        return;
    }
    let names = match known.names(address) {
        Ok(names) => names,
        Err(why) => {
            findings.unknown(
                format!("the name of {address} cannot be had: {why}"),
                "ask again, or another DNS server with --dns",
            );
            return;
        }
    };
    if names.is_empty() {
        findings.fail(
            format!("{address} has no name (PTR): Google and many others refuse its mail"),
            "have whoever owns the address publish one",
        );
        findings.publish(wanted());
        return;
    }
    let (mut confirmed, mut unsure) = (Vec::new(), None);
    for name in names.iter().take(NAMES_MAX) {
        match known.addresses(name) {
            Ok(addresses) if addresses.contains(&address) => confirmed.push(name.clone()),
            Ok(_) => {}
            Err(why) => unsure = Some(format!("{name}: {why}")),
        }
    }
    let listed = names
        .iter()
        .take(NAMES_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let Some(name) = confirmed.first() else {
        match unsure {
            Some(why) => findings.unknown(
                format!("whether the name of {address} leads back cannot be said: {why}"),
                "ask again",
            ),
            None => {
                findings.fail(
                    format!("{address} is called {listed}, which does not lead back to it"),
                    "give that name this address, or the address another name",
                );
                let kind = if address.is_ipv4() { "A" } else { "AAAA" };
                let first = names.first().map_or("", String::as_str);
                findings.publish(Record::new(first, kind, address.to_string()));
                findings
            }
        };
        return;
    };
    if confirmed.iter().all(|name| is_generic(name, address)) {
        findings
            .warn(
                format!("{address} is called {name}, as access providers name whole networks"),
                "have it named after your own domain",
            )
            .publish(wanted());
        return;
    }
    match confirmed
        .iter()
        .any(|name| *name == helo || are_kin(name, &helo))
    {
        true => findings.ok(format!(
            "{address} is called {name}, which leads back to it"
        )),
        false => {
            findings
                .warn(
                    format!(
                        "{address} is called {name}, but {} calls itself {helo}",
                        sender.account
                    ),
                    format!("write helo = \"{name}\", or have the address named {helo}"),
                )
                .publish(wanted());
        }
    }
}

pub(crate) fn judge_helo(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Helo);
    for sender in &subject.senders {
        // A relay that knows us by a password does not mind our name.
        if let Way::Direct { .. } = &sender.way {
            greeting(sender, &sender.public_addresses(), known, &mut findings);
        }
    }
    findings.all.dedup();
    findings.all
}

fn greeting(sender: &Sender, ours: &[IpAddr], known: &mut Known, findings: &mut Findings) {
    let (account, helo) = (&sender.account, normal(&sender.helo));
    let first = ours.first();
    let kind = match first {
        Some(IpAddr::V6(_)) => "AAAA",
        _ => "A",
    };
    if helo.starts_with('[') {
        findings.warn(
            format!("{account} calls itself {helo}: many receivers refuse who has no name"),
            "write helo with the name of the sending address",
        );
        return;
    }
    if !helo.contains('.') || !is_name(&helo) || helo.ends_with(".local") {
        findings.fail(
            format!("{account} calls itself {helo}, which nobody else knows"),
            "write helo with a full name that has the sending address",
        );
        return;
    }
    match known.addresses(&helo) {
        Err(why) => {
            findings.unknown(format!("{helo} cannot be looked up: {why}"), "ask again");
        }
        Ok(addresses) if addresses.is_empty() => {
            findings.fail(
                format!("{account} calls itself {helo}, which has no address"),
                "publish the sending address under that name",
            );
            if let Some(address) = first {
                findings.publish(Record::new(helo, kind, address.to_string()));
            }
        }
        Ok(addresses) if !ours.is_empty() && !ours.iter().any(|own| addresses.contains(own)) => {
            findings.warn(
                format!(
                    "{account} calls itself {helo}, which has another address than it sends from"
                ),
                "add the sending address to that name",
            );
            if let Some(address) = first {
                findings.publish(Record::new(helo, kind, address.to_string()));
            }
        }
        Ok(_) => findings.ok(format!(
            "{account} calls itself {helo}, which has an address"
        )),
    }
}

/// Whether a name is made from the address, or of words for whole networks.
fn is_generic(name: &str, address: IpAddr) -> bool {
    let mut words = name.split(['.', '-', '_']);
    if words.any(|word| GENERIC.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()))) {
        return true;
    }
    let IpAddr::V4(address) = address else {
        return false;
    };
    let octets = address.octets().map(|octet| octet.to_string());
    let digits: Vec<&str> = name
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .collect();
    let is_there = |wanted: &[&str]| digits.windows(wanted.len()).any(|part| part == wanted);
    let forwards: Vec<&str> = octets.iter().map(String::as_str).collect();
    let backwards: Vec<&str> = forwards.iter().rev().copied().collect();
    is_there(&forwards) || is_there(&backwards)
}

/// Where the name of an address stands: `1.2.0.192.in-addr.arpa`.
pub(crate) fn pointer(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let octets = address.octets();
            let parts: Vec<String> = octets.iter().rev().map(u8::to_string).collect();
            format!("{}.in-addr.arpa", parts.join("."))
        }
        IpAddr::V6(address) => {
            let digits = format!("{:032x}", address.to_bits());
            let parts: Vec<String> = digits.chars().rev().map(String::from).collect();
            format!("{}.ip6.arpa", parts.join("."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_generic, pointer};

    #[test]
    fn names_of_networks_are_told_from_names_of_servers() {
        let address = "192.0.2.10".parse().expect("an address");
        for (name, generic) in [
            ("mail.example.com", false),
            ("mx10.example.com", false),
            ("192-0-2-10.isp.example", true),
            ("ip10.2.0.192.isp.example", true),
            ("dsl7.isp.example", true),
            ("host.dynamic.isp.example", true),
            ("dynamics.example.com", false),
        ] {
            assert_eq!(is_generic(name, address), generic, "{name}");
        }
        assert_eq!(pointer(address), "10.2.0.192.in-addr.arpa");
        let address = "2001:db8::1".parse().expect("an address");
        assert!(pointer(address).ends_with("8.b.d.0.1.0.0.2.ip6.arpa"));
    }
}
