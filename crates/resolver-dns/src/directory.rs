//! Who takes whose mail: for whoever accepts messages and for whoever delivers
//! them.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::reply::{Reply, Stage};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::Answer;
use crate::cache::{Cache, Remembered};
use crate::domain::{literal, normal};
use crate::health::Health;
use crate::lookups::{AddressOrder, Failure, Lookups, SetupError};
use crate::reach::Reach;
use crate::seen::Seen;
use crate::sts::{Mode, Policies, Policy, StsSettings};
use crate::table::Table;

/// Servers of a domain that are looked at.
const SERVERS_MAX: usize = 5;
/// After this long a domain that could not be resolved is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// The first pause between two tries; it doubles.
const PAUSE: Duration = Duration::from_millis(250);

/// How DNS is asked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whom to ask; the system's servers if none.
    pub servers: Vec<SocketAddr>,
    /// How many questions at once.
    pub lookups_max: usize,
    /// How long the messages of a domain wait for an answer before the domain
    /// counts as a destination of its own.
    pub patience: Duration,
    /// How many domains are remembered.
    pub cache_max: usize,
    /// In which order the addresses of a server are tried.
    pub order: AddressOrder,
    /// How the policies of domains are asked for (MTA-STS), if they are.
    pub sts: Option<StsSettings>,
    /// Which addresses may be connected to.
    pub reach: Reach,
}

/// A server that takes a domain's mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub host: String,
    /// Its addresses, in the order in which they are tried.
    pub addresses: Vec<IpAddr>,
    /// How many messages its owner wants on one connection, if that is known.
    pub messages_max: Option<u32>,
    /// Whether its domain demands a certificate that is valid for its name.
    pub must_verify: bool,
}

/// Whether a server takes a domain's mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It does not, or its domain does not want it to.
    No,
    /// It does.
    Yes,
    /// It does, over a connection whose certificate was verified.
    IfVerified,
}

/// Why there are no servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoServers {
    /// The domain takes no mail: this is what a message to it is told.
    Never(Reply),
    /// It cannot be said now.
    NotNow(String),
    /// There are some, and the domain's own policy wants none of them.
    Policy(String),
}

struct State {
    cache: Cache,
    seen: Seen,
    health: Health,
}

/// Who takes whose mail.
pub struct Directory {
    table: Table,
    lookups: Option<Arc<Lookups>>,
    policies: Option<Arc<Policies>>,
    runtime: Handle,
    patience: Duration,
    lookups_max: usize,
    reach: Reach,
    turn: AtomicUsize,
    is_asking: AtomicBool,
    state: Mutex<State>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Directory")
    }
}

impl Directory {
    /// Knows the table, and asks DNS for the rest on `runtime`. Without
    /// settings nobody is asked: a domain that is not in the table is a
    /// destination of its own.
    pub fn new(
        table: Table,
        settings: Option<&Settings>,
        runtime: Handle,
    ) -> Result<Arc<Self>, SetupError> {
        let _entered = runtime.enter();
        let lookups =
            settings.map(|it| Lookups::new(&it.servers, it.lookups_max, it.cache_max, it.order));
        let lookups = lookups.transpose()?.map(Arc::new);
        let policies = settings.and_then(|it| {
            let (sts, lookups) = (it.sts.as_ref()?, Arc::clone(lookups.as_ref()?));
            let reach = it.reach.clone();
            Some(Policies::new(
                sts,
                lookups,
                reach,
                it.cache_max,
                runtime.clone(),
            ))
        });
        let policies = policies.transpose();
        Ok(Arc::new(Self {
            table,
            lookups,
            policies: policies.map_err(|error| SetupError(error.to_string()))?,
            patience: settings.map_or(Duration::ZERO, |it| it.patience),
            lookups_max: settings.map_or(1, |it| it.lookups_max.max(1)),
            reach: settings.map_or_else(Reach::default, |it| it.reach.clone()),
            turn: AtomicUsize::new(0),
            is_asking: AtomicBool::new(false),
            state: Mutex::new(State {
                cache: Cache::new(settings.map_or(1, |it| it.cache_max)),
                seen: Seen::default(),
                health: Health::default(),
            }),
            runtime: runtime.clone(),
        }))
    }

    /// From now on DNS is asked what domains roll up to, if there are settings
    /// for it. Before, a domain that is not in the table is a destination of its
    /// own, so that a machine that only tries things out asks nobody.
    pub fn begin_to_ask(&self) {
        self.is_asking
            .store(self.lookups.is_some(), Ordering::Relaxed);
    }

    /// How many questions may be asked at once.
    pub const fn lookups_max(&self) -> usize {
        self.lookups_max
    }

    /// What a domain rolls up to, if that is known. An answer that is old still
    /// counts, while it is asked for again.
    pub fn known(self: &Arc<Self>, domain: &str) -> Option<Destination> {
        let domain = normal(domain);
        if let Some(owner) = self.table.owner_of(&domain) {
            let destination = Destination::isp(owner.clone());
            self.lock().seen.note(&destination, &domain);
            return Some(destination);
        }
        if !self.is_asking.load(Ordering::Relaxed) || literal(&domain).is_some() {
            return Some(own(&domain));
        }
        let now = Instant::now();
        let mut state = self.lock();
        let answer = match state.cache.get(&domain, now) {
            Remembered::Fresh(answer) => answer,
            Remembered::Stale { answer, due } => {
                if due {
                    state.cache.postpone(&domain, now + ASK_AGAIN);
                    self.refresh(domain.clone());
                }
                answer
            }
            Remembered::Nothing => return None,
        };
        let destination = answer.destination(&self.table, &domain);
        state.seen.note(&destination, &domain);
        Some(destination)
    }

    fn refresh(self: &Arc<Self>, domain: String) {
        let here = Arc::clone(self);
        // If it fails, the old answer stays and is due again later.
        self.runtime
            .spawn(async move { here.look_up(&domain).await.map(drop) });
    }

    /// What a domain rolls up to. Asks for a while; a domain of which nothing
    /// can be learnt is a destination of its own until it is asked for again.
    pub async fn resolve(self: &Arc<Self>, domain: &str) -> Destination {
        if let Some(destination) = self.known(domain) {
            return destination;
        }
        let domain = normal(domain);
        let deadline = Instant::now() + self.patience;
        let mut pause = PAUSE;
        loop {
            match timeout_at(deadline, self.look_up(&domain)).await {
                Ok(Ok(answer)) => return answer.destination(&self.table, &domain),
                Ok(Err(_)) => (),
                Err(_) => self.lock().health.silent(Instant::now()),
            }
            if Instant::now() + pause >= deadline || self.is_away() {
                return self.give_up_on(&domain);
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Whether nobody has answered for as long as messages wait.
    pub fn is_away(&self) -> bool {
        let now = Instant::now();
        self.lock().health.is_away(now, self.patience)
    }

    /// A domain becomes a destination of its own, for now.
    pub fn give_up_on(&self, domain: &str) -> Destination {
        let domain = normal(domain);
        let mut state = self.lock();
        let unknown = Arc::new(Answer::Unknown);
        state
            .cache
            .put(&domain, unknown, Instant::now() + ASK_AGAIN);
        own(&domain)
    }

    /// A domain by which the servers of a destination can be found, if one is
    /// known.
    pub fn domain_of(&self, destination: &Destination) -> Option<String> {
        let seen = self.lock().seen.next(destination);
        seen.or_else(|| match destination.kind {
            DestinationKind::Isp => {
                let example = self.table.example_of(&destination.name);
                example.map(str::to_owned)
            }
            _ => None,
        })
    }

    /// Whether a server takes a domain's mail.
    pub async fn takes(&self, host: &str, domain: &str) -> Result<Takes, NoServers> {
        let domain = normal(domain);
        let hosts = self.hosts_of(&domain).await?;
        if !hosts.iter().any(|known| known == host) {
            return Ok(Takes::No);
        }
        Ok(match self.enforced(&domain).await {
            None => Takes::Yes,
            Some(policy) if policy.names(host) => Takes::IfVerified,
            Some(_) => Takes::No,
        })
    }

    /// The servers that take a domain's mail, the best first; those that are
    /// as good as each other take turns.
    pub async fn servers_of(&self, domain: &str) -> Result<Vec<Server>, NoServers> {
        let domain = normal(domain);
        let mut hosts = self.hosts_of(&domain).await?;
        let policy = self.enforced(&domain).await;
        if let Some(policy) = &policy {
            hosts.retain(|host| policy.names(host));
            if hosts.is_empty() {
                let text = format!("MTA-STS: no server of {domain} matches its policy");
                return Err(NoServers::Policy(text));
            }
        }
        let mut servers = Vec::new();
        let (mut why, mut out_of_reach) = (None, None);
        for host in hosts.into_iter().take(SERVERS_MAX) {
            let mut addresses = match self.addresses(&host).await {
                Ok(addresses) => addresses,
                Err(failure) => {
                    why = Some(failure.text);
                    continue;
                }
            };
            let first = addresses.first().copied();
            addresses.retain(|address| self.reach.permits(*address));
            match first {
                Some(first) if addresses.is_empty() => out_of_reach = Some((host, first)),
                Some(_) => servers.push(Server {
                    messages_max: self.messages_max(&host),
                    host,
                    addresses,
                    must_verify: policy.is_some(),
                }),
                None => (),
            }
        }
        match (servers.is_empty(), why, out_of_reach) {
            (false, ..) => Ok(servers),
            (true, Some(why), _) => Err(NoServers::NotNow(why)),
            (true, None, Some((host, address))) => Err(not_public(&host, address)),
            (true, None, None) => {
                let why = "its servers have no addresses".to_owned();
                Err(NoServers::NotNow(why))
            }
        }
    }

    /// The policy that a domain wants to be kept.
    async fn enforced(&self, domain: &str) -> Option<Arc<Policy>> {
        let policies = self.policies.as_ref().filter(|_| literal(domain).is_none());
        let policy = policies?.of(domain).await;
        policy.filter(|policy| policy.mode == Mode::Enforce)
    }

    fn messages_max(&self, host: &str) -> Option<u32> {
        let owner = self.table.host_of(host)?;
        self.table.messages_per_connection(owner)
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Failure> {
        if let Some(address) = literal(host) {
            return Ok(vec![address]);
        }
        match &self.lookups {
            Some(lookups) => {
                let found = lookups.addresses(host).await;
                self.heard(found.as_ref().err());
                found
            }
            None => Ok(Vec::new()),
        }
    }

    async fn hosts_of(&self, domain: &str) -> Result<Vec<String>, NoServers> {
        if literal(domain).is_some() {
            return Ok(vec![domain.to_owned()]);
        }
        let remembered = self.lock().cache.get(domain, Instant::now());
        let answer = match remembered {
            Remembered::Fresh(answer) if *answer != Answer::Unknown => answer,
            _ => {
                let asked = self.look_up(domain).await;
                asked.map_err(|failure| NoServers::NotNow(failure.text))?
            }
        };
        let never = |code, text: &str| {
            let reply = Reply::said(Stage::Recipient, code, text);
            Err(NoServers::Never(reply))
        };
        match &*answer {
            Answer::Exchangers(hosts) => Ok(self.in_turn(hosts)),
            Answer::Itself => Ok(vec![domain.to_owned()]),
            Answer::NullMx => never(
                556,
                "5.1.10 the domain says that it takes no mail (null MX)",
            ),
            Answer::NoDomain => never(550, "5.1.2 the domain does not exist (NXDOMAIN)"),
            Answer::NoServers => never(
                550,
                "5.4.4 the domain has neither mail servers nor an address",
            ),
            Answer::Unknown => Err(NoServers::NotNow("DNS does not answer".to_owned())),
        }
    }

    /// The best first; among those that are as good, another one each time.
    fn in_turn(&self, hosts: &[(u16, String)]) -> Vec<String> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let groups = hosts.chunk_by(|(one, _), (other, _)| one == other);
        let turned = groups.flat_map(|group| {
            let (before, after) = group.split_at(turn % group.len().max(1));
            after.iter().chain(before).map(|(_, host)| host.clone())
        });
        turned.collect()
    }

    async fn look_up(&self, domain: &str) -> Result<Arc<Answer>, Failure> {
        let Some(lookups) = &self.lookups else {
            return Err(Failure {
                text: "lookups are switched off (dns.lookups)".to_owned(),
                is_silence: false,
            });
        };
        let found = lookups.mail(domain).await;
        self.heard(found.as_ref().err());
        let (answer, kept) = found?;
        let answer = Arc::new(answer);
        let mut state = self.lock();
        let until = Instant::now() + kept;
        state.cache.put(domain, Arc::clone(&answer), until);
        let owner = self.table.owner_of(domain).cloned();
        let destination = match owner {
            Some(owner) => Destination::isp(owner),
            None => answer.destination(&self.table, domain),
        };
        state.seen.note(&destination, domain);
        Ok(answer)
    }

    fn heard(&self, failure: Option<&Failure>) {
        let mut state = self.lock();
        match failure {
            Some(failure) if failure.is_silence => state.health.silent(Instant::now()),
            _ => state.health.answered(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Another answer may come one day, as for a domain that takes no mail: nobody is
/// better off for waiting.
fn not_public(host: &str, address: IpAddr) -> NoServers {
    let text = format!("5.4.4 {host} is at {address}, which is not public (dns.allowed_networks)");
    NoServers::Never(Reply::said(Stage::Recipient, 550, &text))
}

fn own(domain: &str) -> Destination {
    Destination::new(DestinationKind::Host, domain)
}
