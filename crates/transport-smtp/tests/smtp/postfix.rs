//! Every awkward letter goes through a real Postfix, with STARTTLS and a login,
//! and is read by Python's `email`. Needs root, as Postfix does.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use outflow_core::reply::{Reply, Stage};
use outflow_transport_smtp::{Login, Relay, Tls};

use crate::certificates;
use crate::letters::letters;
use crate::world::{World, parcel, relay};

/// Looks at what only shows itself by looking.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 1_200;

/// A Postfix of its own, in a temporary folder.
struct Postfix {
    folder: PathBuf,
    port: u16,
}

fn run(command: &mut Command) -> String {
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

fn id(kind: &str, user: &str) -> u32 {
    run(Command::new("id").args([kind, user])).parse().unwrap()
}

impl Postfix {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder = std::env::temp_dir().join(format!("outflow-postfix-{}", std::process::id()));
        let postfix = Self { folder, port };
        postfix.write();
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

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.at("log")).unwrap_or_default()
    }

    fn write(&self) {
        let owner = id("-u", "postfix");
        let (uid, gid) = (id("-u", "nobody"), id("-g", "nobody"));
        for name in ["etc/sasl", "queue", "data", "mail/inbox"] {
            fs::create_dir_all(self.at(name)).unwrap();
        }
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).unwrap();
        chown(self.at("data"), Some(owner), None).unwrap();
        chown(self.at("mail"), Some(uid), Some(gid)).unwrap();
        chown(self.at("mail/inbox"), Some(uid), Some(gid)).unwrap();
        let (certificate, key) = certificates::pem("localhost");
        fs::write(self.at("cert.pem"), certificate).unwrap();
        fs::write(self.at("key.pem"), key).unwrap();
        let folder = self.folder.display();
        let main = format!(
            "compatibility_level = 3.6
config_directory = {folder}/etc
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
myhostname = mail.test
mydestination =
mynetworks =
inet_interfaces = loopback-only
inet_protocols = ipv4
smtputf8_enable = yes
message_size_limit = 5000000
virtual_mailbox_limit = 0
virtual_mailbox_domains = example.org, xn--bcher-kva.example, bücher.example
virtual_mailbox_base = {folder}/mail
virtual_mailbox_maps = static:inbox/
virtual_minimum_uid = 100
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
smtpd_tls_cert_file = {folder}/cert.pem
smtpd_tls_key_file = {folder}/key.pem
smtpd_tls_security_level = encrypt
smtpd_sasl_auth_enable = yes
smtpd_sasl_local_domain = mail.test
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = reject_non_fqdn_recipient, permit_sasl_authenticated, reject
"
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
        let passwords = self.at("etc/sasl/sasldb2");
        let sasl = format!(
            "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nmech_list: PLAIN LOGIN\n\
             sasldb_path: {}\n",
            passwords.display()
        );
        fs::write(self.at("etc/sasl/smtpd.conf"), sasl).unwrap();
        let password = self.at("password");
        fs::write(&password, "secret").unwrap();
        run(Command::new("saslpasswd2")
            .args(["-c", "-p", "-u", "mail.test", "-f"])
            .arg(&passwords)
            .arg("outflow")
            .stdin(fs::File::open(&password).unwrap()));
        chown(&passwords, Some(owner), None).unwrap();
    }

    fn mails(&self) -> usize {
        fs::read_dir(self.at("mail/inbox/new")).map_or(0, Iterator::count)
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

fn wait(holds: impl Fn() -> bool) -> bool {
    (0..LOOKS_MAX).any(|_| {
        let held = holds();
        if !held {
            sleep(LOOK);
        }
        held
    })
}

fn protected(port: u16, ca_file: &Path, password: &str) -> Relay {
    Relay {
        ca_file: Some(ca_file.to_owned()),
        login: Some(Login {
            user: "outflow".to_owned(),
            password: password.to_owned(),
        }),
        ..relay(port, Tls::Starttls)
    }
}

#[test]
fn a_real_server_takes_every_letter_and_python_reads_it() {
    let postfix = Postfix::start();
    let mut world = World::new();
    let mut expected = Vec::new();
    for (session, chunking) in [(0, true), (1, false)] {
        world.set(&Relay {
            chunking,
            ..protected(postfix.port, &postfix.at("cert.pem"), "secret")
        });
        world.ready(session);
        for (no, letter) in letters().into_iter().enumerate() {
            let mut content = letter.content;
            content.message_id = format!("<{session}.{no}@example.com>");
            let became = world.send(session, parcel(&letter.envelope, &content));
            let name = letter.name;
            assert!(became.reply.is_accepted(), "{name}: {:?}", became.reply);
            assert!(became.lives, "{name}");
            expected.push(String::from_utf8(content.to_bytes()).unwrap());
        }
        let nobody = crate::letters::envelope("nobody@nowhere");
        let content = crate::letters::content("x", "y");
        let refused = world.send(session, parcel(&nobody, &content));
        let Reply::Said { stage, code, .. } = refused.reply else {
            panic!("{:?}", refused.reply);
        };
        assert_eq!((stage, code, refused.lives), (Stage::Recipient, 504, true));
    }
    assert!(
        wait(|| postfix.mails() == expected.len()),
        "{} of {} came: {}",
        postfix.mails(),
        expected.len(),
        postfix.log()
    );
    let json = postfix.at("expected.json");
    fs::write(&json, format!("[{}]", expected.join(","))).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp/read_mail.py");
    let inbox = postfix.at("mail/inbox/new");
    run(Command::new("python3").arg(script).arg(json).arg(inbox));
    world.set(&protected(postfix.port, &postfix.at("cert.pem"), "wrong"));
    let refused = world.refused(2);
    let is_login = matches!(
        refused,
        Reply::Said {
            stage: Stage::Auth,
            code: 535,
            ..
        }
    );
    assert!(is_login, "{refused:?}");
}
