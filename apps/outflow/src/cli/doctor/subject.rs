//! What settings and a server say, as the judge takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use outflow_config::account::Dkim;
use outflow_config::valid::machine::{Listener as ListenerSettings, TlsFiles};
use outflow_config::{Account, Settings, TransportSettings};
use outflow_core::policy::matcher::Pattern;
use outflow_core::policy::scope::Scope;
use outflow_core::policy::set::Policies;
use outflow_doctor::Subject;
use outflow_doctor::address::is_public;
use outflow_doctor::subject::{Key, Listener, Pace, Sender, Texter, WarmUp, Way};
use outflow_mail::DkimKey;
use outflow_resolver_dns::domain;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::live::Live;
use super::paces;
use crate::serve::relays::machine_name;
use crate::serve::tls;

/// Accounts that are looked at. Whoever has more has them made by a program,
/// and alike.
const SENDERS_MAX: usize = 50;

/// What does not depend on the domain.
pub struct Facts {
    senders: Vec<Sender>,
    listeners: Vec<Listener>,
    paces: Vec<Pace>,
    texters: Vec<Texter>,
    warm_up: WarmUp,
    bounce_domain: Option<String>,
}

impl Facts {
    /// Gathers them. `addresses` are those of accounts that do not say.
    pub fn of(settings: &Settings, live: &Live, addresses: &[IpAddr]) -> Self {
        let accounts = accounts(settings, live);
        let policies = live.policies(settings);
        let senders = accounts
            .values()
            .filter_map(|account| sender(account, addresses));
        Self {
            senders: senders.take(SENDERS_MAX).collect(),
            listeners: listeners(settings),
            paces: paces::of(accounts.values().take(SENDERS_MAX), &policies, live),
            texters: texters(accounts.values(), &policies, live),
            warm_up: live.warm_up.clone(),
            bounce_domain: bounce_domain(settings),
        }
    }

    /// The domains that accounts sign for.
    pub fn signed_domains(&self) -> BTreeSet<String> {
        let keys = self.senders.iter().filter_map(|sender| sender.key.as_ref());
        keys.map(|key| domain::normal(&key.domain)).collect()
    }

    /// All that is known of a domain before DNS is asked.
    pub fn about(&self, domain: &str, bounce_domain: Option<String>) -> Subject {
        let bounce_domain = bounce_domain.or_else(|| self.bounce_domain.clone());
        Subject {
            domain: domain.to_owned(),
            bounce_domain: bounce_domain.filter(|other| other != domain),
            senders: self.senders.clone(),
            listeners: self.listeners.clone(),
            paces: self.paces.clone(),
            warm_up: self.warm_up.clone(),
            texters: self.texters.clone(),
            now_s: jiff::Timestamp::now().as_second(),
        }
    }
}

/// Those that a server has; those of the settings as far as it has not changed
/// them or taken them away.
fn accounts(settings: &Settings, live: &Live) -> BTreeMap<String, Account> {
    let own = settings.accounts.iter().map(|start| start.account.clone());
    let own = own.filter(|account| live.may_have(account.spec.id.as_str()));
    let all = own.chain(live.accounts.iter().cloned());
    all.map(|account| (account.spec.id.as_str().to_owned(), account))
        .collect()
}

/// Where bounces are taken, if settings say.
fn bounce_domain(settings: &Settings) -> Option<String> {
    let entries = settings.entries();
    let mut entries = entries.iter();
    let entry = entries.find(|entry| entry.key == "feedback.bounce_domain")?;
    let name = entry.value.as_str().filter(|name| !name.is_empty())?;
    Some(domain::normal(name))
}

fn sender(account: &Account, addresses: &[IpAddr]) -> Option<Sender> {
    let (way, helo, dkim) = match &account.transport {
        TransportSettings::Sandbox(_) => return None,
        TransportSettings::Smtp(smtp) => {
            let host = smtp.host.clone();
            (Way::Relay { host }, &smtp.helo, &smtp.dkim)
        }
        TransportSettings::Mx(mx) => {
            // What receivers see goes before what the machine binds to, which
            // may be translated on the way.
            let named = account.spec.ip.as_ref();
            let named = named.and_then(|ip| ip.as_str().parse().ok());
            let own = named.or(mx.source_ip);
            let addresses = match own {
                Some(own) if is_public(own) || addresses.is_empty() => vec![own],
                _ => addresses.to_vec(),
            };
            let port = mx.port;
            (Way::Direct { addresses, port }, &mx.helo, &mx.dkim)
        }
    };
    Some(Sender {
        account: account.spec.id.as_str().to_owned(),
        way,
        helo: helo.clone().unwrap_or_else(machine_name),
        key: dkim.as_ref().map(key),
    })
}

/// Only the public half leaves this function.
fn key(dkim: &Dkim) -> Key {
    let key = DkimKey::from_file(&dkim.domain, &dkim.selector, &dkim.key_file);
    Key {
        domain: domain::normal(&dkim.domain),
        selector: dkim.selector.clone(),
        record: key
            .map(|key| key.record())
            .map_err(|error| error.to_string()),
    }
}

fn listeners(settings: &Settings) -> Vec<Listener> {
    let parts = [
        ("smtp", settings.smtp.as_ref()),
        ("server", Some(&settings.server.listener)),
        ("throttle", settings.throttle.listener.as_ref()),
    ];
    let parts = parts.into_iter();
    let there = parts.filter_map(|(part, listener)| Some((part, listener?)));
    there.map(|(part, it)| listener(part, it)).collect()
}

fn listener(part: &str, settings: &ListenerSettings) -> Listener {
    let files = settings.tls.as_ref();
    Listener {
        part: part.to_owned(),
        address: settings.address.to_string(),
        is_local: settings.address.ip().is_loopback(),
        certificate: files.map(certificate),
    }
}

/// The certificate, if a listener could speak with it and its key.
fn certificate(files: &TlsFiles) -> Result<Vec<u8>, String> {
    tls::server(files).map_err(|error| error.to_string())?;
    let path = &files.cert;
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut chain = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
    let first = chain
        .next()
        .ok_or_else(|| failed(&"no certificate in it"))?;
    first
        .map(|der| der.to_vec())
        .map_err(|error| failed(&error))
}

/// Accounts that carry texts to the US: no transport is for texts alone yet, so
/// those of sandboxes whose lanes or policies are about US carriers, and those
/// that have a brand.
fn texters<'a>(
    accounts: impl Iterator<Item = &'a Account>,
    policies: &Policies,
    live: &Live,
) -> Vec<Texter> {
    let is_us = |pattern: Option<&Pattern>| {
        let is_us = |name: &str| name.starts_with("us-");
        matches!(pattern, Some(Pattern::Exact(name)) if is_us(name.as_str()))
    };
    let mut all = policies.iter();
    let has_policy = all.any(|policy| is_us(policy.matches.pattern(Scope::Carrier)));
    let texts = |account: &Account| {
        let pool = account.spec.pool.as_str();
        account.is_sandbox() && (has_policy || live.has_lane(&format!("{pool}/carrier:us-")))
    };
    let texters = accounts.filter(|account| account.spec.brand.is_some() || texts(account));
    let texters = texters.map(|account| Texter {
        account: account.spec.id.as_str().to_owned(),
        brand: account
            .spec
            .brand
            .as_ref()
            .map(|brand| brand.as_str().to_owned()),
    });
    texters.take(SENDERS_MAX).collect()
}
