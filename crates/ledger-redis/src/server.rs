//! The connection to Redis: one server, the master of several, or a cluster.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::SingleNodeRoutingInfo;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Pipeline, RedisError};
use redis::{ConnectionAddr, ErrorKind, ServerErrorKind, TlsCertificates, Value};
use tokio::time::timeout;

use crate::answer::text;
use crate::script::Scripts;
use crate::settings::{RedisSettings, address};

/// A connection takes several round trips, and more with TLS.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// How many redirections of a cluster a command follows.
const REDIRECTS_MAX: usize = 2;

/// Errors after which another server may do better, or this one later.
const GONE: [&str; 12] = [
    "READONLY",
    "MASTERDOWN",
    "LOADING",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
    "BUSY",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
];

/// Why a command was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server does not know the script.
    NoScript,
    /// The server cannot serve now.
    Gone(String),
    /// The command failed by itself.
    Broken(String),
}

impl Fault {
    fn of(code: &str, text: String) -> Self {
        match code {
            "NOSCRIPT" => Self::NoScript,
            code if GONE.contains(&code) => Self::Gone(text),
            _ => Self::Broken(text),
        }
    }

    fn of_error(error: &RedisError) -> Self {
        match error.code() {
            Some(code) => Self::of(code, error.to_string()),
            None => Self::Gone(error.to_string()),
        }
    }
}

#[derive(Clone)]
enum Wire {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Server {
    wire: Wire,
    /// Where it is, without what is secret.
    pub address: String,
    /// Whether it may forget counts to save memory.
    pub may_evict: bool,
    /// For subscriptions, which need a connection of their own.
    client: Client,
    timeout: Duration,
}

impl Server {
    /// Connects to whoever is the master. What went wrong, if nobody is.
    pub async fn connect(settings: &RedisSettings, scripts: &Scripts) -> Result<Self, String> {
        if settings.is_cluster {
            return Self::connect_cluster(settings).await;
        }
        // All at once: one that is silent keeps nobody from finding the others.
        let attempts = settings.servers.iter();
        let mut attempts: FuturesUnordered<_> = attempts
            .map(|info| Self::attempt(info, settings, scripts))
            .collect();
        let mut errors = Vec::new();
        while let Some(attempt) = attempts.next().await {
            match attempt {
                Ok(server) => return Ok(server),
                Err(error) => errors.push(error),
            }
        }
        Err(errors.join("; "))
    }

    async fn attempt(
        info: &ConnectionInfo,
        settings: &RedisSettings,
        scripts: &Scripts,
    ) -> Result<Self, String> {
        let at = address(info);
        let attempt = async {
            let client = client(info, settings).map_err(|error| error.to_string())?;
            Self::connect_one(client, at.clone(), settings, scripts).await
        };
        match timeout(CONNECT_MAX, attempt).await {
            Ok(server) => server.map_err(|error| format!("{at}: {error}")),
            Err(_) => Err(format!("{at}: no answer within {CONNECT_MAX:?}")),
        }
    }

    async fn connect_one(
        client: Client,
        address: String,
        settings: &RedisSettings,
        scripts: &Scripts,
    ) -> Result<Self, String> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_MAX))
            .set_response_timeout(Some(settings.timeout.max(CONNECT_MAX)));
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let connection = connection.await.map_err(|error| error.to_string())?;
        let mut server = Self {
            wire: Wire::One(connection),
            address,
            may_evict: false,
            client,
            timeout: settings.timeout,
        };
        let mut memory = redis::cmd("INFO");
        memory.arg("memory");
        let mut commands = vec![redis::cmd("ROLE"), memory];
        commands.extend(scripts.load());
        let answers = server.send_all(&commands).await?;
        if let Some(Ok(memory)) = answers.get(1) {
            server.may_evict = may_evict(&text(Some(memory)).unwrap_or_default());
        }
        match answers.first() {
            Some(Ok(Value::Array(role))) => {
                let role = text(role.first()).unwrap_or_default();
                if role != "master" {
                    return Err(format!("it is a {role}, not the master"));
                }
            }
            // Not everybody may ask; a replica says so when it is written to.
            Some(Err(Fault::Broken(_))) => {}
            Some(Err(Fault::Gone(error))) if error.contains("NOPERM") => {}
            Some(Err(Fault::Gone(error))) => return Err(error.clone()),
            _ => return Err("it does not answer like Redis".to_owned()),
        }
        Ok(server)
    }

    async fn connect_cluster(settings: &RedisSettings) -> Result<Self, String> {
        let first = settings.servers.first().ok_or("no server is named")?;
        let client = client(first, settings).map_err(|error| error.to_string())?;
        let mut cluster = ClusterClient::builder(settings.servers.clone())
            // The client would also repeat a command whose answer got lost, and
            // a script that credits or debits must not run twice.
            .retries(0)
            .connection_timeout(CONNECT_MAX)
            .response_timeout(settings.timeout);
        if let Some(certificates) = certificates(settings) {
            cluster = cluster.certs(certificates);
        }
        let cluster = cluster.build().map_err(|error| error.to_string())?;
        let connection = timeout(CONNECT_MAX, cluster.get_async_connection());
        let connection = connection
            .await
            .map_err(|_| format!("no answer within {CONNECT_MAX:?}"))?;
        Ok(Self {
            wire: Wire::Cluster(connection.map_err(|error| error.to_string())?),
            may_evict: false,
            address: settings
                .servers
                .iter()
                .map(address)
                .collect::<Vec<_>>()
                .join(","),
            client,
            timeout: settings.timeout,
        })
    }

    /// Whether servers behind it fail one by one.
    pub const fn is_cluster(&self) -> bool {
        matches!(self.wire, Wire::Cluster(_))
    }

    /// Sends commands at once. What went wrong, if the server is not there.
    pub async fn send(&self, commands: &[Cmd]) -> Result<Vec<Result<Value, Fault>>, String> {
        if self.is_cluster() {
            // There each command has a time-out of its own.
            return self.send_all(commands).await;
        }
        match timeout(self.timeout, self.send_all(commands)).await {
            Ok(answers) => answers,
            Err(_) => Err(format!("{}: {}", self.address, self.silence())),
        }
    }

    fn silence(&self) -> String {
        format!("no answer within {:?}", self.timeout)
    }

    async fn send_all(&self, commands: &[Cmd]) -> Result<Vec<Result<Value, Fault>>, String> {
        match &self.wire {
            Wire::One(connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                let mut connection = connection.clone();
                let answers = connection.req_packed_commands(&pipeline, 0, commands.len());
                let answers = answers.await.map_err(|error| self.failure(&error))?;
                Ok(answers.into_iter().map(read).collect())
            }
            Wire::Cluster(connection) => {
                // Each goes to the server of its slot, over one connection each.
                let answers = commands
                    .iter()
                    .map(|command| timeout(self.timeout, follow(connection.clone(), command)));
                let answers = join_all(answers).await.into_iter();
                let answers = answers.map(|answer| match answer {
                    Ok(Ok(value)) => read(value),
                    Ok(Err(error)) => Err(Fault::of_error(&error)),
                    Err(_) => Err(Fault::Gone(self.silence())),
                });
                Ok(answers.collect())
            }
        }
    }

    fn failure(&self, error: &RedisError) -> String {
        format!("{}: {error}", self.address)
    }

    /// A connection that hears what is published.
    pub async fn subscribe(&self, channel: &str) -> Result<PubSub, String> {
        let subscribe = async {
            let mut connection = self.client.get_async_pubsub().await?;
            connection.subscribe(channel).await?;
            Ok(connection)
        };
        match timeout(CONNECT_MAX, subscribe).await {
            Ok(result) => result.map_err(|error: RedisError| self.failure(&error)),
            Err(_) => Err(format!(
                "{}: no answer within {CONNECT_MAX:?}",
                self.address
            )),
        }
    }
}

/// Sends a command to the server of its slot. A server that names another one
/// has not executed it, so only then it is sent again.
async fn follow(mut connection: ClusterConnection, command: &Cmd) -> Result<Value, RedisError> {
    let mut answer = connection.req_packed_command(command).await;
    for _ in 0..REDIRECTS_MAX {
        let Err(error) = &answer else { break };
        answer = match (error.kind(), error.redirect_node()) {
            // The client has learnt of the other server by this answer.
            (ErrorKind::Server(ServerErrorKind::Moved), _) => {
                connection.req_packed_command(command).await
            }
            (ErrorKind::Server(ServerErrorKind::Ask), Some((node, _))) => {
                let Some(route) = route_to(node) else { break };
                let mut pipeline = Pipeline::with_capacity(2);
                pipeline.cmd("ASKING").add_command(command.clone());
                let answers = connection.route_pipeline(pipeline, 1, 1, route).await;
                answers.map(|values| values.into_iter().next().unwrap_or(Value::Nil))
            }
            _ => break,
        };
    }
    answer
}

/// The way to a server that another one named as `host:port`.
fn route_to(node: &str) -> Option<SingleNodeRoutingInfo> {
    let (host, port) = node.rsplit_once(':')?;
    Some(SingleNodeRoutingInfo::ByAddress {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

/// Whom to trust besides the usual authorities' certificates.
fn certificates(settings: &RedisSettings) -> Option<TlsCertificates> {
    let root_cert = settings.authority.clone()?;
    Some(TlsCertificates {
        client_tls: None,
        root_cert: Some(root_cert),
    })
}

fn client(info: &ConnectionInfo, settings: &RedisSettings) -> Result<Client, RedisError> {
    match certificates(settings) {
        Some(certificates) if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) => {
            Client::build_with_tls(info.clone(), certificates)
        }
        _ => Client::open(info.clone()),
    }
}

/// Whether a server whose memory is like this evicts keys.
fn may_evict(memory: &str) -> bool {
    let field = |name: &str| {
        let mut lines = memory.lines();
        lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
    };
    field("maxmemory").is_some_and(|bytes| bytes != "0")
        && field("maxmemory_policy").is_some_and(|policy| policy != "noeviction")
}

fn read(value: Value) -> Result<Value, Fault> {
    match value {
        Value::ServerError(error) => {
            let details = error.details().unwrap_or_default();
            Err(Fault::of(
                error.code(),
                format!("{}: {details}", error.code()),
            ))
        }
        value => Ok(value),
    }
}
