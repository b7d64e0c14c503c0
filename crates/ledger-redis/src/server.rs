//! The connection to Redis: one server, the master of several, or a cluster.

use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, Value};
use tokio::time::timeout;

use crate::answer::text;
use crate::script::Scripts;
use crate::settings::{RedisSettings, address};

/// A connection takes several round trips, and more with TLS.
const CONNECT_MAX: Duration = Duration::from_secs(1);

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
        let mut errors = Vec::new();
        for info in &settings.servers {
            let at = address(info);
            let attempt = async {
                let client = Client::open(info.clone()).map_err(|error| error.to_string())?;
                Self::connect_one(client, at.clone(), settings, scripts).await
            };
            match timeout(CONNECT_MAX, attempt).await {
                Ok(Ok(server)) => return Ok(server),
                Ok(Err(error)) => errors.push(format!("{at}: {error}")),
                Err(_) => errors.push(format!("{at}: no answer within {CONNECT_MAX:?}")),
            }
        }
        Err(errors.join("; "))
    }

    async fn connect_one(
        client: Client,
        address: String,
        settings: &RedisSettings,
        scripts: &Scripts,
    ) -> Result<Self, String> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_MAX))
            .set_response_timeout(Some(CONNECT_MAX));
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let connection = connection.await.map_err(|error| error.to_string())?;
        let server = Self {
            wire: Wire::One(connection),
            address,
            client,
            timeout: settings.timeout,
        };
        let mut commands = vec![redis::cmd("ROLE")];
        commands.extend(scripts.load());
        let answers = server.send_all(&commands).await?;
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
        let client = Client::open(first.clone()).map_err(|error| error.to_string())?;
        let cluster = ClusterClient::builder(settings.servers.clone())
            .retries(2)
            .min_retry_wait(1)
            .max_retry_wait(20)
            .connection_timeout(CONNECT_MAX)
            .response_timeout(settings.timeout)
            .build()
            .map_err(|error| error.to_string())?;
        let connection = timeout(CONNECT_MAX, cluster.get_async_connection());
        let connection = connection
            .await
            .map_err(|_| format!("no answer within {CONNECT_MAX:?}"))?;
        Ok(Self {
            wire: Wire::Cluster(connection.map_err(|error| error.to_string())?),
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
        match timeout(self.timeout, self.send_all(commands)).await {
            Ok(answers) => answers,
            Err(_) => Err(format!(
                "{}: no answer within {:?}",
                self.address, self.timeout
            )),
        }
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
                let answers = commands.iter().map(|command| {
                    let mut connection = connection.clone();
                    async move { connection.req_packed_command(command).await }
                });
                let answers = join_all(answers).await.into_iter();
                let answers = answers.map(|answer| match answer {
                    Ok(value) => read(value),
                    Err(error) => Err(Fault::of_error(&error)),
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
