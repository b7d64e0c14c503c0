//! `outflow doctor`, as somebody types it, against a DNS and a mail server on
//! this machine.

use std::fs;
use std::process::{Command, Output, Stdio};

use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};

use crate::dns::{DnsServer, Mood};
use crate::process::Place;
use crate::sink::Sink;

const RSA: &str = include_str!("../../../../crates/mail/src/tests/rsa.pem");
/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1";
const SENDS_FROM: &str = "192.0.2.10";

/// A machine that sends for `example.test`, and the world around it.
struct Clinic {
    place: Place,
    dns: DnsServer,
    sink: Sink,
}

impl Clinic {
    /// Nothing is published yet but who takes mail.
    fn new(name: &str) -> Self {
        let clinic = Self {
            place: Place::new(name),
            dns: DnsServer::start(),
            sink: Sink::start(),
        };
        fs::write(clinic.place.dir.join("dkim.pem"), RSA).unwrap();
        clinic
            .dns
            .mx("example.test", 60, &[(10, "mx.example.test")]);
        clinic.dns.addresses("mx.example.test", 60, &["127.0.0.1"]);
        clinic.configure("");
        clinic
    }

    /// The same, with all published that should be.
    fn well(name: &str) -> Self {
        let clinic = Self::new(name);
        let dns = &clinic.dns;
        dns.texts("example.test", 60, &["v=spf1 ip4:192.0.2.0/28 -all"]);
        dns.addresses("mail.example.test", 60, &[SENDS_FROM]);
        dns.names(SENDS_FROM, 60, &["mail.example.test"]);
        let strict = "v=DMARC1; p=reject; rua=mailto:d@example.test";
        dns.texts("_dmarc.example.test", 60, &[strict]);
        let missing = clinic.record("dkim");
        let value = missing["value"].as_str().unwrap();
        dns.texts("s1._domainkey.example.test", 60, &[value]);
        clinic
    }

    fn configure(&self, more: &str) {
        self.place.configure(&format!(
            "{more}\n[[account]]\nid = \"direct\"\ntransport = \"mx\"\nport = {}\n\
             ip = \"{SENDS_FROM}\"\nhelo = \"mail.example.test\"\n\
             max_connections_per_destination = 60\n\
             dkim = {{ domain = \"example.test\", selector = \"s1\", key_file = \"dkim.pem\" }}\n",
            self.sink.address.port(),
        ));
    }

    fn run(&self, line: &[&str]) -> Output {
        self.run_at(Some(NOBODY), line)
    }

    fn run_at(&self, server: Option<&str>, line: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outflow"));
        command
            .current_dir(&self.place.dir)
            .env_remove("OUTFLOW_SERVER")
            .env_remove("OUTFLOW_TOKEN")
            .args([
                "doctor",
                "--data-dir",
                "data",
                "--dns",
                &self.dns.address.to_string(),
            ])
            .args(line)
            .stdin(Stdio::null());
        if let Some(server) = server {
            command.args(["--server", server]);
        }
        command.output().unwrap()
    }

    /// The findings, and the exit code.
    fn findings(&self, line: &[&str]) -> (Vec<Value>, i32) {
        read(&self.run(&[line, &["--json"]].concat()))
    }

    /// The first record that it wants published for a check.
    fn record(&self, check: &str) -> Value {
        let (findings, _) = self.findings(&[]);
        let mut findings = findings.iter().filter(|finding| finding["check"] == check);
        let found = findings.find(|finding| finding["record"].is_object());
        found.unwrap_or_else(|| panic!("nothing to publish for {check}"))["record"].clone()
    }
}

fn read(output: &Output) -> (Vec<Value>, i32) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let domains = answer["domains"].as_array().unwrap();
    let findings = domains
        .iter()
        .flat_map(|domain| domain["findings"].as_array().unwrap())
        .cloned();
    (findings.collect(), output.status.code().unwrap())
}

fn with_status<'a>(findings: &'a [Value], status: &str) -> Vec<&'a Value> {
    let found = findings
        .iter()
        .filter(|finding| finding["status"] == status);
    found.collect()
}

/// Whether there is such a finding.
#[track_caller]
fn assert_found(findings: &[Value], check: &str, status: &str, words: &str) {
    let is_it = |finding: &Value| {
        finding["check"] == check
            && finding["status"] == status
            && finding["what"].as_str().unwrap().contains(words)
    };
    assert!(
        findings.iter().any(is_it),
        "no {status} of {check} with {words:?}: {findings:#?}"
    );
}

#[test]
fn a_domain_with_which_all_is_well_passes() {
    let clinic = Clinic::well("doctor-well");
    let (findings, code) = clinic.findings(&["--domain", "Example.Test"]);
    assert_eq!(
        with_status(&findings, "fail"),
        [] as [&Value; 0],
        "{findings:#?}"
    );
    assert_eq!(code, 0);
    for check in [
        "spf",
        "dkim",
        "dmarc",
        "mx",
        "reverse_dns",
        "helo",
        "limits",
        "10dlc",
    ] {
        assert_found(&findings, check, "ok", "");
    }
    // The sink has no TLS, no server was asked, and each message says for itself
    // how it is left.
    let warnings = with_status(&findings, "warn");
    assert!(
        matches!(warnings.as_slice(), [one] if one["check"] == "tls"),
        "{warnings:#?}"
    );
    assert_found(
        &findings,
        "tls",
        "warn",
        "mx.example.test does not offer STARTTLS",
    );
    let unknown = with_status(&findings, "unknown");
    let unknown: Vec<&Value> = unknown.iter().map(|finding| &finding["check"]).collect();
    assert_eq!(unknown, ["unsubscribe", "warm_up"]);
    // For people, the same.
    let output = clinic.run(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("example.test\n"), "{text}");
    assert!(text.contains("ok    spf"), "{text}");
    assert!(
        text.contains("\n0 failures, 1 warning, 2 unknown, "),
        "{text}"
    );
}

#[test]
fn what_it_says_to_publish_mends_a_domain() {
    let clinic = Clinic::new("doctor-mends");
    let mut rounds = 0;
    loop {
        let (findings, code) = clinic.findings(&[]);
        let failures = with_status(&findings, "fail");
        assert_eq!(code, i32::from(!failures.is_empty()), "{failures:#?}");
        if failures.is_empty() {
            break;
        }
        rounds += 1;
        assert!(rounds < 5, "{failures:#?}");
        for failure in failures {
            let field = |name: &str| failure["record"][name].as_str().unwrap_or_default();
            let (name, value) = (field("name"), field("value"));
            match field("type") {
                "TXT" => clinic.dns.texts(name, 60, &[value]),
                "A" => clinic.dns.addresses(name, 60, &[value]),
                "PTR" => {
                    assert_eq!(name, "10.2.0.192.in-addr.arpa");
                    clinic.dns.names(SENDS_FROM, 60, &[value]);
                }
                other => panic!("{other:?}: {failure:#?}"),
            }
        }
    }
    assert!(rounds > 0, "something must have been wrong");
    let (findings, _) = clinic.findings(&[]);
    assert_found(
        &findings,
        "dkim",
        "ok",
        "holds the rsa key that we sign with",
    );
    assert_found(&findings, "reverse_dns", "ok", "mail.example.test");
}

/// What is changed, and what must then be found: check, status, words.
type Fault = (fn(&DnsServer), &'static str, &'static str, &'static str);

const FAULTS: &[Fault] = &[
    (
        |d| d.texts("example.test", 60, &["v=spf1 -all"]),
        "spf",
        "fail",
        "refuses it",
    ),
    (
        |d| d.forget("example.test"),
        "spf",
        "fail",
        "has no SPF record",
    ),
    (
        |d| {
            d.texts(
                "example.test",
                60,
                &["v=spf1 ip4:192.0.2.10 -all", "v=spf1 ~all"],
            )
        },
        "spf",
        "fail",
        "2 SPF records",
    ),
    (
        |d| {
            // Two domains that include each other.
            d.texts(
                "example.test",
                60,
                &["v=spf1 include:a.test ip4:192.0.2.10 -all"],
            );
            d.texts(
                "a.test",
                60,
                &["v=spf1 include:example.test include:b.test -all"],
            );
            d.texts("b.test", 60, &["v=spf1 include:a.test -all"]);
        },
        "spf",
        "fail",
        "includes itself",
    ),
    (
        |d| d.texts("s1._domainkey.example.test", 60, &["v=DKIM1; k=rsa; p="]),
        "dkim",
        "fail",
        "revoked",
    ),
    (
        |d| d.forget("s1._domainkey.example.test"),
        "dkim",
        "fail",
        "has no key record",
    ),
    (
        |d| d.texts("_dmarc.example.test", 60, &["v=DMARC1; p=none"]),
        "dmarc",
        "warn",
        "policy for example.test is none",
    ),
    (
        |d| d.forget("_dmarc.example.test"),
        "dmarc",
        "fail",
        "has no DMARC record",
    ),
    (
        |d| d.mx("example.test", 60, &[(0, "")]),
        "mx",
        "fail",
        "null MX",
    ),
    (
        |d| d.mx("example.test", 60, &[(1, "gone.test")]),
        "mx",
        "fail",
        "no mail server",
    ),
    (
        |d| d.forget("10.2.0.192.in-addr.arpa"),
        "reverse_dns",
        "fail",
        "has no name",
    ),
    (
        |d| d.names(SENDS_FROM, 60, &["other.example.test"]),
        "reverse_dns",
        "fail",
        "does not lead back",
    ),
    (
        |d| d.forget("mail.example.test"),
        "helo",
        "fail",
        "has no address",
    ),
    (
        |d| d.set_broken("_dmarc.example.test"),
        "dmarc",
        "unknown",
        "cannot be had",
    ),
    (
        |d| d.addresses("mx.example.test", 60, &["127.0.0.99"]),
        "tls",
        "unknown",
        "127.0.0.99",
    ),
];

#[test]
fn each_fault_in_dns_is_found() {
    for (no, (fault, check, status, words)) in FAULTS.iter().enumerate() {
        let clinic = Clinic::well(&format!("doctor-fault-{no}"));
        fault(&clinic.dns);
        let (findings, code) = clinic.findings(&[]);
        assert_found(&findings, check, status, words);
        assert_eq!(code, i32::from(*status == "fail"), "{no}: {findings:#?}");
    }
}

#[test]
fn a_dns_that_says_nothing_fails_nobody() {
    let clinic = Clinic::well("doctor-silent");
    clinic.dns.set_mood(Mood::Silent);
    let (findings, code) = clinic.findings(&[]);
    assert_eq!(
        (with_status(&findings, "fail").len(), code),
        (0, 0),
        "{findings:#?}"
    );
    for check in ["spf", "dkim", "dmarc", "mx", "reverse_dns", "helo"] {
        assert_found(&findings, check, "unknown", "DNS does not answer");
    }
}

#[test]
fn settings_are_looked_at_too() {
    let clinic = Clinic::well("doctor-settings");
    let made = generate_simple_self_signed(vec!["smtp.elsewhere.test".to_owned()]).unwrap();
    fs::write(clinic.place.dir.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(
        clinic.place.dir.join("key.pem"),
        made.signing_key.serialize_pem(),
    )
    .unwrap();
    clinic.configure(
        "[smtp]\nlisten = \"127.0.0.1:2525\"\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n\
         [[policy]]\nmatch = { isp = \"google\", ip = \"*\" }\nrate = \"500/s\"\nconcurrency = 90\n\
         [[policy]]\nmatch = { carrier = \"us-att\" }\nrate = \"75/min\"\n\
         [[account]]\nid = \"sms\"\ntransport = \"sandbox\"\npool = \"sms\"\n\
         [[account]]\nid = \"grid\"\nhost = \"smtp.sendgrid.net\"\n",
    );
    let (findings, code) = clinic.findings(&["--domain", "example.test"]);
    assert_found(&findings, "tls", "warn", "smtp.elsewhere.test");
    assert_found(
        &findings,
        "limits",
        "warn",
        "direct may send 500/s to google",
    );
    assert_found(&findings, "limits", "warn", "60 connections to google");
    assert_found(&findings, "10dlc", "warn", "sms sends texts");
    assert_found(&findings, "spf", "warn", "does not include sendgrid.net");
    assert_found(&findings, "dkim", "warn", "grid does not sign");
    assert_eq!(code, 0, "{findings:#?}");
    // A key that is gone is worse: the account sends nothing.
    fs::remove_file(clinic.place.dir.join("dkim.pem")).unwrap();
    let (findings, code) = clinic.findings(&["--domain", "example.test"]);
    assert_found(&findings, "dkim", "fail", "dkim.pem cannot be read");
    assert_eq!(code, 1);
}

#[test]
fn a_running_server_is_asked() {
    let clinic = Clinic::well("doctor-live");
    let warming =
        "[[warm_up]]\naccount = \"direct\"\ndestinations = [\"isp:google\"]\nplan = \"ses\"\n";
    clinic.configure(warming);
    let server = clinic.place.start();
    let mut client = server.client();
    let fast = json!({ "rate": "900/s" });
    let path = "/api/v1/policies/ip/*/isp/google";
    let answer = client.call("PUT", path, Some(&fast)).unwrap();
    assert!(answer.status < 300, "{}", answer.text);
    let account = json!({ "transport": "mx", "ip": "192.0.2.99", "helo": "mail.example.test" });
    let answer = client
        .call("PUT", "/api/v1/accounts/second", Some(&account))
        .unwrap();
    assert!(answer.status < 300, "{}", answer.text);
    let (findings, code) = read(&clinic.run_at(None, &["--json", "--domain", "example.test"]));
    assert_found(&findings, "spf", "fail", "we send from 192.0.2.99");
    assert_found(&findings, "dkim", "fail", "second does not sign");
    assert_found(
        &findings,
        "warm_up",
        "ok",
        "account:direct/isp:google: day 1 of",
    );
    assert_eq!(code, 1);
    let limits = findings
        .iter()
        .filter(|finding| finding["check"] == "limits");
    let limits: Vec<&Value> = limits.collect();
    assert!(
        limits
            .iter()
            .any(|it| it["what"].as_str().unwrap().contains("900/s to google")),
        "{limits:#?}"
    );
    server.stop();
}

/// The server's accounts count, not those that it was once started with.
#[test]
fn what_was_changed_or_taken_away_over_the_api_is_not_judged_by_the_file() {
    let clinic = Clinic::well("doctor-changed");
    let former = "[[account]]\nid = \"former\"\ntransport = \"mx\"\nip = \"192.0.2.99\"\n\
               helo = \"former.example.test\"\n";
    clinic.configure(former);
    let (findings, _) = clinic.findings(&["--domain", "example.test"]);
    assert_found(&findings, "dkim", "fail", "former does not sign");
    let server = clinic.place.start();
    let mut client = server.client();
    let answer = client
        .call("DELETE", "/api/v1/accounts/former", None)
        .unwrap();
    assert!(answer.status < 300, "{}", answer.text);
    let moved = json!({ "ip": "192.0.2.77" });
    let answer = client.call("PATCH", "/api/v1/accounts/direct", Some(&moved));
    let answer = answer.unwrap();
    assert!(answer.status < 300, "{}", answer.text);
    let (findings, _) = read(&clinic.run_at(None, &["--json", "--domain", "example.test"]));
    assert_found(&findings, "spf", "fail", "we send from 192.0.2.77");
    let text = json!(findings).to_string();
    assert!(
        !text.contains("192.0.2.99") && !text.contains("former"),
        "{text}"
    );
    assert!(!text.contains("lets 192.0.2.10 send"), "{text}");
    server.stop();
}

/// Behind a router the machine knows an address that receivers never see.
#[test]
fn a_private_address_is_never_published() {
    let clinic = Clinic::well("doctor-private");
    clinic.dns.forget("example.test");
    clinic.place.configure(
        "[[account]]\nid = \"direct\"\ntransport = \"mx\"\nsource_ip = \"100.64.0.9\"\n\
         helo = \"mail.example.test\"\n",
    );
    let (findings, _) = clinic.findings(&["--domain", "example.test"]);
    assert_found(&findings, "reverse_dns", "unknown", "private address");
    for finding in &findings {
        let record = finding["record"].to_string();
        assert!(!record.contains("100.64"), "{finding:#?}");
    }
    let (findings, _) = clinic.findings(&["--domain", "example.test", "--ip", SENDS_FROM]);
    assert_found(&findings, "reverse_dns", "ok", "192.0.2.10 is called");
    let spf = findings.iter().find(|finding| finding["check"] == "spf");
    let wanted = "v=spf1 ip4:192.0.2.10 ~all";
    assert_eq!(spf.unwrap()["record"]["value"], wanted, "{findings:#?}");
}

#[test]
fn a_key_that_does_not_fit_its_certificate_is_found() {
    let clinic = Clinic::well("doctor-pair");
    let made = || generate_simple_self_signed(vec!["mail.example.test".to_owned()]).unwrap();
    let (one, other) = (made(), made());
    let put = |name: &str, text: String| fs::write(clinic.place.dir.join(name), text).unwrap();
    put("cert.pem", one.cert.pem());
    put("key.pem", other.signing_key.serialize_pem());
    let listener = "[smtp]\nlisten = \"127.0.0.1:2525\"\ntls_cert = \"cert.pem\"\n\
                    tls_key = \"key.pem\"\n";
    clinic.configure(listener);
    let (findings, code) = clinic.findings(&["--domain", "example.test"]);
    assert_found(&findings, "tls", "fail", "cert.pem and key.pem");
    assert_eq!(code, 1);
    put("key.pem", one.signing_key.serialize_pem());
    let (findings, _) = clinic.findings(&["--domain", "example.test"]);
    assert_found(&findings, "tls", "ok", "mail.example.test for");
}

#[test]
fn what_settings_do_not_say_can_be_said() {
    let clinic = Clinic::well("doctor-said");
    clinic.place.configure(
        "[[account]]\nid = \"direct\"\ntransport = \"mx\"\nhelo = \"mail.example.test\"\n",
    );
    let (findings, _) = clinic.findings(&["--domain", "example.test"]);
    assert_found(&findings, "reverse_dns", "unknown", "is not known");
    let line = ["--domain", "example.test", "--ip", SENDS_FROM];
    let (findings, _) = clinic.findings(&line);
    assert_found(
        &findings,
        "reverse_dns",
        "ok",
        "192.0.2.10 is called mail.example.test",
    );
    assert_found(&findings, "spf", "ok", "lets 192.0.2.10 send");
    // Bounces go elsewhere.
    clinic.dns.mx("bounce.test", 60, &[(10, "mx.example.test")]);
    let more = ["--bounce-domain", "bounce.test"];
    let (findings, _) = clinic.findings(&[&line[..], &more[..]].concat());
    assert_found(&findings, "bounces", "warn", "which is not us");
    assert_found(&findings, "spf", "fail", "bounce.test has no SPF record");
    assert_found(
        &findings,
        "dmarc",
        "fail",
        "neither signature nor return path",
    );
}

#[test]
fn wrong_use_is_told_from_failure() {
    let clinic = Clinic::new("doctor-wrong");
    for line in [
        &["--domain", "nonsense"][..],
        &["--domain", "user@example.test"],
        &["--domain", "example.test", "--bounce-domain", "b"],
        &["--ip", "mail.example.test"],
        &["--config", "missing.toml"],
    ] {
        let output = clinic.run(line);
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{line:?}"
        );
    }
    // Without an account that signs somebody must say which domain.
    clinic.place.configure("");
    let output = clinic.run(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--domain example.com"), "{said}");
}
