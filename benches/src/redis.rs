//! A Redis of our own: a process, a port and a directory that nobody else uses.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server. It is killed when it is dropped.
pub struct Redis {
    child: Child,
    dir: PathBuf,
    pub port: u16,
    options: Vec<String>,
}

impl Redis {
    /// Starts one in a directory, with further options of its command line.
    pub fn start(dir: &Path, options: &[&str]) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let port = free_port()?;
        let options: Vec<String> = options.iter().map(|it| (*it).to_owned()).collect();
        let child = spawn(dir, port, &options)?;
        let redis = Self {
            child,
            dir: dir.to_owned(),
            port,
            options,
        };
        redis.wait()?;
        Ok(redis)
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends it as a power cut would, and keeps it down.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Starts it again where it was.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.child = spawn(&self.dir, self.port, &self.options)?;
        self.wait()
    }

    /// Stops it (`STOP`) or lets it go on (`CONT`).
    pub fn signal(&self, name: &str) -> io::Result<()> {
        signal(self.child.id(), name)
    }

    /// What it answers to a command, as it comes.
    pub fn command(&self, words: &[&str]) -> io::Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(&words_of(words))?;
        let mut answer = [0; 4_096];
        let read = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
    }

    fn wait(&self) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self
                .command(&["PING"])
                .is_ok_and(|it| it.starts_with("+PONG"))
            {
                return Ok(());
            }
            sleep(Duration::from_millis(10));
        }
        Err(io::Error::other("redis-server does not answer"))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.signal("CONT");
        let _ = self.kill();
    }
}

fn spawn(dir: &Path, port: u16, options: &[String]) -> io::Result<Child> {
    let log = fs::File::create(dir.join("log"))?;
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
    command
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(dir);
    command.args(options).stdin(Stdio::null()).stdout(log);
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other("redis-server is missing: apt-get install redis-server")
        }
        _ => error,
    })
}

/// Sends a signal to a process.
pub fn signal(process: u32, name: &str) -> io::Result<()> {
    let flag = format!("-{name}");
    let status = Command::new("kill")
        .args([&flag, &process.to_string()])
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("kill {flag} {process} failed"))),
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// A command as the Redis protocol has it.
pub fn words_of(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}
