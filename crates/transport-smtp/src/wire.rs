//! A connection: bytes out and in at the same time, over TCP or TLS.
//!
//! A server that refuses in the middle of a message says so while we still
//! write; whoever only reads after writing never hears it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

const READ_BYTES: usize = 16 << 10;

enum Stream {
    Open(TcpStream),
    Protected(Box<TlsStream<TcpStream>>),
    /// Between the two, or lost.
    Gone,
}

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum Moved {
    /// Bytes were written; whether those were the last.
    Wrote { all: bool },
    /// Bytes came.
    Read(Vec<u8>),
    /// It ended.
    Closed(String),
}

/// One connection.
pub(crate) struct Wire {
    stream: Stream,
    out: Vec<u8>,
    written: usize,
    is_flushed: bool,
    /// Why nothing can be written any more.
    broken: Option<String>,
    buffer: Box<[u8]>,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream: Stream::Open(stream),
            out: Vec::new(),
            written: 0,
            is_flushed: true,
            broken: None,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        }
    }

    /// Puts bytes behind those that are still to be written.
    pub fn push(&mut self, bytes: Vec<u8>) {
        if self.written == self.out.len() {
            self.out = bytes;
            self.written = 0;
        } else {
            self.out.extend_from_slice(&bytes);
        }
    }

    /// Begins TLS.
    pub async fn protect(&mut self, connector: &TlsConnector, host: &str) -> Result<(), String> {
        let stream = std::mem::replace(&mut self.stream, Stream::Gone);
        let Stream::Open(stream) = stream else {
            return Err("the connection is protected already".to_owned());
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host} is no name for a certificate"))?;
        let handshake = connector.connect(name, stream);
        let stream = handshake.await.map_err(|error| error.to_string())?;
        self.stream = Stream::Protected(Box::new(stream));
        Ok(())
    }

    /// The certificates of the far end, its own first; none without TLS.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        match &self.stream {
            Stream::Protected(stream) => stream.get_ref().1.peer_certificates().unwrap_or_default(),
            Stream::Open(_) | Stream::Gone => &[],
        }
    }

    /// Waits until something happens. May be dropped at any time.
    pub async fn moved(&mut self) -> Moved {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Moved> {
        if self.broken.is_none()
            && let Poll::Ready(written) = self.poll_out(context)
        {
            match written {
                Ok(all) => return Poll::Ready(Moved::Wrote { all }),
                // The server may have said why before it stopped reading.
                Err(error) => self.broken = Some(error.to_string()),
            }
        }
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let read = match &mut self.stream {
            Stream::Open(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Stream::Protected(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Stream::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        };
        let closed = |text: String| Moved::Closed(text);
        match read {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                let why = self.broken.take();
                let why = why.unwrap_or_else(|| "the server closed the connection".to_owned());
                Poll::Ready(closed(why))
            }
            Poll::Ready(Ok(())) => Poll::Ready(Moved::Read(buffer.filled().to_vec())),
            Poll::Ready(Err(error)) => Poll::Ready(closed(error.to_string())),
        }
    }

    /// Ready when bytes were written, with whether those were the last.
    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let rest = self.out.get(self.written..).unwrap_or_default();
        if !rest.is_empty() {
            let written = match &mut self.stream {
                Stream::Open(stream) => Pin::new(stream).poll_write(context, rest),
                Stream::Protected(stream) => Pin::new(stream).poll_write(context, rest),
                Stream::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            };
            return match written {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.is_flushed = false;
                    let all = self.written == self.out.len();
                    if all {
                        self.out = Vec::new();
                        self.written = 0;
                    }
                    Poll::Ready(Ok(all))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            };
        }
        if self.is_flushed {
            return Poll::Pending;
        }
        let flushed = match &mut self.stream {
            Stream::Open(stream) => Pin::new(stream).poll_flush(context),
            Stream::Protected(stream) => Pin::new(stream).poll_flush(context),
            Stream::Gone => Poll::Ready(Ok(())),
        };
        match flushed {
            Poll::Ready(Ok(())) => {
                self.is_flushed = true;
                Poll::Pending
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}
