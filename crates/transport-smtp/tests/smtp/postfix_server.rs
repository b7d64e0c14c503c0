//! A real Postfix, in a temporary folder. It delivers to files. Needs root, as
//! Postfix does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::{answers, free_ports, id};

/// What has it, and the passwords it asks for.
pub const PACKAGES: &str = "postfix sasl2-bin libsasl2-modules";

/// A running Postfix.
pub struct Postfix {
    pub folder: PathBuf,
    /// The first of its ports.
    pub port: u16,
}

impl Postfix {
    /// Starts one on a free port. `more` writes what else is needed into its
    /// folder and says what else its settings are.
    pub fn start(more: impl FnOnce(&Path) -> String) -> Self {
        Self::start_at(&[(free_ports(1)[0], String::new())], more)
    }

    /// The same at these ports, each with options of its own.
    pub fn start_at(ports: &[(u16, String)], more: impl FnOnce(&Path) -> String) -> Self {
        let (port, _) = ports[0];
        let folder = std::env::temp_dir().join(format!("outflow-postfix-{}", std::process::id()));
        let postfix = Self { folder, port };
        postfix.write(ports, more);
        let log = fs::File::create(postfix.at("log")).unwrap();
        let status = Command::new("postfix")
            .arg("-c")
            .arg(postfix.at("etc"))
            .arg("start")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .status();
        let status =
            status.unwrap_or_else(|error| panic!("postfix: {error}: apt-get install {PACKAGES}"));
        assert!(status.success(), "{}", postfix.log());
        let are_up = ports.iter().all(|(port, _)| answers(*port));
        assert!(are_up, "Postfix does not answer: {}", postfix.log());
        postfix
    }

    /// A file or folder of its own.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.at("log")).unwrap_or_default()
    }

    fn write(&self, ports: &[(u16, String)], more: impl FnOnce(&Path) -> String) {
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
        let mut master = String::from(
            "cleanup unix n - n - 0 cleanup
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
        );
        for (port, options) in ports {
            master.push_str(&format!("127.0.0.1:{port} inet n - n - - smtpd{options}\n"));
        }
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
