//! A small SMTP server that behaves, and keeps what it takes. Commands are read
//! by a parser that is not ours.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use smtp_proto::{
    AUTH_CRAM_MD5, AUTH_LOGIN, AUTH_PLAIN, MAIL_BODY_8BITMIME, MAIL_SMTPUTF8, Request,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// How a server is.
#[derive(Clone, Default)]
pub struct Manner {
    pub offers: Vec<&'static str>,
    pub tls: Option<TlsAcceptor>,
    pub is_implicit: bool,
    /// Logins that are taken: as they come over the wire, decoded.
    pub logins: Vec<String>,
    /// What is said to this recipient instead of yes.
    pub refuses: Vec<(&'static str, &'static str)>,
}

impl Manner {
    pub fn offering(offers: &[&'static str]) -> Self {
        Self {
            offers: offers.to_vec(),
            ..Self::default()
        }
    }
}

/// A message that was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    pub sender: String,
    pub recipient: String,
    pub bytes: Vec<u8>,
    pub is_8bit: bool,
    pub is_utf8: bool,
    pub is_protected: bool,
    pub is_chunked: bool,
    /// Which connection brought it, and from where.
    pub connection: usize,
    pub peer: SocketAddr,
}

/// A running server.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    taken: Arc<Mutex<Vec<Taken>>>,
    goodbyes: Arc<Mutex<usize>>,
}

impl Server {
    /// Starts one on a free port.
    pub async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            taken: Arc::default(),
            goodbyes: Arc::default(),
        };
        let here = server.clone();
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, peer) = listener.accept().await.unwrap();
                let talk = Talk {
                    server: here.clone(),
                    manner: manner.clone(),
                    connection,
                    peer,
                    is_protected: manner.is_implicit,
                    buffer: Vec::new(),
                };
                tokio::spawn(talk.begin(stream));
            }
        });
        server
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }

    pub fn goodbyes(&self) -> usize {
        *self.goodbyes.lock().unwrap()
    }
}

struct Talk {
    server: Server,
    manner: Manner,
    connection: usize,
    peer: SocketAddr,
    is_protected: bool,
    buffer: Vec<u8>,
}

enum End {
    Over,
    StartTls,
}

impl Talk {
    async fn begin(mut self, stream: TcpStream) {
        let mut stream = stream;
        if self.manner.is_implicit {
            let tls = self.manner.tls.clone().unwrap();
            let Ok(mut stream) = tls.accept(stream).await else {
                return;
            };
            stream.write_all(b"220 test\r\n").await.unwrap();
            stream.flush().await.unwrap();
            self.serve(&mut stream).await;
            return;
        }
        if stream
            .write_all(b"220-test\r\n220 ready\r\n")
            .await
            .is_err()
        {
            return;
        }
        if let Some(End::StartTls) = self.serve(&mut stream).await {
            let tls = self.manner.tls.clone().unwrap();
            let Ok(mut stream) = tls.accept(stream).await else {
                return;
            };
            self.is_protected = true;
            self.serve(&mut stream).await;
        }
    }

    async fn fill(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Option<()> {
        let mut bytes = [0; 4_096];
        let count = stream.read(&mut bytes).await.ok()?;
        self.buffer
            .extend_from_slice(bytes.get(..count).filter(|_| count > 0)?);
        Some(())
    }

    async fn line(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                return Some(self.buffer.drain(..at + 2).collect());
            }
            self.fill(stream).await?;
        }
    }

    /// Speaks until the end, and says which.
    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&mut self, stream: &mut S) -> Option<End> {
        let mut from = None;
        let mut to = None;
        loop {
            let line = self.line(stream).await?;
            let request = Request::parse(&mut line.iter());
            let answer = match request {
                Ok(Request::Ehlo { .. }) => self.ehlo(),
                Ok(Request::StartTls) => {
                    assert!(self.buffer.is_empty(), "STARTTLS is not pipelined");
                    stream.write_all(b"220 go\r\n").await.ok()?;
                    return Some(End::StartTls);
                }
                Ok(Request::Auth {
                    mechanism,
                    initial_response,
                }) => {
                    let first = initial_response.to_string();
                    self.auth(stream, mechanism, first).await?
                }
                Ok(Request::Mail { from: mail }) if from.is_none() => {
                    from = Some(mail.into_owned());
                    "250 2.1.0 Ok\r\n".to_owned()
                }
                Ok(Request::Rcpt { to: rcpt }) if from.is_some() => {
                    let address = rcpt.address.to_string();
                    let refused = self.manner.refuses.iter().find(|(who, _)| *who == address);
                    match refused {
                        Some((_, answer)) => format!("{answer}\r\n"),
                        None => {
                            to = Some(address);
                            "250 2.1.5 Ok\r\n".to_owned()
                        }
                    }
                }
                Ok(Request::Data) if to.is_some() => {
                    stream.write_all(b"354 go\r\n").await.ok()?;
                    let bytes = self.data(stream).await?;
                    self.keep(from.take()?, to.take()?, bytes, false)
                }
                Ok(Request::Bdat {
                    chunk_size,
                    is_last,
                }) => {
                    assert!(is_last);
                    while self.buffer.len() < chunk_size {
                        self.fill(stream).await?;
                    }
                    let bytes = self.buffer.drain(..chunk_size).collect();
                    match (from.take(), to.take()) {
                        (Some(from), Some(to)) => self.keep(from, to, bytes, true),
                        _ => "503 5.5.1 no recipients\r\n".to_owned(),
                    }
                }
                Ok(Request::Rset) => {
                    (from, to) = (None, None);
                    "250 2.0.0 Ok\r\n".to_owned()
                }
                Ok(Request::Quit) => {
                    *self.server.goodbyes.lock().unwrap() += 1;
                    stream.write_all(b"221 bye\r\n").await.ok()?;
                    stream.flush().await.ok()?;
                    return Some(End::Over);
                }
                Ok(_) => "503 5.5.1 out of turn\r\n".to_owned(),
                Err(error) => {
                    format!("500 5.5.2 {error:?}\r\n")
                        .replace('\n', " ")
                        .trim()
                        .to_owned()
                        + "\r\n"
                }
            };
            stream.write_all(answer.as_bytes()).await.ok()?;
            stream.flush().await.ok()?;
        }
    }

    fn ehlo(&self) -> String {
        let mut answer = "250-test\r\n".to_owned();
        for offer in &self.manner.offers {
            answer += &format!("250-{offer}\r\n");
        }
        if self.manner.tls.is_some() && !self.is_protected {
            answer += "250-STARTTLS\r\n";
        }
        answer + "250 HELP\r\n"
    }

    async fn auth<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        mechanism: u64,
        first: String,
    ) -> Option<String> {
        let prompts: &[&str] = match mechanism {
            AUTH_PLAIN => &[],
            AUTH_LOGIN => &["VXNlcm5hbWU6", "UGFzc3dvcmQ6"],
            AUTH_CRAM_MD5 => &["PDE4OTYuNjk3MTcwOTUyQHBvc3RvZmZpY2UucmVzdG9uLm1jaS5uZXQ+"],
            _ => return Some("504 5.5.4 no\r\n".to_owned()),
        };
        let mut said = first;
        for prompt in prompts {
            let line = format!("334 {prompt}\r\n");
            stream.write_all(line.as_bytes()).await.ok()?;
            stream.flush().await.ok()?;
            let line = self.line(stream).await?;
            said += String::from_utf8(line).unwrap().trim_end();
        }
        Some(match self.manner.logins.contains(&said) {
            true => "235 2.7.0 in\r\n".to_owned(),
            false => "535 5.7.8 wrong\r\n".to_owned(),
        })
    }

    /// The message after DATA, with its dots as they were.
    async fn data(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let line = self.line(stream).await?;
            if line == b".\r\n" {
                return Some(bytes);
            }
            bytes.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
        }
    }

    fn keep(
        &self,
        from: smtp_proto::MailFrom<String>,
        to: String,
        bytes: Vec<u8>,
        is_chunked: bool,
    ) -> String {
        assert!(
            from.size == 0 || from.size == bytes.len(),
            "SIZE was not true"
        );
        let mut taken = self.server.taken.lock().unwrap();
        taken.push(Taken {
            sender: from.address,
            recipient: to,
            bytes,
            is_8bit: from.flags & MAIL_BODY_8BITMIME != 0,
            is_utf8: from.flags & MAIL_SMTPUTF8 != 0,
            is_protected: self.is_protected,
            is_chunked,
            connection: self.connection,
            peer: self.peer,
        });
        format!("250 2.0.0 Ok: queued as {}\r\n", taken.len())
    }
}
