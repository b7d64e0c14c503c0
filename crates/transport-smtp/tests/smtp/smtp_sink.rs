//! Postfix's `smtp-sink`, which takes every mail and writes it down.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// The user who owns nothing, in every Debian.
const NOBODY: u32 = 65_534;

/// A running sink.
pub struct SmtpSink {
    pub folder: PathBuf,
    pub port: u16,
    process: Child,
}

impl SmtpSink {
    /// `way` says how it writes: `-d` a file for each mail, `-D` all into one.
    pub fn start(way: &str, options: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outflow-sink-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let came = folder.join("came");
        fs::create_dir_all(&came).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("smtp-sink");
        // It does not run as root.
        if fs::metadata(&came).unwrap().uid() == 0 {
            chown(&came, Some(NOBODY), None).unwrap();
            command.args(["-u", "nobody"]);
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = command
            .args(options)
            .arg(way)
            .arg(came.join("mail"))
            .arg(format!("127.0.0.1:{port}"))
            .arg("100")
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("smtp-sink: {error}: apt-get install postfix"));
        let sink = Self {
            folder,
            port,
            process,
        };
        let is_up = |_| {
            let is_up = TcpStream::connect(("127.0.0.1", port)).is_ok();
            sleep(Duration::from_millis(if is_up { 0 } else { 20 }));
            is_up
        };
        assert!((0..1_000).any(is_up), "smtp-sink does not answer");
        sink
    }

    /// The files that it wrote.
    pub fn came(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.join("came")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }
}

impl Drop for SmtpSink {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
