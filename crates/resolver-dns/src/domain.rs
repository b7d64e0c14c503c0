//! Domains in one form: lower case, ASCII, without a dot at the end.

use std::net::IpAddr;

/// The one form of a domain. What is none stays as it is, in lower case, and
/// fails where it is looked up.
pub fn normal(domain: &str) -> String {
    let domain = domain.trim_end_matches('.');
    let lower = || domain.to_ascii_lowercase();
    if domain.is_ascii() {
        return lower();
    }
    idna::domain_to_ascii(domain).unwrap_or_else(|_| lower())
}

/// The address in `[192.0.2.1]` or `[IPv6:2001:db8::1]`.
pub fn literal(domain: &str) -> Option<IpAddr> {
    let inside = domain.strip_prefix('[')?.strip_suffix(']')?;
    let inside = match inside.get(..5) {
        Some(tag) if tag.eq_ignore_ascii_case("ipv6:") => inside.get(5..)?,
        _ => inside,
    };
    inside.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{literal, normal};

    #[test]
    fn a_domain_has_one_form() {
        for (written, form) in [
            ("Example.ORG.", "example.org"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(normal(written), form);
        }
        assert_eq!(literal("[192.0.2.1]").unwrap().to_string(), "192.0.2.1");
        assert_eq!(
            literal("[IPv6:2001:db8::1]").unwrap().to_string(),
            "2001:db8::1"
        );
        assert_eq!(literal("192.0.2.1"), None);
    }
}
