//! The real server: the `outflow` binary of the same build, in a directory and
//! on a port of its own.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{self, Connection};

/// How long a start or an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory that goes when it is dropped. It lies where temporary files do
/// (`TMPDIR`); figures about durability mean something only on a real disk.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> io::Result<Self> {
        let unique = format!("outflow-bench-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes that a process wrote.
#[derive(Clone, Copy)]
pub struct Written {
    /// Pieces of files, as large as the kernel keeps them, that were changed and
    /// have to go to the disk.
    pub to_disk: u64,
    /// What it handed over in calls, also to sockets.
    pub by_calls: u64,
}

/// A running server. It is killed when it is dropped.
pub struct Server {
    child: Child,
    config: Option<PathBuf>,
    data: PathBuf,
    pub address: SocketAddr,
    /// Where it takes mail over SMTP, if it does.
    pub smtp: Option<SocketAddr>,
    /// Where it takes commands over the Redis protocol, if it does.
    pub throttle: Option<SocketAddr>,
    pub token: String,
}

impl Server {
    /// Starts a server in `dir`, with all settings as they are by default
    /// unless `config` says otherwise, and waits until it is ready.
    pub async fn start(dir: &Path, config: &str) -> io::Result<Self> {
        let data = dir.join("data");
        fs::create_dir_all(dir)?;
        let path = dir.join("outflow.toml");
        let config = match config {
            "" => None,
            text => Some(fs::write(&path, text).map(|()| path)?),
        };
        let (child, listens) = spawn(&data, config.as_deref())?;
        let token = fs::read_to_string(data.join("admin-token"))?;
        let server = Self {
            child,
            config,
            data,
            address: listens.address,
            smtp: listens.smtp,
            throttle: listens.throttle,
            token: token.trim().to_owned(),
        };
        server.wait_ready().await?;
        Ok(server)
    }

    /// Kills it as a power cut would, starts it again, and says how long it
    /// took from `exec` until it was ready.
    pub async fn kill_and_restart(&mut self) -> io::Result<Duration> {
        self.child.kill()?;
        self.child.wait()?;
        let began = Instant::now();
        let (child, listens) = spawn(&self.data, self.config.as_deref())?;
        (self.child, self.address, self.smtp) = (child, listens.address, listens.smtp);
        self.throttle = listens.throttle;
        self.wait_ready().await?;
        Ok(began.elapsed())
    }

    /// Asks `/readyz` until it says yes.
    async fn wait_ready(&self) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        let request = http::get("/readyz", &self.token);
        while Instant::now() < until {
            if let Ok(mut connection) = self.connect().await
                && let Ok(answer) = connection.call(&request).await
                && answer.status == 200
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err(io::Error::other("the server does not become ready"))
    }

    pub async fn connect(&self) -> io::Result<Connection> {
        Connection::open(self.address).await
    }

    /// The bytes of a submission of JSON.
    pub fn submission(&self, body: &[u8]) -> Vec<u8> {
        http::submission(&self.token, "application/json", body)
    }

    /// Pauses what matches; the id of the pause.
    pub async fn pause(&self, matches: Value) -> io::Result<String> {
        let body = serde_json::json!({ "match": matches, "reason": "bench" });
        let body = body.to_string();
        let request = http::request(
            "POST",
            "/api/v1/pauses",
            &self.token,
            "application/json",
            body.as_bytes(),
        );
        let mut connection = self.connect().await?;
        let answer = connection.call(&request).await?.expect(201)?.json();
        let id = answer.get("id").and_then(Value::as_str);
        id.map(ToOwned::to_owned)
            .ok_or_else(|| io::Error::other("the pause has no id"))
    }

    pub async fn resume(&self, pause: &str) -> io::Result<()> {
        let path = format!("/api/v1/pauses/{pause}");
        let request = http::request("DELETE", &path, &self.token, "application/json", b"");
        let mut connection = self.connect().await?;
        connection.call(&request).await?.expect(204)?;
        Ok(())
    }

    /// The sum of a metric over its labels that contain `label`.
    pub async fn metric(&self, name: &str, label: &str) -> io::Result<f64> {
        let mut connection = self.connect().await?;
        self.metric_over(&mut connection, name, label).await
    }

    /// The same over a connection that is kept.
    pub async fn metric_over(
        &self,
        connection: &mut Connection,
        name: &str,
        label: &str,
    ) -> io::Result<f64> {
        let answer = connection.call(&http::get("/metrics", &self.token)).await?;
        let answer = answer.expect(200)?;
        let text = String::from_utf8_lossy(answer.body);
        let lines = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' '])) && line.contains(label)
        });
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    /// Whether it still holds a message that is not settled for good. Counters
    /// run ahead of the disk: a message is gone from the queue only when its
    /// settlement is durable.
    pub async fn any_left(&self, connection: &mut Connection) -> io::Result<bool> {
        let path = "/api/v1/messages?state=sending&limit=1";
        let answer = connection.call(&http::get(path, &self.token)).await?;
        let page = answer.expect(200)?.json();
        let items = page.get("messages").and_then(Value::as_array);
        let is_last = page.get("next_cursor").is_none_or(Value::is_null);
        Ok(items.is_none_or(|items| !items.is_empty()) || !is_last)
    }

    /// Where it keeps everything.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// A figure of `/proc/PID/status`, in megabytes.
    pub fn memory_mb(&self, figure: &str) -> io::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with(figure));
        let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kb.map(|kb| kb / 1_024.0)
            .ok_or_else(|| io::Error::other("the system does not tell the memory of a process"))
    }

    /// What it has written so far.
    pub fn written(&self) -> io::Result<Written> {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id()))?;
        let figure = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|bytes| bytes.trim().parse().ok())
                .ok_or_else(|| io::Error::other("the system does not tell what a process writes"))
        };
        Ok(Written {
            to_disk: figure("write_bytes:")?,
            by_calls: figure("wchar:")?,
        })
    }

    /// The CPU time it has taken so far.
    pub fn cpu(&self) -> Duration {
        cpu_of(&self.child.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server says when it starts.
struct Listens {
    address: SocketAddr,
    smtp: Option<SocketAddr>,
    throttle: Option<SocketAddr>,
}

fn spawn(data: &Path, config: Option<&Path>) -> io::Result<(Child, Listens)> {
    let log = fs::File::create(data.with_extension("log"))?;
    let mut command = Command::new(binary()?);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(data);
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.stderr(log).spawn()?;
    let stdout = child.stdout.take();
    let stdout = stdout.ok_or_else(|| io::Error::other("the server has no output"))?;
    let mut said = String::new();
    let (mut address, mut smtp, mut throttle) = (None, None, None);
    // It says this when it listens; from then on it says nothing but goodbye,
    // so nobody need go on reading.
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        let url = line.strip_prefix("address").map(str::trim);
        let url = url.and_then(|url| url.strip_prefix("http://"));
        address = address.or_else(|| url?.parse().ok());
        let beside = |name: &str| {
            let rest = line.strip_prefix(name).map(str::trim_start);
            rest.and_then(|rest| rest.split(' ').next())?.parse().ok()
        };
        smtp = smtp.or_else(|| beside("smtp"));
        throttle = throttle.or_else(|| beside("throttle"));
        if line.starts_with("ready") {
            break;
        }
        said.push_str(&line);
        said.push('\n');
    }
    match address {
        Some(address) => Ok((
            child,
            Listens {
                address,
                smtp,
                throttle,
            },
        )),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            let log = fs::read_to_string(data.with_extension("log"))?;
            Err(io::Error::other(format!(
                "the server did not start:\n{said}{log}"
            )))
        }
    }
}

/// The server's binary, beside this one.
pub fn binary() -> io::Result<PathBuf> {
    let this = std::env::current_exe()?;
    let path = this.with_file_name("outflow");
    if path.is_file() {
        return Ok(path);
    }
    let profile = match cfg!(debug_assertions) {
        true => "cargo build -p outflow",
        false => "cargo build --release -p outflow",
    };
    Err(io::Error::other(format!(
        "{} is not there: build the server first, with the profile of this benchmark ({profile})",
        path.display()
    )))
}

/// CPU time of a process, all threads.
fn cpu_of(process: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may have spaces in it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// CPU time of this process.
pub fn own_cpu() -> Duration {
    cpu_of("self")
}

/// Shows how far something long has come.
pub fn progress(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Runs a benchmark's future on this thread.
pub fn block_on<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}
