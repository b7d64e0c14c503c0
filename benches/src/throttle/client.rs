//! Who asks: `redis-benchmark` for all that speak the Redis protocol, and a
//! client of our own for HTTP.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::http;
use crate::redis::free_port;
use crate::server::Server;

pub const CONNECTIONS: usize = 50;

/// How is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub keys: u32,
    /// Requests sent at once over each connection.
    pub pipeline: u32,
}

/// What was reached.
pub struct Speed {
    pub load: Load,
    pub per_s: f64,
}

/// This server, with nothing but the throttle to do.
pub struct Target {
    pub server: Server,
    pub resp: u16,
    pub token: String,
}

impl Target {
    pub async fn start(dir: &Path) -> io::Result<Self> {
        let resp = free_port()?;
        let config = format!("[throttle]\nlisten = \"127.0.0.1:{resp}\"\n");
        let server = Server::start(&dir.join("outflow"), &config).await?;
        let token = fs::read_to_string(server.data().join("admin-token"))?;
        let token = token.trim().to_owned();
        Ok(Self {
            server,
            resp,
            token,
        })
    }
}

/// A throttling command that always grants: limits are far away, so that all
/// contestants do the work of a grant.
pub fn throttle_words(command: &str, load: Load) -> Vec<String> {
    let words = [command, key(load), "1000000", "100000000", "1"];
    words.map(str::to_owned).to_vec()
}

/// `redis-benchmark` puts random numbers in the place of a word.
pub fn key(load: Load) -> &'static str {
    match load.keys {
        1 => "hot",
        _ => "k:__rand_int__",
    }
}

/// Requests a second, by `redis-benchmark`.
pub fn measure(
    port: u16,
    token: Option<&str>,
    load: Load,
    requests: u64,
    words: &[String],
) -> io::Result<f64> {
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    command.args(["-c", &CONNECTIONS.to_string(), "-n", &requests.to_string()]);
    command.args([
        "-P",
        &load.pipeline.to_string(),
        "-r",
        &load.keys.to_string(),
    ]);
    if let Some(token) = token {
        command.args(["-a", token]);
    }
    command.arg("--csv").args(words);
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other("redis-benchmark is missing: apt-get install redis-tools")
        }
        _ => error,
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    // Test, requests a second, then six latencies.
    let fields: Vec<&str> = line.split(',').rev().collect();
    let per_s = fields.get(6).map(|field| field.trim_matches('"'));
    let per_s = per_s.and_then(|field| field.parse::<f64>().ok());
    per_s.filter(|_| output.status.success()).ok_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!("redis-benchmark said: {text}{error}"))
    })
}

/// Acquires a second over HTTP.
pub async fn over_http(target: &Target, keys: u64, requests: u64) -> io::Result<f64> {
    let each = requests / CONNECTIONS as u64;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(target.server.connect().await?);
    }
    let requests: Vec<Vec<u8>> = (0..keys)
        .map(|key| {
            let body = format!(
                r#"{{"limits":[{{"key":"k:{key}","rate":"100000000/s","burst":1000000}}]}}"#
            );
            let path = "/api/v1/throttle/acquire";
            http::request(
                "POST",
                path,
                &target.token,
                "application/json",
                body.as_bytes(),
            )
        })
        .collect();
    let requests = std::sync::Arc::new(requests);
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (no, mut connection) in connections.into_iter().enumerate() {
        let requests = std::sync::Arc::clone(&requests);
        tasks.push(tokio::spawn(async move {
            for turn in 0..each {
                let place = (turn * 7_919 + no as u64 * 193) % requests.len() as u64;
                let request = &requests[usize::try_from(place).unwrap_or(0)];
                connection.call(request).await?.expect(200)?;
            }
            io::Result::Ok(())
        }));
    }
    for task in tasks {
        task.await.map_err(io::Error::other)??;
    }
    Ok((each * CONNECTIONS as u64) as f64 / began.elapsed().as_secs_f64())
}
