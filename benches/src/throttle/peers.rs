//! What users would pick instead.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::{Load, key};
use crate::redis::{Redis, free_port};

/// A token bucket in Lua.
pub struct Script {
    digest: String,
}

impl Script {
    pub fn load(redis: &Redis) -> io::Result<Self> {
        let text = fs::read_to_string(peer("bucket.lua"))?;
        let answer = redis.command(&["SCRIPT", "LOAD", &text])?;
        let digest = answer.lines().nth(1).map(str::trim).unwrap_or_default();
        match digest.len() {
            40 => Ok(Self {
                digest: digest.to_owned(),
            }),
            _ => Err(io::Error::other(format!("redis-server said: {answer}"))),
        }
    }

    /// A call that always grants.
    pub fn words(&self, load: Load) -> Vec<String> {
        let words = [
            "EVALSHA",
            &self.digest,
            "1",
            key(load),
            "100000000",
            "1000000",
            "1",
        ];
        words.map(str::to_owned).to_vec()
    }
}

/// throttlecrab, as a server.
pub struct Crab {
    child: Child,
    pub port: u16,
}

impl Crab {
    pub fn start(dir: &Path) -> io::Result<Self> {
        let port = free_port()?;
        let log = fs::File::create(dir.join("throttlecrab.log"))?;
        let mut command = Command::new("bash");
        command.arg(peer("throttlecrab.sh")).arg(port.to_string());
        command.stdin(Stdio::null()).stdout(log);
        let mut crab = Self {
            child: command.spawn()?,
            port,
        };
        // It may have to be built first.
        let until = Instant::now() + Duration::from_secs(1_200);
        while Instant::now() < until {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(crab);
            }
            if crab.child.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(io::Error::other("throttlecrab did not start"))
    }
}

impl Drop for Crab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn peer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("peers")
        .join(name)
}
