//! Which addresses receivers can see.

use std::net::IpAddr;

/// Whether receivers can see it as it is: addresses of private networks, of
/// access providers' own (100.64.0.0/10) and of this machine alone are
/// translated on the way.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let is_shared = first == 100 && second & 0b1100_0000 == 64;
            !(address.is_private()
                || is_shared
                || address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified())
        }
        IpAddr::V6(address) => {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn addresses_that_are_translated_are_told_from_others() {
        for (text, wanted) in [
            ("192.0.2.10", true),
            ("100.63.255.255", true),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("100.128.0.1", true),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("2001:db8::1", true),
            ("fd00::1", false),
            ("fe80::1", false),
        ] {
            let address = text.parse().expect("an address");
            assert_eq!(is_public(address), wanted, "{text}");
        }
    }
}
