//! Every awkward letter goes through a real Exim, in the open and over TLS, with
//! every login. Needs root: Exim runs as a user of its own, who exists only where
//! the test has put him.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outflow_core::reply::Stage;
use outflow_transport_smtp::Tls;

use crate::certificates;
use crate::letters::letters;
use crate::peer::{Courier, Mode, failed, said};
use crate::programs::{answers, id, wait};

/// Gives Exim the user that it was built for, as nobody, in a namespace of its
/// own: it is not installed here, since Debian has one mail server at a time.
const START: &str = r#"
sed 's/^nobody:/Debian-exim:/' /etc/passwd | cat /etc/passwd - > "$1/passwd" &&
sed 's/^nogroup:/Debian-exim:/' /etc/group | cat /etc/group - > "$1/group" &&
mount --bind "$1/passwd" /etc/passwd &&
mount --bind "$1/group" /etc/group &&
exec "$2" -C "$1/exim.conf" -bdf
"#;

/// An Exim of its own, in a temporary folder.
struct Exim {
    folder: PathBuf,
    modes: Vec<Mode>,
    daemon: Child,
}

fn binary() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|cache| !cache.is_empty());
    let cache = cache.map_or_else(home, PathBuf::from);
    let binary = cache.join("outflow/peers/exim/usr/sbin/exim4");
    let path = binary.display();
    assert!(
        binary.exists(),
        "there is no Exim at {path}. Put it there: scripts/fetch-peers"
    );
    binary
}

impl Exim {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("outflow-exim-{}", std::process::id()));
        let (modes, binary) = (Mode::all(), binary());
        write(&folder, &modes, &binary.display().to_string());
        let log = fs::File::create(folder.join("out")).unwrap();
        let daemon = Command::new("unshare")
            .args(["--mount", "sh", "-c", START, "sh"])
            .arg(&folder)
            .arg(&binary)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("unshare: {error}: apt-get install util-linux"));
        let exim = Self {
            folder,
            modes,
            daemon,
        };
        let are_up = exim.modes.iter().all(|mode| answers(mode.port));
        assert!(are_up, "Exim does not answer: {}", exim.log());
        exim
    }

    fn log(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        read("out") + &read("spool/log-main") + &read("spool/log-panic")
    }

    fn mails(&self) -> usize {
        fs::read_dir(self.folder.join("inbox/new")).map_or(0, Iterator::count)
    }
}

impl Drop for Exim {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn write(folder: &Path, modes: &[Mode], binary: &str) {
    let (uid, gid) = (id("-u", "nobody"), id("-g", "nobody"));
    let (certificate, key) = certificates::pem("localhost");
    for name in ["spool", "inbox"] {
        fs::create_dir_all(folder.join(name)).unwrap();
        chown(folder.join(name), Some(uid), Some(gid)).unwrap();
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("cert.pem"), certificate).unwrap();
    fs::write(folder.join("key.pem"), key).unwrap();
    let ports = |is_in: &dyn Fn(&Mode) -> bool| -> String {
        let ports = modes.iter().filter(|mode| is_in(mode));
        let ports: Vec<String> = ports.map(|mode| mode.port.to_string()).collect();
        ports.join(" : ")
    };
    let with = |login: &str| ports(&|mode| mode.login == Some(login));
    let config = format!(
        "exim_path = {binary}
keep_environment =
spool_directory = {folder}/spool
log_file_path = {folder}/spool/log-%s
pid_file_path = {folder}/spool/pid
log_selector = +incoming_interface
primary_hostname = exim.test
local_interfaces = 127.0.0.1
daemon_smtp_ports = {all}
tls_on_connect_ports = {implicit}
tls_advertise_hosts = ${{if inlist{{$received_port}}{{{starttls}}}{{*}}}}
tls_certificate = {folder}/cert.pem
tls_privatekey = {folder}/key.pem
smtputf8_advertise_hosts = ${{if def:tls_in_cipher{{*}}}}
chunking_advertise_hosts = ${{if def:tls_in_cipher{{*}}}}
domainlist ours = example.org : xn--bcher-kva.example
message_size_limit = 5M
smtp_accept_queue_per_connection = 0
deliver_drop_privilege = true
acl_smtp_rcpt = recipient
acl_smtp_data = accept
begin acl
recipient:
  deny message = only for us
    !domains = +ours
  accept condition = ${{if inlist{{$received_port}}{{{free}}}}}
  accept authenticated = *
  deny message = who are you?
begin routers
all:
  driver = accept
  transport = files
begin transports
files:
  driver = appendfile
  maildir_format
  directory = {folder}/inbox
  user = Debian-exim
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_advertise_condition = ${{if inlist{{$received_port}}{{{plain}}}}}
  server_prompts = :
  server_condition = ${{if and{{{{eq{{$auth2}}{{outflow}}}}{{eq{{$auth3}}{{secret}}}}}}}}
  server_set_id = $auth2
login:
  driver = plaintext
  public_name = LOGIN
  server_advertise_condition = ${{if inlist{{$received_port}}{{{login}}}}}
  server_prompts = Username:: : Password::
  server_condition = ${{if and{{{{eq{{$auth1}}{{outflow}}}}{{eq{{$auth2}}{{secret}}}}}}}}
  server_set_id = $auth1
cram:
  driver = cram_md5
  public_name = CRAM-MD5
  server_advertise_condition = ${{if inlist{{$received_port}}{{{cram}}}}}
  server_secret = ${{if eq{{$auth1}}{{outflow}}{{secret}}fail}}
  server_set_id = $auth1
",
        folder = folder.display(),
        all = ports(&|_| true),
        implicit = ports(&|mode| mode.tls == Tls::Implicit),
        starttls = ports(&|mode| mode.tls == Tls::Starttls),
        free = ports(&|mode| mode.login.is_none()),
        plain = with("PLAIN"),
        login = with("LOGIN"),
        cram = with("CRAM-MD5"),
    );
    fs::write(folder.join("exim.conf"), config).unwrap();
}

#[test]
fn exim_takes_every_letter_in_every_way() {
    let exim = Exim::start();
    let ca_file = exim.folder.join("cert.pem");
    let mut courier = Courier::new();
    for mode in &exim.modes {
        let name = mode.name();
        let mut relay = mode.relay(&ca_file, "secret");
        let mut taken = 0;
        for chunking in [true, false] {
            relay.chunking = chunking;
            taken += courier.send_all(&relay, !mode.is_open());
        }
        let count = 2 * (letters().len() - usize::from(mode.is_open()));
        assert_eq!(taken, count, "{name}");
        let (stage, code, text) = said(&courier.send_to(&relay, "user@elsewhere.example"));
        assert_eq!((stage, code), (Stage::Recipient, 550), "{name}: {text}");
        assert_eq!(text, "only for us", "{name}");
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
    let came = wait(|| exim.mails() == count);
    assert!(came, "{} of {count}: {}", exim.mails(), exim.log());
    courier.read(&exim.folder, &exim.folder.join("inbox/new"));
    for mode in &exim.modes {
        seen(mode, &exim.log());
    }
}

/// What Exim says of how letters came: by which login, protected or not, and
/// whether in chunks (`K`).
fn seen(mode: &Mode, log: &str) {
    let port = format!(" I=[127.0.0.1]:{} ", mode.port);
    let lines = log.lines();
    let came = lines.filter(|line| line.contains(" <= ") && line.contains(&port));
    let came: Vec<&str> = came.collect();
    let count = letters().len();
    let expected = match mode.is_open() {
        true => (2 * count - 2, 0),
        false => (2 * count, count),
    };
    let chunked = came.iter().filter(|line| line.contains(" K ")).count();
    assert_eq!((came.len(), chunked), expected, "{}: {log}", mode.name());
    let (protected, known) = (!mode.is_open(), mode.login.is_some());
    let protocol = match (protected, known) {
        (false, false) => " P=esmtp ",
        (true, false) => " P=esmtps ",
        (false, true) => " P=esmtpa ",
        (true, true) => " P=esmtpsa ",
    };
    let login = match mode.login {
        Some("PLAIN") => " A=plain:outflow ",
        Some("LOGIN") => " A=login:outflow ",
        Some(_) => " A=cram:outflow ",
        None => "",
    };
    for line in came {
        // `utf8esmtps`, where the address was in UTF-8.
        let line = line.replace(" P=utf8", " P=");
        assert!(line.contains(protocol) && line.contains(login), "{line}");
    }
}
