//! Certificates: of what listens here, and of the servers that take mail for
//! the domain.

use crate::der::Certificate;
use crate::finding::{Check, Finding, Findings};
use crate::known::{Known, ServerSeen};
use crate::mx;
use crate::names::normal;
use crate::subject::{Listener, Subject, Way};

const DAY_S: i64 = 86_400;
/// A certificate that ends within this time should have been renewed.
const SOON_DAYS: i64 = 14;
/// Servers to which a connection is made.
const SERVERS_MAX: usize = 4;

pub(crate) fn judge(subject: &Subject, known: &mut Known) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Tls);
    for listener in &subject.listeners {
        listens(listener, subject, &mut findings);
    }
    let port = subject.senders.iter().find_map(|sender| match sender.way {
        Way::Direct { port, .. } => Some(port),
        Way::Relay { .. } => None,
    });
    for host in mx::hosts(&subject.domain, known)
        .into_iter()
        .take(SERVERS_MAX)
    {
        let addresses = known.addresses(&host).unwrap_or_default();
        let Some(address) = addresses.first() else {
            continue;
        };
        match known.server(&host, *address, port.unwrap_or(25)) {
            Ok(seen) => serves(&host, &seen, subject.now_s, &mut findings),
            Err(why) => {
                findings.unknown(
                    format!("whether {host} speaks TLS cannot be said: {why}"),
                    "ask again from where mail is sent: many networks block port 25",
                );
            }
        }
    }
    findings.all
}

fn listens(listener: &Listener, subject: &Subject, findings: &mut Findings) {
    let Listener { part, address, .. } = listener;
    let place = format!("[{part}] at {address}");
    let der = match &listener.certificate {
        Some(Ok(der)) => der,
        Some(Err(why)) => {
            findings.fail(
                format!("the certificate of {place} cannot be used: {why}"),
                "mend tls_cert and tls_key: they must be there, readable, and belong together",
            );
            return;
        }
        None if listener.is_local => {
            findings.ok(format!(
                "{place} has no TLS, and only this machine reaches it"
            ));
            return;
        }
        None => {
            findings.warn(
                format!("{place} has no TLS, and others reach it"),
                "write tls_cert and tls_key",
            );
            return;
        }
    };
    let Some(certificate) = Certificate::parse(der) else {
        findings.fail(
            format!("the certificate of {place} cannot be read"),
            "give tls_cert a certificate in PEM",
        );
        return;
    };
    let whose = format!("the certificate of {place}");
    if !lasts(&whose, &certificate, subject.now_s, findings) {
        return;
    }
    let names = subject.senders.iter().map(|sender| normal(&sender.helo));
    let mut names = names.chain([subject.domain.clone()]);
    let listed = certificate
        .names
        .iter()
        .take(5)
        .cloned()
        .collect::<Vec<_>>();
    let days = (certificate.until_s - subject.now_s) / DAY_S;
    let is_kin =
        |own: &String| crate::names::are_kin(own.trim_start_matches("*."), &subject.domain);
    match certificate.names.iter().any(is_kin) || names.any(|name| certificate.is_for(&name)) {
        true => findings.ok(format!(
            "{whose} holds for {} for {days} days",
            listed.join(", ")
        )),
        false => {
            let listed = match listed.is_empty() {
                true => "no name at all".to_owned(),
                false => listed.join(", "),
            };
            findings.warn(
                format!(
                    "{whose} holds for {listed}, not for a name of {}",
                    subject.domain
                ),
                "make sure that clients connect by a name that is in it",
            );
        }
    }
}

/// Whether it holds now and for a while.
fn lasts(whose: &str, certificate: &Certificate, now_s: i64, findings: &mut Findings) -> bool {
    let days = (certificate.until_s - now_s) / DAY_S;
    if now_s < certificate.from_s {
        findings.fail(
            format!("{whose} does not hold yet"),
            "look at the clock of this machine, or wait",
        );
    } else if now_s >= certificate.until_s {
        findings.fail(
            format!("{whose} ended {} days ago", -days),
            "renew it; a running server reads it again on SIGHUP",
        );
    } else if days < SOON_DAYS {
        findings.warn(
            format!("{whose} ends in {days} days"),
            "renew it; a running server reads it again on SIGHUP",
        );
    } else {
        return true;
    }
    false
}

fn serves(host: &str, seen: &ServerSeen, now_s: i64, findings: &mut Findings) {
    if !seen.offers_tls {
        findings.warn(
            format!("{host} does not offer STARTTLS: bounces and replies come in the open"),
            "give it a certificate and turn STARTTLS on",
        );
        return;
    }
    if let Some(why) = &seen.handshake_error {
        findings.fail(
            format!("{host} offers STARTTLS, but it fails: {why}"),
            "mend its certificate or its TLS settings: senders that demand TLS cannot reach you",
        );
        return;
    }
    let certificate = seen.certificate.as_deref().and_then(Certificate::parse);
    if let Some(certificate) = &certificate
        && !lasts(
            &format!("the certificate of {host}"),
            certificate,
            now_s,
            findings,
        )
    {
        return;
    }
    match &seen.distrust {
        None => findings.ok(format!(
            "{host} speaks TLS, with a certificate that is trusted"
        )),
        Some(why) => {
            findings.warn(
                format!("the certificate of {host} is not trusted for that name: {why}"),
                "get one for its name: senders that verify (MTA-STS, DANE) refuse this",
            );
        }
    }
}
