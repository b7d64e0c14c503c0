//! Every awkward letter goes through a real Postfix, with STARTTLS and a login,
//! and is read by Python's `email`.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use outflow_core::reply::{Reply, Stage};
use outflow_transport_smtp::{Login, Relay, Tls};

use crate::certificates;
use crate::letters::letters;
use crate::postfix::{Postfix, id, run, wait};
use crate::world::{World, parcel, relay};

/// A certificate, a password, and settings that demand both.
fn guarded(folder: &Path) -> String {
    let (certificate, key) = certificates::pem("localhost");
    fs::write(folder.join("cert.pem"), certificate).unwrap();
    fs::write(folder.join("key.pem"), key).unwrap();
    fs::create_dir_all(folder.join("etc/sasl")).unwrap();
    let passwords = folder.join("etc/sasl/sasldb2");
    let sasl = format!(
        "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nmech_list: PLAIN LOGIN\n\
         sasldb_path: {}\n",
        passwords.display()
    );
    fs::write(folder.join("etc/sasl/smtpd.conf"), sasl).unwrap();
    let password = folder.join("password");
    fs::write(&password, "secret").unwrap();
    run(Command::new("saslpasswd2")
        .args(["-c", "-p", "-u", "mail.test", "-f"])
        .arg(&passwords)
        .arg("outflow")
        .stdin(fs::File::open(&password).unwrap()));
    chown(&passwords, Some(id("-u", "postfix")), None).unwrap();
    let folder = folder.display();
    format!(
        "mynetworks =
virtual_mailbox_domains = example.org, xn--bcher-kva.example, bücher.example
smtpd_tls_cert_file = {folder}/cert.pem
smtpd_tls_key_file = {folder}/key.pem
smtpd_tls_security_level = encrypt
smtpd_sasl_auth_enable = yes
smtpd_sasl_local_domain = mail.test
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = reject_non_fqdn_recipient, permit_sasl_authenticated, reject
"
    )
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
    let postfix = Postfix::start(guarded);
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
        wait(|| postfix.delivered().len() == expected.len()),
        "{} of {} came: {}",
        postfix.delivered().len(),
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
