//! What is judged: a domain, and what settings and a running server say.

use std::net::IpAddr;

use crate::address::is_public;

/// All that is known without asking DNS.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The domain of authors.
    pub domain: String,
    /// The domain of return paths, if it is another.
    pub bounce_domain: Option<String>,
    /// Who sends.
    pub senders: Vec<Sender>,
    /// What listens.
    pub listeners: Vec<Listener>,
    /// Rates in force, beside those that are known.
    pub paces: Vec<Pace>,
    /// How far new addresses are.
    pub warm_up: WarmUp,
    /// Who sends text messages.
    pub texters: Vec<Texter>,
    /// The time, in seconds since 1970.
    pub now_s: i64,
}

/// An account that sends mail.
#[derive(Clone, Debug)]
pub struct Sender {
    /// What it is called.
    pub account: String,
    /// How its mail goes.
    pub way: Way,
    /// What it calls itself.
    pub helo: String,
    /// The key that it signs with.
    pub key: Option<Key>,
}

/// How mail goes.
#[derive(Clone, Debug)]
pub enum Way {
    /// Straight to the servers of recipients.
    Direct {
        /// From these addresses, as receivers see them; none if nobody said.
        addresses: Vec<IpAddr>,
        /// To this port.
        port: u16,
    },
    /// Through somebody else's server.
    Relay {
        /// Its name.
        host: String,
    },
}

/// A key for signatures.
#[derive(Clone, Debug)]
pub struct Key {
    /// The domain that vouches.
    pub domain: String,
    /// Which of its keys.
    pub selector: String,
    /// Its public half as a record, or why the key cannot be read.
    pub record: Result<String, String>,
}

/// Something that listens.
#[derive(Clone, Debug)]
pub struct Listener {
    /// As its settings call it.
    pub part: String,
    /// Where.
    pub address: String,
    /// Whether only this machine reaches it.
    pub is_local: bool,
    /// Its certificate in DER; none if it has none.
    pub certificate: Option<Result<Vec<u8>, String>>,
}

/// How fast an account may send to a provider, beside what is known of it.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The provider.
    pub provider: String,
    /// The account.
    pub account: String,
    /// What is in force.
    pub ours: Figures,
    /// What the provider is known to take from one address.
    pub known: Figures,
    /// Whether messages go there now; unknown without a server.
    pub has_traffic: Option<bool>,
}

/// How fast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Messages a day at the rate; none if there is no rate.
    pub per_day: Option<u64>,
    /// The rate as people write it.
    pub rate: Option<String>,
    /// Connections at once.
    pub connections: Option<u32>,
}

/// How far new addresses are.
#[derive(Clone, Debug)]
pub enum WarmUp {
    /// Nobody knows, for this reason.
    Unknown(String),
    /// These plans are under way or done.
    Plans(Vec<Plan>),
}

impl Default for WarmUp {
    fn default() -> Self {
        Self::Unknown("no server was asked".to_owned())
    }
}

/// A warm-up of an address.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of what.
    pub about: String,
    /// Where it is, in words.
    pub state: String,
    /// Whether it stands still.
    pub is_held: bool,
}

/// An account that sends text messages to the US.
#[derive(Clone, Debug)]
pub struct Texter {
    /// What it is called.
    pub account: String,
    /// The brand that it is registered for.
    pub brand: Option<String>,
}

impl Sender {
    /// The addresses that receivers see, as far as they are known.
    pub fn public_addresses(&self) -> Vec<IpAddr> {
        match &self.way {
            Way::Direct { addresses, .. } => {
                let addresses = addresses.iter().copied();
                addresses.filter(|it| is_public(*it)).collect()
            }
            Way::Relay { .. } => Vec::new(),
        }
    }
}

impl Subject {
    /// All sending addresses that receivers see and that are known, each once.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let senders = self.senders.iter();
        let mut all: Vec<IpAddr> = senders.flat_map(Sender::public_addresses).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
