//! Servers that are spoken to in secret.

use std::time::Duration;

use outflow_core::engine::event::LeaseAnswer;
use outflow_ledger_redis::RedisSettings;
use rcgen::generate_simple_self_signed;

use crate::ask::{Node, spec};
use crate::server::{RedisServer, free_port};

#[test]
fn only_a_server_that_can_be_trusted_is_used() {
    let certified = generate_simple_self_signed(vec!["localhost".to_owned()]);
    let certified = certified.expect("a certificate");
    let pem = certified.cert.pem();
    let name = format!("outflow-ledger-redis-tls-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, &pem).expect("a certificate");
    std::fs::write(&key, certified.signing_key.serialize_pem()).expect("a key");
    let port = free_port().to_string();
    let server = RedisServer::start(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        cert.to_str().expect("a path"),
        "--tls-key-file",
        key.to_str().expect("a path"),
        "--tls-auth-clients",
        "no",
    ]);
    let settings = RedisSettings::new(&format!("rediss://localhost:{port}")).expect("a URL");
    let settings = settings
        .timeout(Duration::from_secs(2))
        .expect("a time-out");
    let limit = spec("1000/s burst 100");

    let mut wary = Node::with(settings.clone());
    assert_eq!(wary.ask("acme", &limit, 1), LeaseAnswer::Away);
    let error = wary.ledger.status().last_error.expect("a reason");
    assert!(error.to_lowercase().contains("certificate"), "{error}");

    let mut node = Node::with(settings.authority(pem.into_bytes()));
    node.ask_until_leased("acme", &limit, 1);
    drop(server);
    std::fs::remove_dir_all(&folder).expect("the folder can go");
}
