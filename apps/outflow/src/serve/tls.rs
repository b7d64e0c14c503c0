//! The certificates of listeners.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outflow_config::valid::machine::TlsFiles;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig, crypto};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Certificate and key do not go together, or are none.
    #[error("{cert} and {key}: {error}", cert = .cert.display(), key = .key.display())]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        error: rustls::Error,
    },
}

/// Makes TLS of the API's connections.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let mut config = server(files)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// How a listener with this certificate speaks TLS.
pub fn server(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let pair = |error| TlsError::Pair {
        cert: files.cert.clone(),
        key: files.key.clone(),
        error,
    };
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(unreadable(&files.cert))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(unreadable(&files.key))?;
    let provider = Arc::new(crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(pair)
}

fn unreadable(path: &Path) -> impl FnOnce(pem::Error) -> TlsError {
    let path = path.to_owned();
    move |error| {
        let error = match error {
            pem::Error::Io(error) => error,
            other => io::Error::other(other.to_string()),
        };
        TlsError::File { path, error }
    }
}
