//! Following an SPF record: what it costs receivers, and whom it lets send.
//!
//! Includes may form loops or trees without end. Both walks share one count of
//! lookups that no record can raise beyond [`LOOKUPS_SEEN_MAX`].

use std::net::IpAddr;

use super::record::{Mechanism, Qualifier, SpfRecord, has_macro, is_in, is_record};
use crate::known::Known;

/// Receivers give up after so many lookups (RFC 7208, 4.6.4).
pub const LOOKUPS_MAX: u32 = 10;
/// And after so many that found nothing.
pub const VOIDS_MAX: u32 = 2;
/// We look on for a while, to say how far above it is.
pub const LOOKUPS_SEEN_MAX: u32 = 30;
/// Mail servers that an `mx` may name.
const HOSTS_MAX: usize = 10;

/// The SPF record of a domain: none, or why there is not exactly one good one.
pub fn record_of(domain: &str, known: &mut Known) -> Result<Option<(String, SpfRecord)>, Trouble> {
    let texts = known.texts(domain).map_err(Trouble::NotNow)?;
    let mut found = texts.into_iter().filter(|text| is_record(text));
    let Some(text) = found.next() else {
        return Ok(None);
    };
    let more = found.count();
    if more > 0 {
        let count = more + 1;
        return Err(Trouble::Wrong(format!("{domain} has {count} SPF records")));
    }
    match SpfRecord::parse(&text) {
        Ok(record) => Ok(Some((text, record))),
        Err(why) => Err(Trouble::Wrong(format!("the SPF record of {domain}: {why}"))),
    }
}

/// Why a record cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is wrong, for everybody.
    Wrong(String),
    /// It could not be asked for, or depends on the mail.
    NotNow(String),
}

/// What a record costs.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// Lookups.
    pub lookups: u32,
    /// Those that found nothing.
    pub voids: u32,
    /// What is wrong further down.
    pub troubles: Vec<Trouble>,
    /// Domains that are included, at any depth.
    pub included: Vec<String>,
    /// Whether names of addresses are asked for.
    pub uses_ptr: bool,
}

impl Cost {
    /// All that a record makes receivers look up.
    pub fn of(domain: &str, record: &SpfRecord, known: &mut Known) -> Self {
        let mut cost = Self::default();
        cost.add(domain, record, &mut vec![domain.to_owned()], known);
        cost
    }

    fn add(&mut self, domain: &str, record: &SpfRecord, path: &mut Vec<String>, known: &mut Known) {
        for (_, mechanism) in &record.mechanisms {
            if self.lookups >= LOOKUPS_SEEN_MAX {
                return;
            }
            match mechanism {
                Mechanism::All | Mechanism::Ip(..) => {}
                Mechanism::Include(name) => self.follow(name, path, known),
                Mechanism::Exists(name) => self.look_up(name, known, Known::addresses),
                Mechanism::A(name, _) => {
                    self.look_up(name.as_deref().unwrap_or(domain), known, Known::addresses);
                }
                Mechanism::Mx(name, _) => {
                    self.look_up(name.as_deref().unwrap_or(domain), known, Known::hosts);
                }
                Mechanism::Ptr => {
                    self.uses_ptr = true;
                    self.lookups += 1;
                }
            }
        }
        // After `all` a redirect means nothing.
        if let (Some(name), None) = (&record.redirect, record.all()) {
            self.follow(name, path, known);
        }
    }

    fn follow(&mut self, name: &str, path: &mut Vec<String>, known: &mut Known) {
        self.lookups += 1;
        if has_macro(name) {
            return;
        }
        if path.iter().any(|above| above == name) {
            let text = format!("{name} includes itself");
            return self.troubles.push(Trouble::Wrong(text));
        }
        if self.lookups > LOOKUPS_SEEN_MAX {
            return;
        }
        self.included.push(name.to_owned());
        match record_of(name, known) {
            Ok(Some((_, record))) => {
                path.push(name.to_owned());
                self.add(name, &record, path, known);
                path.pop();
            }
            Ok(None) => {
                self.voids += 1;
                let text = format!("{name}, which is included, has no SPF record");
                self.troubles.push(Trouble::Wrong(text));
            }
            Err(trouble) => self.troubles.push(trouble),
        }
    }

    fn look_up<T>(
        &mut self,
        name: &str,
        known: &mut Known,
        ask: impl Fn(&mut Known, &str) -> Result<Vec<T>, String>,
    ) {
        self.lookups += 1;
        if has_macro(name) {
            return;
        }
        match ask(known, name) {
            Ok(found) => self.voids += u32::from(found.is_empty()),
            Err(why) => self
                .troubles
                .push(Trouble::NotNow(format!("{name}: {why}"))),
        }
    }
}

/// What a record says of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A mechanism matched.
    Said(Qualifier),
    /// None did.
    Silent,
    /// It cannot be said.
    Trouble(Trouble),
}

/// What the record of a domain says of an address.
pub fn verdict(address: IpAddr, domain: &str, record: &SpfRecord, known: &mut Known) -> Verdict {
    let mut left = LOOKUPS_SEEN_MAX;
    match said(address, domain, record, known, &mut left) {
        Ok(Some(qualifier)) => Verdict::Said(qualifier),
        Ok(None) => Verdict::Silent,
        Err(trouble) => Verdict::Trouble(trouble),
    }
}

fn said(
    address: IpAddr,
    domain: &str,
    record: &SpfRecord,
    known: &mut Known,
    left: &mut u32,
) -> Result<Option<Qualifier>, Trouble> {
    // What cannot be looked at matters only if nothing else matches.
    let mut unseen = None;
    for (qualifier, mechanism) in &record.mechanisms {
        if *mechanism == Mechanism::All
            && let Some(unseen) = unseen
        {
            return Err(unseen);
        }
        match matches(address, domain, mechanism, known, left) {
            Ok(true) => return Ok(Some(*qualifier)),
            Ok(false) => {}
            Err(trouble @ Trouble::Wrong(_)) => return Err(trouble),
            Err(trouble) => unseen = unseen.or(Some(trouble)),
        }
    }
    if let Some(unseen) = unseen {
        return Err(unseen);
    }
    match &record.redirect {
        Some(name) => follow(address, name, known, left),
        None => Ok(None),
    }
}

fn follow(
    address: IpAddr,
    name: &str,
    known: &mut Known,
    left: &mut u32,
) -> Result<Option<Qualifier>, Trouble> {
    spend(name, left)?;
    match record_of(name, known)? {
        Some((_, record)) => said(address, name, &record, known, left),
        None => Err(Trouble::Wrong(format!("{name} has no SPF record"))),
    }
}

fn spend(name: &str, left: &mut u32) -> Result<(), Trouble> {
    if has_macro(name) {
        return Err(Trouble::NotNow(format!("{name} depends on the mail")));
    }
    *left = match left.checked_sub(1) {
        Some(left) => left,
        None => return Err(Trouble::Wrong("it takes too many lookups".to_owned())),
    };
    Ok(())
}

fn matches(
    address: IpAddr,
    domain: &str,
    mechanism: &Mechanism,
    known: &mut Known,
    left: &mut u32,
) -> Result<bool, Trouble> {
    let not_now = |name: &str, why: String| Trouble::NotNow(format!("{name}: {why}"));
    match mechanism {
        Mechanism::All => Ok(true),
        Mechanism::Ip(net, bits) => Ok(is_in(address, *net, *bits)),
        Mechanism::Include(name) => {
            Ok(follow(address, name, known, left)? == Some(Qualifier::Pass))
        }
        Mechanism::Exists(name) => {
            spend(name, left)?;
            let found = known.addresses(name).map_err(|why| not_now(name, why))?;
            Ok(!found.is_empty())
        }
        Mechanism::A(name, prefixes) => {
            let name = name.as_deref().unwrap_or(domain);
            spend(name, left)?;
            let found = known.addresses(name).map_err(|why| not_now(name, why))?;
            Ok(found.iter().any(|own| prefixes.agree(address, *own)))
        }
        Mechanism::Mx(name, prefixes) => {
            let name = name.as_deref().unwrap_or(domain);
            spend(name, left)?;
            let hosts = known.hosts(name).map_err(|why| not_now(name, why))?;
            for (_, host) in hosts.iter().take(HOSTS_MAX) {
                // A server that cannot be found lets nobody send.
                let found = known.addresses(host).unwrap_or_default();
                if found.iter().any(|own| prefixes.agree(address, *own)) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Mechanism::Ptr => {
            spend(domain, left)?;
            let names = known.names(address).unwrap_or_default();
            for name in names.iter().take(HOSTS_MAX) {
                let is_ours = crate::names::is_within(name, domain);
                if is_ours && known.addresses(name).unwrap_or_default().contains(&address) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}
