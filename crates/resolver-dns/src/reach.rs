//! Where mail may be carried: to public addresses, and to networks that are
//! named.
//!
//! Whoever owns a domain says in DNS which address its mail goes to, and anybody
//! may write to that domain. Without this a stranger's record would have this
//! machine talk to itself, to its neighbours, or to the machine that hosts it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// The addresses whose first `bits` are those of `address`.
    pub const fn new(address: IpAddr, bits: u8) -> Self {
        Self { address, bits }
    }

    /// Whether an address is one of them.
    pub fn holds(&self, address: IpAddr) -> bool {
        let bits = u32::from(self.bits);
        match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                let differ = one.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= bits
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                let differ = one.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= bits
            }
            _ => false,
        }
    }
}

/// Where mail may be carried.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    allowed: Vec<Network>,
}

impl Reach {
    /// To public addresses and to these networks.
    pub const fn new(allowed: Vec<Network>) -> Self {
        Self { allowed }
    }

    /// Whether an address may be connected to.
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.allowed.iter().any(|network| network.holds(address))
    }
}

/// Whether an address is one that anybody on the Internet may have.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

const fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        // This network, private, loopback, multicast, reserved, broadcast.
        (0 | 10 | 127 | 224.., _, _)
        // Shared by the customers of a carrier.
        | (100, 64..=127, _)
        // Link-local, where clouds keep their secrets.
        | (169, 254, _)
        | (172, 16..=31, _)
        // Protocols, documentation, relays to IPv6, private, measurements.
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (192, 168, _)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => true,
        _ => false,
    };
    !is_special
}

/// Of IPv6 only 2000::/3 is given to anybody.
const fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    match (a, b) {
        // An address of IPv4 behind a translator.
        (0x64, 0xff9b) => c == 0 && d == 0 && e == 0 && f == 0 && embedded(g, h),
        // Addresses of IPv4 in a tunnel.
        (0x2002, _) => embedded(b, c),
        // Protocols (Teredo is one), documentation.
        (0x2001, 0..=0x1ff | 0xdb8) => false,
        (0x3fff, 0..=0xfff) => false,
        _ => a & 0xe000 == 0x2000,
    }
}

const fn embedded(high: u16, low: u16) -> bool {
    is_public_v4(Ipv4Addr::from_bits((high as u32) << 16 | low as u32))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Network, Reach, is_public};

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_addresses_that_anybody_may_have_are_public() {
        for address in [
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "193.0.0.1",
            "223.255.255.255",
            "2606:4700::1",
            "2001:200::1",
            "2a00:1450::1b",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(ip(address)), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a01:203::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(ip(address)), "{address}");
        }
    }

    #[test]
    fn networks_that_are_named_are_reached_too() {
        let reach = Reach::new(vec![
            Network::new(ip("10.1.0.0"), 16),
            Network::new(ip("fd12::"), 16),
            Network::new(ip("192.168.7.7"), 32),
        ]);
        for address in [
            "10.1.255.1",
            "::ffff:10.1.2.3",
            "fd12::5",
            "192.168.7.7",
            "8.8.8.8",
        ] {
            assert!(reach.permits(ip(address)), "{address}");
        }
        for address in ["10.2.0.1", "fd13::5", "192.168.7.8", "127.0.0.1", "::1"] {
            assert!(!reach.permits(ip(address)), "{address}");
        }
        let all = Reach::new(vec![Network::new(ip("0.0.0.0"), 0)]);
        assert!(all.permits(ip("127.0.0.1")) && !all.permits(ip("::1")));
    }
}
