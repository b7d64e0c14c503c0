//! An SPF record as terms (RFC 7208).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::finding::quoted;
use crate::names;

/// Terms that are read. Longer records are refused, as receivers do by size.
const TERMS_MAX: usize = 100;

/// What a match means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the standard")]
pub enum Qualifier {
    Pass,
    Fail,
    SoftFail,
    Neutral,
}

/// What is matched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the standard")]
pub enum Mechanism {
    All,
    Include(String),
    A(Option<String>, Prefixes),
    Mx(Option<String>, Prefixes),
    Ptr,
    Ip(IpAddr, u8),
    Exists(String),
}

/// How many bits of an address must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    v4: u8,
    v6: u8,
}

impl Prefixes {
    /// Whether two addresses agree.
    pub fn agree(self, one: IpAddr, other: IpAddr) -> bool {
        let bits = if one.is_ipv4() { self.v4 } else { self.v6 };
        is_in(one, other, bits)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpfRecord {
    /// Its mechanisms in order.
    pub mechanisms: Vec<(Qualifier, Mechanism)>,
    /// Where to go on if none matches.
    pub redirect: Option<String>,
}

/// Whether a text is meant to be an SPF record.
pub fn is_record(text: &str) -> bool {
    let (start, rest) = text.split_at_checked(6).unwrap_or((text, ""));
    start.eq_ignore_ascii_case("v=spf1") && (rest.is_empty() || rest.starts_with(' '))
}

/// Whether `address` is in the network of `net` with so many bits.
pub fn is_in(address: IpAddr, net: IpAddr, bits: u8) -> bool {
    let differ = match (address, net) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            u128::from(one.to_bits() ^ other.to_bits()) << 96
                >> (128 - u32::from(bits).clamp(1, 32))
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            (one.to_bits() ^ other.to_bits()) >> (128 - u32::from(bits).clamp(1, 128))
        }
        _ => return false,
    };
    bits == 0 || differ == 0
}

impl SpfRecord {
    /// Reads a record, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let terms: Vec<&str> = text.split(' ').filter(|term| !term.is_empty()).collect();
        if terms.len() > TERMS_MAX {
            return Err(format!("it has {} terms", terms.len()));
        }
        let mut record = Self {
            mechanisms: Vec::new(),
            redirect: None,
        };
        for term in terms.into_iter().skip(1) {
            if let Some((name, value)) = modifier(term) {
                match (name.as_str(), &record.redirect) {
                    ("redirect", None) => record.redirect = Some(domain(term, value)?),
                    ("redirect", Some(_)) => return Err("redirect is there twice".to_owned()),
                    _ => {}
                }
                continue;
            }
            record.mechanisms.push(mechanism(term)?);
        }
        Ok(record)
    }

    /// What becomes of everybody else, if the record says.
    pub fn all(&self) -> Option<Qualifier> {
        let mut mechanisms = self.mechanisms.iter();
        let found = mechanisms.find(|(_, mechanism)| *mechanism == Mechanism::All);
        found.map(|(qualifier, _)| *qualifier)
    }
}

/// The record with more terms, before those that end it.
pub fn with_terms(text: &str, more: &[String]) -> String {
    let terms: Vec<&str> = text.split(' ').filter(|term| !term.is_empty()).collect();
    let is_end = |term: &&str| {
        let bare = term.trim_start_matches(['+', '-', '~', '?']);
        bare.eq_ignore_ascii_case("all") || term.to_ascii_lowercase().starts_with("redirect=")
    };
    let at = terms.iter().position(is_end).unwrap_or(terms.len());
    let (before, after) = terms.split_at(at);
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    [before, &more, after].concat().join(" ")
}

/// `name=value`, where the name is one of a modifier.
fn modifier(term: &str) -> Option<(String, &str)> {
    let (name, value) = term.split_once('=')?;
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (starts && bytes.all(fits)).then(|| (name.to_ascii_lowercase(), value))
}

fn mechanism(term: &str) -> Result<(Qualifier, Mechanism), String> {
    let (qualifier, bare) = match term.split_at_checked(1) {
        Some(("+", rest)) => (Qualifier::Pass, rest),
        Some(("-", rest)) => (Qualifier::Fail, rest),
        Some(("~", rest)) => (Qualifier::SoftFail, rest),
        Some(("?", rest)) => (Qualifier::Neutral, rest),
        _ => (Qualifier::Pass, term),
    };
    let end = bare.find([':', '/']).unwrap_or(bare.len());
    let (name, rest) = bare.split_at_checked(end).unwrap_or((bare, ""));
    let value = rest.strip_prefix(':');
    let wrong = || format!("{} cannot be read", quoted(term));
    let mechanism = match (name.to_ascii_lowercase().as_str(), value) {
        ("all", None) if rest.is_empty() => Mechanism::All,
        ("include", Some(value)) => Mechanism::Include(domain(term, value)?),
        ("exists", Some(value)) => Mechanism::Exists(domain(term, value)?),
        ("ptr", _) if !rest.starts_with('/') => Mechanism::Ptr,
        ("a", _) => {
            let (name, prefixes) = named(term, rest)?;
            Mechanism::A(name, prefixes)
        }
        ("mx", _) => {
            let (name, prefixes) = named(term, rest)?;
            Mechanism::Mx(name, prefixes)
        }
        ("ip4", Some(value)) => {
            let (address, bits) = network(term, value, 32)?;
            let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
            Mechanism::Ip(address.into(), bits)
        }
        ("ip6", Some(value)) => {
            let (address, bits) = network(term, value, 128)?;
            let address: Ipv6Addr = address.parse().map_err(|_| wrong())?;
            Mechanism::Ip(address.into(), bits)
        }
        _ => return Err(wrong()),
    };
    Ok((qualifier, mechanism))
}

/// A domain, which may have macros in it.
fn domain(term: &str, text: &str) -> Result<String, String> {
    let name = names::normal(text);
    match has_macro(&name) || names::is_name(&name) {
        true => Ok(name),
        false => Err(format!("{} names no domain", quoted(term))),
    }
}

/// Whether a name depends on the mail.
pub fn has_macro(name: &str) -> bool {
    name.contains('%')
}

fn network<'a>(term: &str, text: &'a str, most: u8) -> Result<(&'a str, u8), String> {
    match text.split_once('/') {
        None => Ok((text, most)),
        Some((address, bits)) => Ok((address, prefix(term, bits, most)?)),
    }
}

fn prefix(term: &str, text: &str, most: u8) -> Result<u8, String> {
    let bits = text.parse().ok().filter(|bits| *bits <= most);
    bits.ok_or_else(|| format!("{} has no good prefix length", quoted(term)))
}

/// `:example.com/24//64`, of which every part may be missing.
fn named(term: &str, rest: &str) -> Result<(Option<String>, Prefixes), String> {
    let (name, prefixes) = match rest.find('/') {
        Some(at) => rest.split_at_checked(at).unwrap_or((rest, "")),
        None => (rest, ""),
    };
    let name = match name.strip_prefix(':') {
        Some(name) => Some(domain(term, name)?),
        None => None,
    };
    let (v4, v6) = match prefixes.split_once("//") {
        Some((v4, v6)) => (v4, Some(v6)),
        None => (prefixes, None),
    };
    let v4 = match v4.strip_prefix('/') {
        Some(bits) => prefix(term, bits, 32)?,
        None => 32,
    };
    let v6 = match v6 {
        Some(bits) => prefix(term, bits, 128)?,
        None => 128,
    };
    Ok((name, Prefixes { v4, v6 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_receivers_read_them() {
        let record = SpfRecord::parse(
            "v=spf1 a mx:mail.example/24//64 ip4:192.0.2.0/24 ip6:2001:db8::/32 \
             include:_spf.example.net ?ptr exists:%{i}.example.org -all exp=why.example",
        )
        .expect("it is one");
        assert_eq!(record.mechanisms.len(), 8);
        assert_eq!(record.all(), Some(Qualifier::Fail));
        for wrong in [
            "v=spf1 ip4:1.2.3 -all",
            "v=spf1 ip4:1.2.3.4/33",
            "v=spf1 include -all",
            "v=spf1 include: -all",
            "v=spf1 ipv4:192.0.2.1",
            "v=spf1 a:/24",
            "v=spf1 all:x",
            "v=spf1 redirect=a.example redirect=b.example",
        ] {
            assert!(SpfRecord::parse(wrong).is_err(), "{wrong}");
        }
        assert!(is_record("V=SPF1 -all") && is_record("v=spf1"));
        assert!(!is_record("v=spf10 -all"));
    }

    #[test]
    fn networks_hold_their_addresses() {
        for (address, net, bits, is_inside) in [
            ("192.0.2.77", "192.0.2.0", 24, true),
            ("192.0.3.77", "192.0.2.0", 24, false),
            ("10.1.2.3", "192.0.2.0", 0, true),
            ("192.0.2.1", "192.0.2.1", 32, true),
            ("192.0.2.0", "192.0.2.1", 32, false),
            ("2001:db8::1", "2001:db8:ffff::", 32, true),
            ("2001:db9::1", "2001:db8::", 32, false),
            ("2001:db8::1", "192.0.2.0", 0, false),
        ] {
            let (address, net) = (address.parse().expect("one"), net.parse().expect("one"));
            assert_eq!(
                is_in(address, net, bits),
                is_inside,
                "{address} {net}/{bits}"
            );
        }
    }

    #[test]
    fn terms_go_before_the_end() {
        let more = ["ip4:192.0.2.1".to_owned()];
        assert_eq!(
            with_terms("v=spf1 a -all", &more),
            "v=spf1 a ip4:192.0.2.1 -all"
        );
        assert_eq!(with_terms("v=spf1 a", &more), "v=spf1 a ip4:192.0.2.1");
    }
}
