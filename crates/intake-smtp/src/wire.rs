//! A connection, over TCP or TLS.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

pub(crate) enum Wire {
    Open(TcpStream),
    Protected(Box<TlsStream<TcpStream>>),
}

impl Wire {
    /// Does the handshake.
    pub async fn protect(self, tls: Arc<ServerConfig>) -> io::Result<Self> {
        match self {
            Self::Open(stream) => {
                let stream = TlsAcceptor::from(tls).accept(stream).await?;
                Ok(Self::Protected(Box::new(stream)))
            }
            Self::Protected(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Reads what is there, or waits. May be dropped at any time.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Open(stream) => stream.read(buffer).await,
            Self::Protected(stream) => stream.read(buffer).await,
        }
    }

    /// Writes all of it.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(stream) => stream.write_all(bytes).await,
            Self::Protected(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Says that nothing more comes.
    pub async fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Open(stream) => stream.shutdown().await,
            Self::Protected(stream) => stream.shutdown().await,
        }
    }
}
