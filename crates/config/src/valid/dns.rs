//! Who hosts a domain, and how DNS is asked.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use outflow_core::time::Nanos;

use super::StartAccount;
use super::machine::span;
use crate::account::TransportSettings;
use crate::figure;
use crate::problem::Problems;
use crate::raw::{RawDestinations, RawDns};

/// How DNS is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dns {
    /// Whether it is asked at all.
    pub lookups: Lookups,
    /// Whom; the system's servers if none.
    pub servers: Vec<SocketAddr>,
    /// How many questions at once.
    pub lookups_max: usize,
    /// How long messages wait while it fails.
    pub patience: Nanos,
    /// How many domains are remembered.
    pub cache_max: usize,
    /// Which addresses of a server are tried.
    pub addresses: Addresses,
    /// Whether the policies of domains are kept (MTA-STS).
    pub mta_sts: bool,
    /// Networks that are not public and may be connected to all the same: an
    /// address, and how many of its first bits count.
    pub allowed_networks: Vec<(IpAddr, u8)>,
}

/// Whether DNS is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookups {
    /// As soon as there is an account that is no sandbox.
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

/// Which addresses of a server are tried, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Addresses {
    Ipv4First,
    Ipv6First,
    Ipv4Only,
    Ipv6Only,
}

/// Who hosts which domains, and how they like to be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destinations {
    /// A file of mailbox providers.
    pub file: Option<PathBuf>,
    /// Whether the policies that come with the program hold.
    pub policies: bool,
}

pub(super) fn dns(raw: &RawDns, accounts: &[StartAccount], problems: &mut Problems) -> Dns {
    let is_mx = |start: &StartAccount| matches!(start.account.transport, TransportSettings::Mx(_));
    if raw.lookups == "never" && accounts.iter().any(is_mx) {
        problems.add(
            "/dns/lookups",
            "an mx account finds servers by DNS: write \"auto\", or give it a relay",
        );
    }
    Dns {
        lookups: match raw.lookups.as_str() {
            "always" => Lookups::Always,
            "never" => Lookups::Never,
            _ => Lookups::Auto,
        },
        servers: raw
            .servers
            .iter()
            .filter_map(|it| it.parse().ok())
            .collect(),
        lookups_max: raw.lookups_max,
        patience: span(&raw.patience),
        cache_max: raw.cache_max,
        addresses: match raw.addresses.as_str() {
            "ipv6_first" => Addresses::Ipv6First,
            "ipv4" => Addresses::Ipv4Only,
            "ipv6" => Addresses::Ipv6Only,
            _ => Addresses::Ipv4First,
        },
        mta_sts: raw.mta_sts,
        allowed_networks: raw
            .allowed_networks
            .iter()
            .filter_map(|it| figure::network(it))
            .collect(),
    }
}

pub(super) fn destinations(raw: &RawDestinations) -> Destinations {
    Destinations {
        file: raw.file.as_ref().map(PathBuf::from),
        policies: raw.policies,
    }
}
