//! A small HTTP client for a server on this machine: one connection, requests
//! one after another. Everything it reads is bounded.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No answer is longer.
const BODY_BYTES_MAX: u64 = 64 << 20;
const LINE_BYTES_MAX: u64 = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(60);

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header fields, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub text: String,
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// A header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    token: String,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// Speaks to this address with this token; connects when it is first used.
    pub fn new(address: SocketAddr, token: &str) -> Self {
        Self {
            address,
            token: token.to_owned(),
            connection: None,
        }
    }

    /// Asks for something.
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.call("GET", path, None)
    }

    /// Sends JSON.
    pub fn post(&mut self, path: &str, body: &serde_json::Value) -> io::Result<Answer> {
        self.call("POST", path, Some(body))
    }

    /// Sends a request and waits for its answer. A connection that fails is
    /// not used again.
    pub fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.address)?,
        };
        let body = body.map(ToString::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len(),
        );
        connection.get_mut().write_all(request.as_bytes())?;
        let answer = read_answer(&mut connection)?;
        let closes = answer.header("connection") == Some("close");
        self.connection = (!closes).then_some(connection);
        Ok(answer)
    }
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

fn read_answer(connection: &mut BufReader<TcpStream>) -> io::Result<Answer> {
    let first = read_line(connection)?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| garbled(&first))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(connection)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| garbled(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer {
        status,
        headers,
        text: String::new(),
    };
    let bytes = match answer.header("content-length") {
        Some(length) => {
            let length: u64 = length.parse().map_err(|_| garbled(length))?;
            let mut bytes = Vec::new();
            connection
                .take(length.min(BODY_BYTES_MAX))
                .read_to_end(&mut bytes)?;
            bytes
        }
        None if answer.header("transfer-encoding") == Some("chunked") => read_chunks(connection)?,
        None => Vec::new(),
    };
    answer.text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(answer)
}

fn read_chunks(connection: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let line = read_line(connection)?;
        let length = u64::from_str_radix(line.trim(), 16).map_err(|_| garbled(&line))?;
        if bytes.len() as u64 + length > BODY_BYTES_MAX {
            return Err(garbled("too long"));
        }
        connection.take(length).read_to_end(&mut bytes)?;
        read_line(connection)?;
        if length == 0 {
            return Ok(bytes);
        }
    }
}

fn read_line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    let read = connection.take(LINE_BYTES_MAX).read_line(&mut line)?;
    if read == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn garbled(text: &str) -> io::Error {
    io::Error::other(format!("the server's answer cannot be read: {text:?}"))
}
