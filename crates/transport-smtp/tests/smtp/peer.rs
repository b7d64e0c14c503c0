//! What every server that was not made for us is asked: to take all awkward
//! letters, signed, in each way that it can be reached; Python reads what came.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::dkim::{DkimKey, Keyring};
use outflow_transport_smtp::{Login, Relay, Tls};

use crate::letters::{self, letters};
use crate::programs::{free_ports, run};
use crate::world::{World, parcel, relay};

/// Debian's own, for which its packages of modules are made.
const PYTHON: &str = "/usr/bin/python3";
const KEYS: [(&str, &[u8]); 2] = [
    ("rsa", include_bytes!("../../../mail/src/tests/rsa.pem")),
    ("ed", include_bytes!("../../../mail/src/tests/ed25519.pem")),
];

/// One way to reach a server, at a port of its own. In the open it offers neither
/// SMTPUTF8 nor CHUNKING.
#[derive(Clone, Copy)]
pub struct Mode {
    pub tls: Tls,
    /// The only login that is offered there, and demanded.
    pub login: Option<&'static str>,
    pub port: u16,
}

impl Mode {
    /// Every protection with every login.
    pub fn all() -> Vec<Self> {
        let logins = [None, Some("PLAIN"), Some("LOGIN"), Some("CRAM-MD5")];
        let mut ports = free_ports(3 * logins.len()).into_iter();
        let mut modes = Vec::new();
        for tls in [Tls::None, Tls::Starttls, Tls::Implicit] {
            for login in logins {
                let port = ports.next().unwrap();
                modes.push(Self { tls, login, port });
            }
        }
        modes
    }

    pub fn is_open(&self) -> bool {
        self.tls == Tls::None
    }

    pub fn name(&self) -> String {
        format!("{:?}-{}", self.tls, self.login.unwrap_or("none"))
    }

    /// Whether a password would be said as it is.
    pub fn is_overheard(&self) -> bool {
        self.is_open() && matches!(self.login, Some("PLAIN" | "LOGIN"))
    }

    pub fn relay(&self, ca_file: &Path, password: &str) -> Relay {
        Relay {
            ca_file: (!self.is_open()).then(|| ca_file.to_owned()),
            login: self.login.map(|_| Login {
                user: "outflow".to_owned(),
                password: password.to_owned(),
            }),
            insecure: self.is_overheard(),
            ..relay(self.port, self.tls)
        }
    }
}

/// Sends letters, and remembers what must come.
pub struct Courier {
    pub world: World,
    pub expected: Vec<String>,
    sessions: u32,
    keys: Arc<Keyring>,
    records: String,
}

impl Courier {
    pub fn new() -> Self {
        let mut keys = Keyring::default();
        let mut records = Vec::new();
        for (selector, pem) in KEYS {
            let key = DkimKey::from_pem("example.com", selector, pem).unwrap();
            let name = format!("{selector}._domainkey.example.com.");
            records.push(format!("{name:?}: {:?}", key.record()));
            keys.add(key);
        }
        Self {
            world: World::new(),
            expected: Vec::new(),
            sessions: 0,
            keys: Arc::new(keys),
            records: format!("{{{}}}", records.join(",")),
        }
    }

    fn session(&mut self) -> u32 {
        self.sessions += 1;
        self.sessions
    }

    /// All letters over one session; how many were taken. A server that does not
    /// offer SMTPUTF8 gets all but the one whose address needs it.
    pub fn send_all(&mut self, relay: &Relay, takes_utf8: bool) -> usize {
        let session = self.session();
        let (keys, before) = (Arc::clone(&self.keys), self.expected.len());
        self.world.set(&Relay {
            keys,
            ..relay.clone()
        });
        self.world.ready(session);
        for (no, letter) in letters().into_iter().enumerate() {
            let mut content = letter.content;
            content.message_id = format!("<{session}.{no}@example.com>");
            let became = self.world.send(session, parcel(&letter.envelope, &content));
            let name = letter.name;
            assert!(became.lives, "{name}: {:?}", became.reply);
            if name == "idn recipient" && !takes_utf8 {
                let (stage, code, text) = said(&became.reply);
                assert_eq!((stage, code), (Stage::Sender, 553), "{text}");
                assert!(text.contains("an address is in UTF-8"), "{text}");
                continue;
            }
            assert!(became.reply.is_accepted(), "{name}: {:?}", became.reply);
            self.expected
                .push(String::from_utf8(content.to_bytes()).unwrap());
        }
        self.world.close(session);
        self.expected.len() - before
    }

    /// What is said of one short letter to `to`.
    pub fn send_to(&mut self, relay: &Relay, to: &str) -> Reply {
        let session = self.session();
        self.world.set(relay);
        self.world.ready(session);
        let content = letters::content("x", "y");
        let became = self
            .world
            .send(session, parcel(&letters::envelope(to), &content));
        assert!(became.lives, "{:?}", became.reply);
        self.world.close(session);
        became.reply
    }

    /// Why no session opens.
    pub fn refused(&mut self, relay: &Relay) -> Reply {
        let session = self.session();
        self.world.set(relay);
        self.world.refused(session)
    }

    /// Has Python read what came, a folder or a file of mails, and compare. Both
    /// signatures of each must hold.
    pub fn read(&self, folder: &Path, came: &Path) {
        let written = |name: &str, text: &str| -> PathBuf {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let expected = written("expected.json", &format!("[{}]", self.expected.join(",")));
        let records = written("records.json", &self.records);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smtp/read_mail.py");
        let mut command = Command::new(PYTHON);
        command.arg(script).arg(expected).arg(records).arg(came);
        run(&mut command, "python3-dkim");
    }
}

/// What a server said, or what was said in its stead.
pub fn said(reply: &Reply) -> (Stage, u16, String) {
    match reply {
        Reply::Said {
            stage, code, text, ..
        } => (*stage, *code, text.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Why the network failed, and where.
pub fn failed(reply: &Reply) -> (Stage, String) {
    match reply {
        Reply::Network { stage, text } => (*stage, text.to_string()),
        other => panic!("{other:?}"),
    }
}
