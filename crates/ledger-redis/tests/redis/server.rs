//! A redis-server of a test's own.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue};

/// A server that begins to listen takes no longer.
const START_MAX: Duration = Duration::from_secs(20);

/// A running server; it ends with the test.
pub struct RedisServer {
    pub port: u16,
    args: Vec<String>,
    folder: PathBuf,
    child: Option<Child>,
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

impl RedisServer {
    pub fn start(args: &[&str]) -> Self {
        static NO: AtomicU32 = AtomicU32::new(0);
        let no = NO.fetch_add(1, Ordering::Relaxed);
        let name = format!("outflow-ledger-redis-{}-{no}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for the server");
        let mut server = Self {
            port: free_port(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            folder,
            child: None,
        };
        server.run();
        server
    }

    /// Starts it, at first or again, on the same port and in the same folder.
    pub fn run(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port, "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(&self.args)
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn();
        self.child = Some(child.expect("redis-server: `apt-get install redis-server`"));
        let deadline = Instant::now() + START_MAX;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the server can be ended");
            child.wait().expect("it ends");
        }
    }

    /// Stops it in the middle (`STOP`) or lets it go on (`CONT`).
    pub fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("a running server");
        let status = Command::new("kill")
            .args([format!("-{signal}"), child.id().to_string()])
            .status();
        assert!(status.expect("kill").success());
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn connect(&self) -> Connection {
        let client = redis::Client::open(self.url()).expect("a URL");
        client.get_connection().expect("the server answers")
    }

    /// What it says to a command, written as for redis-cli.
    pub fn say<T: FromRedisValue>(&self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut command = redis::cmd(words.next().expect("a command"));
        words.for_each(|word| {
            command.arg(word);
        });
        command
            .query(&mut self.connect())
            .expect("the server answers")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
