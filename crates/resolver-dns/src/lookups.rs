//! Questions to DNS. All that is known of the library that asks is here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use tokio::sync::Semaphore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::answer::Answer;
use crate::domain::normal;

/// How long one question to one server may take.
const QUESTION: Duration = Duration::from_secs(3);
/// How long answers are believed, whatever they say.
const KEPT_MIN: Duration = Duration::from_secs(1);
const KEPT_MAX: Duration = Duration::from_secs(86_400);
/// How long a refusal is believed: at most, and if it does not say.
const REFUSAL_MAX: Duration = Duration::from_secs(3_600);
const REFUSAL_USUAL: Duration = Duration::from_secs(60);

/// In which order the addresses of a server are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressOrder {
    /// IPv4, then IPv6.
    #[default]
    Ipv4First,
    /// IPv6, then IPv4.
    Ipv6First,
    /// Only IPv4.
    Ipv4Only,
    /// Only IPv6.
    Ipv6Only,
}

impl AddressOrder {
    const fn types(self) -> &'static [RecordType] {
        match self {
            Self::Ipv4First => &[RecordType::A, RecordType::AAAA],
            Self::Ipv6First => &[RecordType::AAAA, RecordType::A],
            Self::Ipv4Only => &[RecordType::A],
            Self::Ipv6Only => &[RecordType::AAAA],
        }
    }
}

/// Why DNS cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("DNS cannot be asked: {0}")]
pub struct SetupError(pub(crate) String);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// In a few words, without names: rules read them.
    pub text: String,
    /// Whether nobody answered at all.
    pub is_silence: bool,
}

/// What came of one question.
enum Said {
    Records(Vec<RData>, Duration),
    NoRecords(Duration),
    NoDomain(Duration),
}

/// Asks DNS, at most so much at once.
pub(crate) struct Lookups {
    resolver: TokioResolver,
    turns: Semaphore,
    order: AddressOrder,
}

impl Lookups {
    /// Asks these servers, or those of the system if there are none.
    pub fn new(
        servers: &[SocketAddr],
        lookups_max: usize,
        cache_max: usize,
        order: AddressOrder,
    ) -> Result<Self, SetupError> {
        let (config, mut options) = match servers {
            [] => system(),
            servers => (named(servers), ResolverOpts::default()),
        };
        options.timeout = QUESTION;
        options.attempts = 1;
        options.cache_size = u64::try_from(cache_max).unwrap_or(u64::MAX);
        options.use_hosts_file = ResolveHosts::Never;
        options.positive_max_ttl = Some(KEPT_MAX);
        options.negative_max_ttl = Some(REFUSAL_MAX);
        options.max_active_requests = options.max_active_requests.max(lookups_max);
        let failed = |error: &dyn std::fmt::Display| SetupError(error.to_string());
        let provider = TokioRuntimeProvider::default();
        let builder = TokioResolver::builder_with_config(config, provider)
            .with_options(options)
            .with_tls_config(no_tls().map_err(|error| failed(&error))?);
        Ok(Self {
            resolver: builder.build().map_err(|error| failed(&error))?,
            turns: Semaphore::new(lookups_max.clamp(1, 10_000)),
            order,
        })
    }

    /// What takes a domain's mail, and how long that holds.
    pub async fn mail(&self, domain: &str) -> Result<(Answer, Duration), Failure> {
        let records = match self.ask(domain, RecordType::MX).await? {
            Said::NoDomain(kept) => return Ok((Answer::NoDomain, kept)),
            Said::NoRecords(kept) => return self.itself(domain, kept).await,
            Said::Records(records, kept) => (records, kept),
        };
        let (records, kept) = records;
        let hosts = records.into_iter().filter_map(|record| match record {
            RData::MX(mx) => Some((mx.preference, normal(&mx.exchange.to_ascii()))),
            _ => None,
        });
        match Answer::of_records(hosts.collect()) {
            // Only an alias came back.
            Answer::Itself => self.itself(domain, kept).await,
            answer => Ok((answer, kept)),
        }
    }

    /// Whether a domain without servers has an address.
    async fn itself(&self, domain: &str, kept: Duration) -> Result<(Answer, Duration), Failure> {
        for kind in [RecordType::A, RecordType::AAAA] {
            if let Said::Records(_, kept) = self.ask(domain, kind).await? {
                return Ok((Answer::Itself, kept));
            }
        }
        Ok((Answer::NoServers, kept))
    }

    /// The addresses of a server, in the order in which they are tried.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        let (mut found, mut failure) = (Vec::new(), None);
        for kind in self.order.types() {
            match self.ask(host, *kind).await {
                Ok(Said::Records(records, _)) => {
                    found.extend(records.into_iter().filter_map(|record| match record {
                        RData::A(address) => Some(IpAddr::V4(address.0)),
                        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
                        _ => None,
                    }));
                }
                Ok(Said::NoRecords(_) | Said::NoDomain(_)) => (),
                Err(why) => failure = Some(why),
            }
        }
        match failure {
            Some(failure) if found.is_empty() => Err(failure),
            _ => Ok(found),
        }
    }

    /// The texts of a name, each in one piece, and how long they hold.
    pub async fn texts(&self, name: &str) -> Result<(Vec<Vec<u8>>, Duration), Failure> {
        let (records, kept) = match self.ask(name, RecordType::TXT).await? {
            Said::NoDomain(kept) | Said::NoRecords(kept) => (Vec::new(), kept),
            Said::Records(records, kept) => (records, kept),
        };
        let texts = records.into_iter().filter_map(|record| match record {
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        });
        Ok((texts.collect(), kept))
    }

    /// The mail servers of a name as they are written, each with its preference;
    /// "" is the root.
    pub async fn exchangers(&self, name: &str) -> Result<Vec<(u16, String)>, Failure> {
        let Said::Records(records, _) = self.ask(name, RecordType::MX).await? else {
            return Ok(Vec::new());
        };
        let hosts = records.into_iter().filter_map(|record| match record {
            RData::MX(mx) => Some((mx.preference, normal(&mx.exchange.to_ascii()))),
            _ => None,
        });
        Ok(hosts.collect())
    }

    /// The names of an address.
    pub async fn names(&self, address: IpAddr) -> Result<Vec<String>, Failure> {
        let place = normal(&Name::from(address).to_ascii());
        let Said::Records(records, _) = self.ask(&place, RecordType::PTR).await? else {
            return Ok(Vec::new());
        };
        let names = records.into_iter().filter_map(|record| match record {
            RData::PTR(name) => Some(normal(&name.0.to_ascii())),
            _ => None,
        });
        Ok(names.collect())
    }

    async fn ask(&self, name: &str, kind: RecordType) -> Result<Said, Failure> {
        // It is closed only when it is dropped.
        let _turn = self.turns.acquire().await;
        // With the dot at the end no domain of this machine is tried behind it.
        let lookup = self.resolver.lookup(format!("{name}."), kind).await;
        match lookup {
            Ok(lookup) => {
                let kept = lookup
                    .valid_until()
                    .saturating_duration_since(Instant::now());
                let kept = kept.clamp(KEPT_MIN, KEPT_MAX);
                let records = lookup.answers().iter();
                let records = records.filter(|record| record.record_type() == kind);
                let records: Vec<RData> = records.map(|record| record.data.clone()).collect();
                Ok(match records.is_empty() {
                    true => Said::NoRecords(kept),
                    false => Said::Records(records, kept),
                })
            }
            Err(NetError::Dns(DnsError::NoRecordsFound(none))) => {
                let kept = none.negative_ttl.map_or(REFUSAL_USUAL, |secs| {
                    Duration::from_secs(u64::from(secs)).clamp(KEPT_MIN, REFUSAL_MAX)
                });
                match none.response_code {
                    ResponseCode::NXDomain => Ok(Said::NoDomain(kept)),
                    ResponseCode::NoError => Ok(Said::NoRecords(kept)),
                    code => Err(refused(code)),
                }
            }
            Err(NetError::Dns(DnsError::ResponseCode(code))) => Err(refused(code)),
            Err(NetError::Proto(error)) => Err(Failure {
                text: format!("DNS cannot be asked for this name: {error}"),
                is_silence: false,
            }),
            Err(error) => Err(Failure {
                text: format!("DNS does not answer: {}", error.as_metrics_label()),
                is_silence: true,
            }),
        }
    }
}

fn refused(code: ResponseCode) -> Failure {
    Failure {
        text: format!("DNS failed: {code}"),
        is_silence: false,
    }
}

/// What the system says; without a word of it, a server on this machine, as the
/// C library does.
fn system() -> (ResolverConfig, ResolverOpts) {
    let usual = || {
        let local = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let config = ResolverConfig::from_name_servers(vec![local]);
        (config, ResolverOpts::default())
    };
    read_system_conf()
        .ok()
        .filter(|(config, _)| !config.name_servers().is_empty())
        .unwrap_or_else(usual)
}

fn named(servers: &[SocketAddr]) -> ResolverConfig {
    let servers = servers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|mut connection| {
            connection.port = server.port();
            connection
        });
        NameServerConfig::new(server.ip(), true, connections.to_vec())
    });
    ResolverConfig::from_name_servers(servers.collect())
}

/// Servers are asked in the open. Said here, since the library would read the
/// system's certificates, and fail where there are none.
fn no_tls() -> Result<ClientConfig, tokio_rustls::rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let roots = RootCertStore::empty();
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
