//! A client that knows nothing of us: Python's `smtplib`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use outflow_core::class::Class;
use outflow_core::name::Name;

use crate::edges::mail;
use crate::world::{World, certificate};

/// A world with TLS, and the file by which it is trusted.
struct Trusted {
    world: World,
    ca_file: PathBuf,
}

impl Trusted {
    fn new(name: &str) -> Self {
        let world = World::new(|_| {});
        let file = format!("outflow-submission-{}-{name}.pem", std::process::id());
        let trusted = Self {
            world,
            ca_file: std::env::temp_dir().join(file),
        };
        trusted.renew();
        trusted
    }

    /// Shows another certificate from now on.
    fn renew(&self) {
        let (pem, config) = certificate();
        std::fs::write(&self.ca_file, pem).unwrap();
        self.world.tls.send(Some(config)).unwrap();
    }

    /// What Python hears.
    fn run(&self, mode: &str) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/submission/submit.py");
        let output = Command::new("python3")
            .arg(script)
            .arg(self.world.address.port().to_string())
            .arg(&self.ca_file)
            .arg(mode)
            .output();
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("python3 is not there: apt-get install python3")
            }
            Err(error) => panic!("python3: {error}"),
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Trusted {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.ca_file);
    }
}

#[test]
fn python_submits_over_tls() {
    let trusted = Trusted::new("submit");
    for (round, mode) in ["plain", "login"].into_iter().enumerate() {
        let heard = trusted.run(mode);
        for expected in [
            r#""failed": {}"#,
            r#""idn": "250 2.1.5 Ok""#,
            r#""bdat": ["250 2.0.0 9 octets received", "250 2.0.0 Ok: queued as "#,
            r#""quit": "221 2.0.0 Bye""#,
            "\"8bitmime\", \"auth\", \"chunking\", \"enhancedstatuscodes\", \"pipelining\", \
             \"size\", \"smtputf8\"",
        ] {
            assert!(heard.contains(expected), "{expected}: {heard}");
        }
        let batches = trusted.world.memory.batches();
        let [first, second] = &batches[2 * round][..] else {
            panic!("{batches:?}");
        };
        assert_eq!(first.key.class, Class::High);
        assert_eq!(first.key.tenant.as_str(), "acme");
        assert_eq!(first.key.campaign, Some(Name::from("Frühling")));
        assert_eq!(second.key.destination.name.as_str(), "example.org");
        let sent = mail(first);
        assert!(sent.eight_bit);
        assert_eq!(sent.author_domain, "example.com");
        let text = String::from_utf8(sent.bytes).unwrap();
        assert!(
            text.ends_with("\r\n\r\nSchöne Grüße\r\n.\r\nvon hier\r\n"),
            "{text}"
        );
        assert!(
            text.starts_with("Received: by mail.example.com with ESMTPSA;"),
            "{text}"
        );
        assert!(!text.to_lowercase().contains("x-outflow"), "{text}");
        let chunked = mail(&batches[2 * round + 1][0]);
        assert_eq!(chunked.recipient.as_str(), "jürgen@xn--bcher-kva.example");
        assert!(chunked.bytes.ends_with(b"\r\n\r\nin chunks\r\n"));
    }
}

#[test]
fn a_stranger_is_refused_before_any_data() {
    let trusted = Trusted::new("stranger");
    let heard = trusted.run("stranger");
    for expected in [
        r#""mail": "530 5.7.0 "#,
        r#""rcpt": "503 5.5.1 "#,
        r#""data": "503 5.5.1 "#,
        r#""wrong": "535 5.7.8 "#,
    ] {
        assert!(heard.contains(expected), "{expected}: {heard}");
    }
    assert!(trusted.world.memory.batches().is_empty());
}

#[test]
fn a_new_certificate_is_shown_without_a_restart() {
    let trusted = Trusted::new("renewal");
    let before = trusted.run("certificate");
    trusted.renew();
    let after = trusted.run("certificate");
    assert!(before.contains("certificate") && after.contains("certificate"));
    assert_ne!(before, after);
}
