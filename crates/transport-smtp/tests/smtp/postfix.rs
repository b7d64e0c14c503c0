//! Every awkward letter goes through a real Postfix, in the open and over TLS,
//! with every login. Needs root, as Postfix does.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use outflow_core::reply::Stage;
use outflow_transport_smtp::Tls;

use crate::certificates;
use crate::letters::letters;
use crate::peer::{Courier, Mode, failed, said};
use crate::postfix_server::{PACKAGES, Postfix};
use crate::programs::{id, run, wait};

/// A certificate, and a password for each way to log in.
fn guarded(folder: &Path, modes: &[Mode]) -> String {
    let (certificate, key) = certificates::pem("localhost");
    fs::write(folder.join("cert.pem"), certificate).unwrap();
    fs::write(folder.join("key.pem"), key).unwrap();
    fs::create_dir_all(folder.join("etc/sasl")).unwrap();
    let passwords = folder.join("etc/sasl/sasldb2");
    for login in modes.iter().filter_map(|mode| mode.login) {
        let sasl = format!(
            "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nmech_list: {login}\n\
             sasldb_path: {}\n",
            passwords.display()
        );
        fs::write(folder.join(format!("etc/sasl/{login}.conf")), sasl).unwrap();
    }
    let password = folder.join("password");
    fs::write(&password, "secret").unwrap();
    let mut command = Command::new("saslpasswd2");
    command
        .args(["-c", "-p", "-u", "mail.test", "-f"])
        .arg(&passwords)
        .arg("outflow")
        .stdin(fs::File::open(&password).unwrap());
    run(&mut command, PACKAGES);
    chown(&passwords, Some(id("-u", "postfix")), None).unwrap();
    let folder = folder.display();
    format!(
        "mynetworks =
virtual_mailbox_domains = example.org, xn--bcher-kva.example, bücher.example
smtpd_tls_cert_file = {folder}/cert.pem
smtpd_tls_key_file = {folder}/key.pem
smtpd_sasl_local_domain = mail.test
smtpd_relay_restrictions =
smtpd_recipient_restrictions = reject_non_fqdn_recipient, permit_sasl_authenticated, reject
"
    )
}

/// Port and options of a mode, under a name that the log shows.
fn service(mode: &Mode) -> (u16, String) {
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
    (mode.port, format!(" -o {}", options.join(" -o ")))
}

#[test]
fn postfix_takes_every_letter_in_every_way() {
    let modes = Mode::all();
    let services: Vec<(u16, String)> = modes.iter().map(service).collect();
    let postfix = Postfix::start_at(&services, |folder| guarded(folder, &modes));
    let ca_file = postfix.at("cert.pem");
    let mut courier = Courier::new();
    for mode in &modes {
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
    let came = wait(|| postfix.delivered().len() == count);
    assert!(
        came,
        "{} of {count}: {}",
        postfix.delivered().len(),
        postfix.log()
    );
    courier.read(&postfix.folder, &postfix.at("mail/inbox/new"));
    let log = postfix.log();
    for mode in &modes {
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
