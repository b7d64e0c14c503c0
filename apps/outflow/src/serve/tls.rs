//! The certificates of listeners.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outflow_config::valid::machine::TlsFiles;
use outflow_telemetry::catalogue::{Event, Level};
use outflow_telemetry::sink::Sink;
use tokio::sync::watch;
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

/// What speaks TLS at a listener; nothing if it has no certificate.
pub type Speaking = watch::Receiver<Option<Arc<ServerConfig>>>;

/// The certificate of a listener, which can be read again.
pub struct Certificate {
    /// The listener, as its settings call it.
    part: &'static str,
    files: Option<TlsFiles>,
    /// What is spoken over TLS, if that is asked.
    protocols: Vec<Vec<u8>>,
    tls: watch::Sender<Option<Arc<ServerConfig>>>,
    sink: Arc<dyn Sink>,
}

impl Certificate {
    /// Reads the certificate of a listener, if it has one.
    pub fn read(
        part: &'static str,
        files: Option<&TlsFiles>,
        protocols: &[&[u8]],
        sink: Arc<dyn Sink>,
    ) -> Result<(Self, Speaking), TlsError> {
        let (tls, speaking) = watch::channel(None);
        let certificate = Self {
            part,
            files: files.cloned(),
            protocols: protocols.iter().map(|it| it.to_vec()).collect(),
            tls,
            sink,
        };
        certificate.renew()?;
        Ok((certificate, speaking))
    }

    fn renew(&self) -> Result<(), TlsError> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        let mut config = server(files)?;
        config.alpn_protocols.clone_from(&self.protocols);
        self.tls.send_replace(Some(Arc::new(config)));
        Ok(())
    }

    /// Reads the certificate again. One that cannot be read is left as it was.
    pub fn reload(&self) {
        if let Err(error) = self.renew() {
            let part = self.part;
            let text = format!("{part}: its certificate stays as it was: {error}");
            self.sink.emit(&Event::Noted {
                level: Level::Error,
                part,
                text: &text,
            });
        }
    }
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
