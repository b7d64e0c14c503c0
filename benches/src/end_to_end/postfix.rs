//! The peer: a private Postfix that relays to the sink.

use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::cpu;
use super::mail::{PAYLOAD, RECIPIENT, SENDER};

/// A running Postfix. It ends when it is dropped.
pub struct Postfix {
    script: Child,
    /// The process above all others.
    master: u32,
    pub address: SocketAddr,
}

impl Postfix {
    /// Starts one, and waits until it listens.
    pub fn start(sink: SocketAddr) -> io::Result<Self> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/postfix.sh");
        let mut script = Command::new("bash")
            .arg(script)
            .args([address.port().to_string(), sink.port().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = script.stdout.take();
        let stdout = stdout.ok_or_else(|| io::Error::other("the script has no output"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let master = said.get("master").and_then(Value::as_u64);
        let master = master.and_then(|master| u32::try_from(master).ok());
        let Some(master) = master else {
            let _ = script.wait();
            return Err(io::Error::other("benches/peers/postfix.sh failed"));
        };
        Ok(Self {
            script,
            master,
            address,
        })
    }

    /// The CPU time that all of its processes have taken so far.
    pub fn cpu(&self) -> Duration {
        cpu::of_family(self.master)
    }

    /// Starts to submit so many messages, over sessions that are kept.
    pub fn smtp_source(&self, sessions: usize, count: u64) -> io::Result<Child> {
        Command::new("smtp-source")
            .args(["-d", "-N", "-f", SENDER, "-t", RECIPIENT])
            .args(["-s", &sessions.to_string(), "-l", &PAYLOAD.to_string()])
            .args(["-m", &count.to_string()])
            .arg(self.address.to_string())
            .stdin(Stdio::null())
            .spawn()
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
