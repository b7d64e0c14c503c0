//! A lean client for the server under test: HTTP/1.1, keep-alive, one request
//! at a time per connection, requests written from bytes that were built
//! before.
//!
//! Load and server share two cores, so what the client costs is part of every
//! figure. It runs on one thread, copies nothing that it need not, and reads of
//! an answer only its status and length; each benchmark prints how much CPU its
//! own process took (`client_cpu`, in cores), so that a client that has become
//! the bottleneck shows.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer is not longer than this.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A connection to a server.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(self.body).unwrap_or_default()
    }

    /// Fails unless the status is this one.
    pub fn expect(self, status: u16) -> io::Result<Self> {
        if self.status == status {
            return Ok(self);
        }
        let start = &self.body[..self.body.len().min(500)];
        let text = String::from_utf8_lossy(start);
        Err(io::Error::other(format!(
            "the server answered {} instead of {status}: {text}",
            self.status
        )))
    }
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let buffer = Vec::with_capacity(16 << 10);
        Ok(Self { stream, buffer })
    }

    /// Sends a whole request and reads its answer.
    pub async fn call(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            self.fill().await?;
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
        };
        let (status, length) = read_head(&self.buffer[..head])?;
        while self.buffer.len() < head + length {
            self.fill().await?;
        }
        Ok(Answer {
            status,
            body: &self.buffer[head..head + length],
        })
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn read_head(head: &[u8]) -> io::Result<(u16, usize)> {
    let garbled = || io::Error::other("the server's answer cannot be read");
    let head = std::str::from_utf8(head).map_err(|_| garbled())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|it| it.parse().ok()).ok_or_else(garbled)?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse::<usize>().ok())?
    });
    match length {
        Some(length) if length <= ANSWER_BYTES_MAX => Ok((status, length)),
        None if status == 204 => Ok((status, 0)),
        _ => Err(garbled()),
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The bytes of a request.
pub fn request(method: &str, path: &str, token: &str, media: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: {media}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The bytes of a submission.
pub fn submission(token: &str, media: &str, body: &[u8]) -> Vec<u8> {
    request("POST", "/api/v1/messages", token, media, body)
}

/// The bytes of a request for something.
pub fn get(path: &str, token: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n")
        .into_bytes()
}
