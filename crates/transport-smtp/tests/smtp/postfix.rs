//! A real Postfix, in a temporary folder. It delivers to files. Needs root, as
//! Postfix does.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Looks at what only shows itself by looking.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 1_200;

/// A running Postfix.
pub struct Postfix {
    folder: PathBuf,
    pub port: u16,
}

/// Runs a program: what it said.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        panic!(
            "{program}: {error}. Install it: \
             apt-get install postfix sasl2-bin libsasl2-modules python3"
        )
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The number of a user or group.
pub fn id(kind: &str, user: &str) -> u32 {
    run(Command::new("id").args([kind, user])).parse().unwrap()
}

impl Postfix {
    /// Starts one on a free port. `more` writes what else is needed into its
    /// folder and says what else its settings are.
    pub fn start(more: impl FnOnce(&Path) -> String) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder = std::env::temp_dir().join(format!("outflow-postfix-{}", std::process::id()));
        let postfix = Self { folder, port };
        postfix.write(more);
        let log = fs::File::create(postfix.at("log")).unwrap();
        let status = Command::new("postfix")
            .arg("-c")
            .arg(postfix.at("etc"))
            .arg("start")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{}", postfix.log());
        let is_up = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(wait(is_up), "Postfix does not answer: {}", postfix.log());
        postfix
    }

    /// A file or folder of its own.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.at("log")).unwrap_or_default()
    }

    fn write(&self, more: impl FnOnce(&Path) -> String) {
        let owner = id("-u", "postfix");
        let (uid, gid) = (id("-u", "nobody"), id("-g", "nobody"));
        for name in ["etc", "queue", "data", "mail/inbox"] {
            fs::create_dir_all(self.at(name)).unwrap();
        }
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).unwrap();
        chown(self.at("data"), Some(owner), None).unwrap();
        chown(self.at("mail"), Some(uid), Some(gid)).unwrap();
        chown(self.at("mail/inbox"), Some(uid), Some(gid)).unwrap();
        let (more, folder) = (more(&self.folder), self.folder.display());
        let main = format!(
            "compatibility_level = 3.6
config_directory = {folder}/etc
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
myhostname = mail.test
mydestination =
inet_interfaces = loopback-only
inet_protocols = ipv4
smtputf8_enable = yes
message_size_limit = 5000000
virtual_mailbox_limit = 0
virtual_mailbox_base = {folder}/mail
virtual_mailbox_maps = static:inbox/
virtual_minimum_uid = 100
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
{more}"
        );
        fs::write(self.at("etc/main.cf"), main).unwrap();
        let master = format!(
            "127.0.0.1:{} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
showq unix n - n - - showq
postlog unix-dgram n - n - 1 postlogd
",
            self.port
        );
        fs::write(self.at("etc/master.cf"), master).unwrap();
    }

    /// The files of what it has delivered.
    pub fn delivered(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.at("mail/inbox/new"))
            .into_iter()
            .flatten();
        files.map(|file| file.unwrap().path()).collect()
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        let stopped = Command::new("postfix")
            .arg("-c")
            .arg(self.at("etc"))
            .arg("stop")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if stopped.is_ok() && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Waits until something holds; whether it came to that.
pub fn wait(holds: impl Fn() -> bool) -> bool {
    (0..LOOKS_MAX).any(|_| {
        let held = holds();
        if !held {
            sleep(LOOK);
        }
        held
    })
}
