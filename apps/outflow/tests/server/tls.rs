//! The API over TLS, asked by the command line.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rcgen::generate_simple_self_signed;

use crate::client::Client;
use crate::process::{Place, wait_for};

/// Asks over TLS, trusting only this certificate.
fn ask(place: &Place, cert: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_outflow"))
        .current_dir(&place.dir)
        .args(["--data-dir", "data", "--ca-file"])
        .arg(cert)
        .args(["messages", "list", "--json"])
        .output()
        .unwrap()
}

#[test]
fn the_api_speaks_tls_where_a_certificate_is_configured() {
    let place = Place::new("tls");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server");
    let (cert, key) = (here.join("tls-cert.pem"), here.join("tls-key.pem"));
    place.configure(&format!(
        "[server]\ntls_cert = {cert:?}\ntls_key = {key:?}\n"
    ));
    let server = place.start();
    let address = std::fs::read_to_string(place.data().join("address")).unwrap();
    assert!(address.starts_with("https://127.0.0.1:"), "{address}");
    let output = ask(&place, &cert);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // Without TLS nobody is answered, and others do not notice.
    assert!(Client::new(server.address, "none").get("/healthz").is_err());
    server.stop();
}

#[test]
fn a_certificate_is_read_again_on_hup() {
    let place = Place::new("tls-renewed");
    let (cert, key) = (place.dir.join("cert.pem"), place.dir.join("key.pem"));
    let renew = || {
        let made = generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        fs::write(&cert, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    };
    renew();
    place.configure(&format!(
        "[server]\ntls_cert = {cert:?}\ntls_key = {key:?}\n"
    ));
    let server = place.start();
    assert!(ask(&place, &cert).status.success());
    renew();
    assert!(
        !ask(&place, &cert).status.success(),
        "it is not read by itself"
    );
    server.signal("HUP");
    wait_for("the new certificate", || {
        ask(&place, &cert).status.success().then_some(())
    });
    server.stop();
}
