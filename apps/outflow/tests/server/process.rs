//! A running server, and what its sandbox has seen.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;

/// No wait is longer; nothing is measured by it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A directory that goes when the test succeeds.
pub struct Place {
    pub dir: PathBuf,
}

impl Place {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let dir = std::env::temp_dir().join(format!("outflow-test-{name}-{process}-{count}"));
        fs::create_dir_all(&dir).unwrap();
        Self { dir }
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Where the sandbox writes what it takes.
    pub fn sandbox_log(&self) -> PathBuf {
        self.dir.join("sandbox.jsonl")
    }

    /// Writes the settings file: small segments, a log of the sandbox, `more`.
    pub fn configure(&self, more: &str) {
        let text = format!(
            "[store]\nsegment_size = \"1MiB\"\nbody_segment_size = \"1MiB\"\n\
             reserve_size = \"1MiB\"\n[log]\nsandbox = {:?}\n{more}",
            self.sandbox_log()
        );
        fs::write(self.dir.join("outflow.toml"), text).unwrap();
    }

    pub fn command(&self) -> Command {
        self.command_by(&[])
    }

    /// The same, run by another program, which becomes the server.
    fn command_by(&self, before: &[&str]) -> Command {
        let binary = env!("CARGO_BIN_EXE_outflow");
        let words: Vec<&str> = before.iter().copied().chain([binary]).collect();
        let mut command = Command::new(words[0]);
        command
            .current_dir(&self.dir)
            .args(&words[1..])
            .args(["serve", "--config", "outflow.toml", "--data-dir", "data"])
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null());
        command
    }

    pub fn start(&self) -> Server {
        Server::start(self.command(), &self.data())
    }

    /// The same, with its log in a file.
    pub fn start_logging(&self, log: &Path) -> Server {
        let mut command = self.command();
        command.stderr(fs::File::create(log).unwrap());
        Server::start(command, &self.data())
    }

    /// Starts it by another program; its data directory is seen from here at
    /// `data`.
    pub fn start_by(&self, before: &[&str], data: &Path) -> Server {
        Server::start(self.command_by(before), data)
    }

    /// What the sandbox took: for each message, in which processes.
    pub fn taken(&self) -> BTreeMap<String, Vec<u64>> {
        let mut taken = Taken::default();
        taken.read_on(self);
        taken.messages
    }
}

/// What a sandbox took so far, read piece by piece.
#[derive(Default)]
pub struct Taken {
    /// For each message, in which processes.
    pub messages: BTreeMap<String, Vec<u64>>,
    /// For each process, which messages, in order.
    pub order: BTreeMap<u64, Vec<String>>,
    offset: u64,
}

impl Taken {
    /// Reads what was added. A line is there as a whole or not at all.
    pub fn read_on(&mut self, place: &Place) {
        let Ok(mut file) = fs::File::open(place.sandbox_log()) else {
            return;
        };
        let mut text = String::new();
        file.seek(SeekFrom::Start(self.offset)).unwrap();
        file.read_to_string(&mut text).unwrap();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.offset += whole as u64;
        for line in text[..whole].lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let id = line["id"].as_str().unwrap().to_owned();
            let process = line["process"].as_u64().unwrap();
            self.order.entry(process).or_default().push(id.clone());
            self.messages.entry(id).or_default().push(process);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// A process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server.
pub struct Server {
    child: Running,
    pub address: SocketAddr,
    pub token: String,
    /// What it printed until it was ready.
    pub greeting: Vec<String>,
    /// How long that took.
    pub ready_after: Duration,
    lines: Receiver<String>,
}

impl Server {
    fn start(mut command: Command, data: &Path) -> Self {
        let started = Instant::now();
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut child = Running(child);
        let lines = lines_of(&mut child.0);
        let mut greeting = Vec::new();
        loop {
            let line = lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("not ready: {greeting:?}"));
            let is_last = line.starts_with("ready");
            greeting.push(line);
            if is_last {
                break;
            }
        }
        let url = greeting
            .iter()
            .find_map(|line| line.strip_prefix("address"));
        let url = url.unwrap().trim().to_owned();
        let (_, address) = url.split_once("://").unwrap();
        let address = address.parse().unwrap();
        let token = fs::read_to_string(data.join("admin-token")).unwrap();
        Self {
            child,
            address,
            token: token.trim().to_owned(),
            greeting,
            ready_after: started.elapsed(),
            lines,
        }
    }

    pub fn client(&self) -> Client {
        Client::new(self.address, &self.token)
    }

    /// A figure of `/proc/PID/status`, in megabytes: `VmRSS`, `VmHWM`.
    pub fn memory_mb(&self, figure: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.0.id());
        let status = fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with(figure));
        let kb = line.unwrap().split_whitespace().nth(1).unwrap();
        kb.parse::<u64>().unwrap() / 1_024
    }

    pub fn kill(mut self) {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }

    /// Asks it to end, without waiting.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.0.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.unwrap().success());
    }

    /// Waits until it has ended: how, and what it said last. Its pipe is read to
    /// the end, since its last line may still be on the way.
    pub fn wait(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.0.wait().unwrap();
        (status, self.lines.iter().collect())
    }

    /// Asks it to end and waits until it has.
    pub fn stop(self) {
        self.terminate();
        let (status, last) = self.wait();
        assert!(status.success(), "{status}: {last:?}");
    }
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Waits until `look` finds something.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what}: not in time");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// A message that can be sent, with some fields changed.
pub fn message(fields: Value) -> Value {
    let mut message = json!({
        "from": "Shop <orders@shop.example>", "to": "user@gmail.com",
        "subject": "Hello", "text": "Hello!",
    });
    let into = message.as_object_mut().unwrap();
    into.extend(fields.as_object().unwrap().clone());
    message
}

/// Submits one message; its id.
pub fn submit(client: &mut Client, fields: Value) -> String {
    let answer = client.post("/api/v1/messages", &message(fields)).unwrap();
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// What is known of a message.
pub fn show(client: &mut Client, id: &str) -> Value {
    let answer = client.get(&format!("/api/v1/messages/{id}")).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// Waits until a message is in this state.
pub fn wait_state(client: &mut Client, id: &str, state: &str) -> Value {
    wait_for(&format!("{id} {state}"), || {
        let message = show(client, id);
        (message["state"] == state).then_some(message)
    })
}

/// The ids of all messages in these states.
pub fn listed(client: &mut Client, states: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/v1/messages?state={states}&limit=200{cursor}");
        let page = client.get(&path).unwrap();
        assert_eq!(page.status, 200, "{}", page.text);
        let page = page.json();
        let messages = page["messages"].as_array().unwrap();
        ids.extend(
            messages
                .iter()
                .map(|it| it["id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// The metrics page.
pub fn metric(client: &mut Client, line_begins: &str) -> Option<f64> {
    let page = client.get("/metrics").unwrap();
    assert_eq!(page.status, 200);
    let line = page.text.lines().find(|line| line.starts_with(line_begins));
    line?.rsplit(' ').next()?.parse().ok()
}

/// Whether a file is for its owner alone.
pub fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0
}
