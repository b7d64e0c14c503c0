//! Every awkward letter goes through a real Postfix, in the open and over TLS,
//! with every login. Needs root, as Postfix does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use outflow_core::reply::Stage;
use outflow_transport_smtp::Tls;

use crate::certificates;
use crate::letters::letters;
use crate::peer::{Courier, Mode, answers, failed, id, run, said, wait};

const PACKAGES: &str = "postfix sasl2-bin libsasl2-modules";

/// A Postfix of its own, in a temporary folder.
struct Postfix {
    folder: PathBuf,
    modes: Vec<Mode>,
}

impl Postfix {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("outflow-postfix-{}", std::process::id()));
        let postfix = Self {
            folder,
            modes: Mode::all(),
        };
        postfix.write();
        let log = fs::File::create(postfix.at("log")).unwrap();
        let status = Command::new("postfix")
            .arg("-c")
            .arg(postfix.at("etc"))
            .arg("start")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .status()
            .unwrap_or_else(|error| panic!("postfix: {error}: apt-get install {PACKAGES}"));
        assert!(status.success(), "{}", postfix.log());
        let are_up = postfix.modes.iter().all(|mode| answers(mode.port));
        assert!(are_up, "Postfix does not answer: {}", postfix.log());
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
smtpd_sasl_local_domain = mail.test
smtpd_relay_restrictions =
smtpd_recipient_restrictions = reject_non_fqdn_recipient, permit_sasl_authenticated, reject
"
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
        for mode in &self.modes {
            master.push_str(&service(mode));
        }
        fs::write(self.at("etc/master.cf"), master).unwrap();
        let passwords = self.at("etc/sasl/sasldb2");
        for login in self.modes.iter().filter_map(|mode| mode.login) {
            let sasl = format!(
                "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nmech_list: {login}\n\
                 sasldb_path: {}\n",
                passwords.display()
            );
            fs::write(self.at(&format!("etc/sasl/{login}.conf")), sasl).unwrap();
        }
        let password = self.at("password");
        fs::write(&password, "secret").unwrap();
        let mut command = Command::new("saslpasswd2");
        command
            .args(["-c", "-p", "-u", "mail.test", "-f"])
            .arg(&passwords)
            .arg("outflow")
            .stdin(fs::File::open(&password).unwrap());
        run(&mut command, PACKAGES);
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

/// The service of a mode, under a name that the log shows.
fn service(mode: &Mode) -> String {
    let mut options = vec![format!("syslog_name={}", mode.name())];
    let mut add = |option: &str| options.push(option.to_owned());
    match mode.tls {
        Tls::Implicit => add("smtpd_tls_wrappermode=yes"),
        Tls::Starttls => add("smtpd_tls_security_level=encrypt"),
        _ => {
            add("smtputf8_enable=no");
            add("smtpd_discard_ehlo_keywords=chunking,smtputf8");
        }
    }
    match mode.login {
        Some(login) => {
            add("smtpd_sasl_auth_enable=yes");
            add(&format!("smtpd_sasl_path={login}"));
        }
        None => {
            add("smtpd_recipient_restrictions=reject_non_fqdn_recipient,reject_unauth_destination")
        }
    }
    let options = options.join(" -o ");
    let port = mode.port;
    format!("127.0.0.1:{port} inet n - n - - smtpd -o {options}\n")
}

#[test]
fn postfix_takes_every_letter_in_every_way() {
    let postfix = Postfix::start();
    let ca_file = postfix.at("cert.pem");
    let mut courier = Courier::new();
    for mode in &postfix.modes {
        let name = mode.name();
        let mut relay = mode.relay(&ca_file, "secret");
        for chunking in [true, false] {
            relay.chunking = chunking;
            let taken = courier.send_all(&relay, !mode.is_open());
            assert_eq!(
                taken,
                letters().len() - usize::from(mode.is_open()),
                "{name}"
            );
        }
        let (stage, code, text) = said(&courier.send_to(&relay, "nobody@nowhere"));
        assert_eq!((stage, code), (Stage::Recipient, 504), "{name}: {text}");
        if mode.login.is_some() {
            let refused = courier.refused(&mode.relay(&ca_file, "wrong"));
            let (stage, code, _) = said(&refused);
            assert_eq!((stage, code), (Stage::Auth, 535), "{name}: {refused:?}");
        }
        if mode.is_overheard() {
            relay.insecure = false;
            let (stage, text) = failed(&courier.refused(&relay));
            assert_eq!(stage, Stage::Auth, "{name}");
            assert!(
                text.contains("not sent over an open line"),
                "{name}: {text}"
            );
        }
    }
    let count = courier.expected.len();
    let came = wait(|| postfix.mails() == count);
    assert!(came, "{} of {count}: {}", postfix.mails(), postfix.log());
    courier.read(&postfix.folder, &postfix.at("mail/inbox/new"));
    let log = postfix.log();
    for mode in &postfix.modes {
        let Some(login) = mode.login else { continue };
        let (name, method) = (
            format!(" {}/", mode.name()),
            format!("sasl_method={login},"),
        );
        let lines = log.lines();
        let came = lines.filter(|line| line.contains(&name) && line.contains(&method));
        let expected = 2 * (letters().len() - usize::from(mode.is_open()));
        assert_eq!(came.count(), expected, "{name}: {log}");
    }
}
