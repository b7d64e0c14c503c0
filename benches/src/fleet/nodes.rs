//! Several servers, each its own process, over one ledger.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::redis::{free_port, signal};
use crate::server::binary;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a node takes acquires; it stays the same over restarts.
#[derive(Clone)]
pub struct Door {
    pub port: u16,
    pub token: Arc<str>,
}

/// One server.
pub struct Node {
    child: Child,
    dir: PathBuf,
    clock_off: bool,
    pub door: Door,
    pub http: u16,
}

impl Node {
    /// Starts one. `clock_off` has its wall clock an hour ahead.
    pub async fn start(dir: &Path, ledger: &str, clock_off: bool) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let (port, http) = (free_port()?, free_port()?);
        let log = dir.join("grants.ndjson");
        let config = format!(
            "[ledger]\nurl = \"{ledger}\"\n[throttle]\nlisten = \"127.0.0.1:{port}\"\n\
             grants_log = \"{}\"\n",
            log.display()
        );
        fs::write(dir.join("outflow.toml"), config)?;
        let child = spawn(dir, http, clock_off)?;
        let mut node = Self {
            child,
            dir: dir.to_owned(),
            clock_off,
            door: Door {
                port,
                token: Arc::from(""),
            },
            http,
        };
        node.wait().await?;
        let token = fs::read_to_string(dir.join("data/admin-token"))?;
        node.door.token = Arc::from(token.trim());
        Ok(node)
    }

    /// Where it writes what it grants.
    pub fn log(&self) -> PathBuf {
        self.dir.join("grants.ndjson")
    }

    /// `kill -9`, and a new process at once.
    pub async fn kill_and_restart(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(&self.dir, self.http, self.clock_off)?;
        self.wait().await
    }

    /// Stops it (`STOP`) or lets it go on (`CONT`).
    pub fn signal(&self, name: &str) -> io::Result<()> {
        signal(self.child.id(), name)
    }

    async fn wait(&mut self) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if TcpStream::connect(("127.0.0.1", self.door.port))
                .await
                .is_ok()
            {
                return Ok(());
            }
            if self.child.try_wait()?.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        Err(io::Error::other(format!("a node did not start:\n{log}")))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.signal("CONT");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(dir: &Path, http: u16, clock_off: bool) -> io::Result<Child> {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(dir.join("log"))?;
    let binary = binary()?;
    let mut command = match clock_off {
        // The monotonic clock stays true: leases live by it.
        true => {
            let mut command = Command::new("faketime");
            command.args(["-f", "+1h"]).arg(binary);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command.env("DONT_FAKE_MONOTONIC", "1");
            command
        }
        false => Command::new(binary),
    };
    command.args(["serve", "--listen", &format!("127.0.0.1:{http}")]);
    command.arg("--data-dir").arg(dir.join("data"));
    command.arg("--config").arg(dir.join("outflow.toml"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other("faketime is missing: apt-get install faketime")
        }
        _ => error,
    })
}
