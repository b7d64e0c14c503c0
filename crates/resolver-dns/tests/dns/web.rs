//! A small web server over TLS on loopback. It answers as it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Whoever vouches for the servers of a test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Servers that show a certificate for these names.
    pub fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A running server. It ends with its runtime.
pub struct WebServer {
    pub address: SocketAddr,
    /// What it answers; nothing at all if there is none.
    answer: Arc<Mutex<Option<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    pub async fn start(tls: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            answer: Arc::default(),
            asked: Arc::default(),
        };
        let (answer, asked) = (Arc::clone(&server.answer), Arc::clone(&server.asked));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, answer, asked) = (tls.clone(), Arc::clone(&answer), Arc::clone(&asked));
                tokio::spawn(async move {
                    // Whoever does not like our certificate does not ask.
                    let Ok(mut stream) = tls.accept(stream).await else {
                        return;
                    };
                    let mut bytes = Vec::new();
                    while !bytes.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else {
                            return;
                        };
                        bytes.push(byte);
                    }
                    asked
                        .lock()
                        .unwrap()
                        .push(String::from_utf8(bytes).unwrap());
                    let answer = answer.lock().unwrap().clone();
                    match answer {
                        Some(answer) => {
                            let _ = stream.write_all(answer.as_bytes()).await;
                            let _ = stream.shutdown().await;
                        }
                        None => std::future::pending().await,
                    }
                });
            }
        });
        server
    }

    /// It says nothing from now on.
    pub fn fall_silent(&self) {
        *self.answer.lock().unwrap() = None;
    }

    /// It answers this, as it is.
    pub fn say(&self, answer: &str) {
        *self.answer.lock().unwrap() = Some(answer.to_owned());
    }

    /// It has this policy, for whoever asks.
    pub fn publish(&self, mode: &str, servers: &[&str], max_age: u32) {
        let servers = servers.iter().map(|server| format!("mx: {server}\r\n"));
        let servers = servers.collect::<String>();
        let body = format!("version: STSv1\r\nmode: {mode}\r\n{servers}max_age: {max_age}\r\n");
        let length = body.len();
        self.say(&format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
    }

    /// What it was asked.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}
