//! The API over TLS, asked by the command line.

use std::path::Path;
use std::process::Command;

use crate::client::Client;
use crate::process::Place;

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
    let output = Command::new(env!("CARGO_BIN_EXE_outflow"))
        .current_dir(&place.dir)
        .args(["--data-dir", "data", "--ca-file"])
        .arg(&cert)
        .args(["messages", "list", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // Without TLS nobody is answered, and others do not notice.
    assert!(Client::new(server.address, "none").get("/healthz").is_err());
    server.stop();
}
