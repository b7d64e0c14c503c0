//! Whether bounces and replies find their way back.

use crate::finding::{Check, Finding, Findings, Record};
use crate::known::Known;
use crate::names::normal;
use crate::subject::Subject;

/// Mail servers that are looked at.
pub(crate) const HOSTS_MAX: usize = 5;

/// The mail servers of a domain, best first, without the one that means none.
pub(crate) fn hosts(domain: &str, known: &mut Known) -> Vec<String> {
    let hosts = known.hosts(domain).unwrap_or_default();
    let hosts = hosts.into_iter().map(|(_, host)| normal(&host));
    hosts
        .filter(|host| !host.is_empty())
        .take(HOSTS_MAX)
        .collect()
}

pub(crate) fn judge(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Mx);
    servers(&subject.domain, known, &mut findings);
    findings.all
}

fn servers(domain: &str, known: &mut Known, findings: &mut Findings) {
    let found = match known.hosts(domain) {
        Ok(found) => found,
        Err(why) => {
            findings.unknown(
                format!("the mail servers of {domain} cannot be had: {why}"),
                "ask again, or another DNS server with --dns",
            );
            return;
        }
    };
    if found.is_empty() {
        match known.addresses(domain) {
            Ok(addresses) if !addresses.is_empty() => findings.warn(
                format!("{domain} has no MX: mail for it goes to its own address"),
                "publish an MX, so that it is meant",
            ),
            Ok(_) => findings.fail(
                format!(
                    "{domain} has neither MX nor address: bounces and replies are lost, and \
                         many receivers refuse such senders"
                ),
                format!("publish an MX for {domain}"),
            ),
            Err(why) => findings.unknown(
                format!("{domain} has no MX, and its address cannot be had: {why}"),
                "ask again",
            ),
        };
        return;
    }
    if found.iter().all(|(_, host)| normal(host).is_empty()) {
        findings.fail(
            format!("{domain} says that it takes no mail (null MX): receivers refuse its mail"),
            "publish a server that takes mail, or send from another domain",
        );
        return;
    }
    let hosts = hosts(domain, known);
    let mut lost = Vec::new();
    for host in &hosts {
        match known.addresses(host) {
            Ok(addresses) if !addresses.is_empty() => {}
            Ok(_) => lost.push(host.clone()),
            Err(why) => {
                findings.unknown(
                    format!("{host}, which takes mail for {domain}, cannot be looked up: {why}"),
                    "ask again, or mend the MX",
                );
            }
        }
    }
    if lost.len() == hosts.len() {
        findings.fail(
            format!(
                "no mail server of {domain} has an address: {}",
                lost.join(", ")
            ),
            "point the MX to names that have A or AAAA records",
        );
    } else if !lost.is_empty() {
        findings.warn(
            format!(
                "a mail server of {domain} has no address: {}",
                lost.join(", ")
            ),
            "take it out of the MX, or give it an address",
        );
    }
    if findings.are_good() {
        findings.ok(format!("{domain} takes mail at {}", hosts.join(", ")));
    }
}

/// The domain of return paths, if it is another: its mail must come to us.
pub(crate) fn judge_bounces(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Bounces);
    let Some(domain) = &subject.bounce_domain else {
        return findings.all;
    };
    servers(domain, known, &mut findings);
    if !findings.are_good() {
        return findings.all;
    }
    let ours = subject.addresses();
    let is_ours = |host: &str| {
        subject
            .senders
            .iter()
            .any(|sender| normal(&sender.helo) == host)
    };
    let hosts = hosts(domain, known);
    let leads_here = hosts.iter().any(|host| {
        let addresses = known.addresses(host).unwrap_or_default();
        is_ours(host) || addresses.iter().any(|address| ours.contains(address))
    });
    if !leads_here {
        let helo = subject.senders.first().map(|sender| normal(&sender.helo));
        findings.warn(
            format!(
                "bounces to {domain} go to {}, which is not us",
                hosts.join(", ")
            ),
            "point its MX to this server, or have that server pass bounces on",
        );
        if let Some(helo) = helo.filter(|helo| helo.contains('.')) {
            findings.publish(Record::new(domain.as_str(), "MX", format!("10 {helo}.")));
        }
    }
    findings.all
}
