//! Certificates for the servers of tests.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A certificate for `name` and its key, in PEM.
pub fn pem(name: &str) -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A server that shows a certificate for `name`, and the file to trust it by.
pub fn certificate(name: &str) -> (TlsAcceptor, PathBuf) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let no = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("outflow-smtp-{}-{no}.pem", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), file)
}
