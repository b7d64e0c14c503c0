//! The load: mail over HTTP in batches, and over SMTP as `smtp-source` does it,
//! which cannot log in.
//!
//! So many sessions at once, each with one transaction at a time and a round
//! trip for each command. One thread; what it takes is printed.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, LocalSet};

use super::mail::{Batches, Mails, RECIPIENT, SENDER};
use crate::server::Server;

/// Connections that submit batches: more only wait.
const HTTP_CONNECTIONS: usize = 4;
/// Messages in a request.
const BATCH: u64 = 500;

/// Submits messages 0 to `count` over HTTP.
pub async fn over_http(server: &Server, count: u64) -> io::Result<()> {
    let next = Rc::new(Cell::new(0));
    let batches = Rc::new(Batches::new());
    let local = LocalSet::new();
    let mut tasks = Vec::new();
    for _ in 0..HTTP_CONNECTIONS {
        let mut connection = server.connect().await?;
        let (next, batches) = (Rc::clone(&next), Rc::clone(&batches));
        let token = server.token.clone();
        tasks.push(local.spawn_local(async move {
            while let Some((from, to)) = take(&next, BATCH, count) {
                let request = batches.request(&token, from, to);
                connection.call(&request).await?.expect(202)?;
            }
            Ok(())
        }));
    }
    local.run_until(all(tasks)).await
}

/// Submits messages 0 to `count` over so many SMTP sessions, logged in if there
/// is a token.
pub async fn over_smtp(
    address: SocketAddr,
    token: Option<&str>,
    sessions: usize,
    count: u64,
) -> io::Result<()> {
    let next = Rc::new(Cell::new(0));
    let mails = Rc::new(Mails::new());
    let login = token.map(login);
    let local = LocalSet::new();
    let mut tasks = Vec::new();
    for _ in 0..sessions {
        let (next, mails, login) = (Rc::clone(&next), Rc::clone(&mails), login.clone());
        tasks.push(local.spawn_local(async move {
            let mut session = Session::open(address, login.as_deref()).await?;
            while let Some((no, _)) = take(&next, 1, count) {
                session.submit(&mails, no).await?;
            }
            session.say(b"QUIT\r\n", b"221").await
        }));
    }
    local.run_until(all(tasks)).await
}

/// The next so many messages.
fn take(next: &Cell<u64>, size: u64, count: u64) -> Option<(u64, u64)> {
    let from = next.get();
    let to = count.min(from + size);
    next.set(to);
    (from < to).then_some((from, to))
}

async fn all(tasks: Vec<JoinHandle<io::Result<()>>>) -> io::Result<()> {
    for task in tasks {
        task.await.map_err(io::Error::other)??;
    }
    Ok(())
}

/// The command that logs in: any user, the token as the password.
fn login(token: &str) -> Vec<u8> {
    let plain = STANDARD.encode(format!("\0bench\0{token}"));
    format!("AUTH PLAIN {plain}\r\n").into_bytes()
}

struct Session {
    stream: TcpStream,
    out: Vec<u8>,
    answer: Vec<u8>,
}

impl Session {
    async fn open(address: SocketAddr, login: Option<&[u8]>) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut session = Self {
            stream,
            out: Vec::new(),
            answer: Vec::new(),
        };
        session.say(b"", b"220").await?;
        session.say(b"EHLO source.example.org\r\n", b"250").await?;
        if let Some(login) = login {
            session.say(login, b"235").await?;
        }
        Ok(session)
    }

    async fn submit(&mut self, mails: &Mails, no: u64) -> io::Result<()> {
        let sender = format!("MAIL FROM:<{SENDER}>\r\n");
        self.say(sender.as_bytes(), b"250").await?;
        let recipient = format!("RCPT TO:<{no}{RECIPIENT}>\r\n");
        self.say(recipient.as_bytes(), b"250").await?;
        self.say(b"DATA\r\n", b"354").await?;
        let mut mail = std::mem::take(&mut self.out);
        mail.clear();
        mails.write(no, &mut mail);
        let said = self.say(&mail, b"250").await;
        self.out = mail;
        said
    }

    /// Writes a command and reads its whole answer, which must be this one.
    async fn say(&mut self, command: &[u8], code: &[u8]) -> io::Result<()> {
        self.stream.write_all(command).await?;
        self.answer.clear();
        while !is_whole(&self.answer) {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        match self.answer.starts_with(code) {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the server answered {:?}",
                String::from_utf8_lossy(&self.answer)
            ))),
        }
    }
}

/// Whether the last line of a reply is there.
fn is_whole(answer: &[u8]) -> bool {
    let Some(lines) = answer.strip_suffix(b"\r\n") else {
        return false;
    };
    let last = lines.rsplit(|byte| *byte == b'\n').next();
    last.is_some_and(|line| line.get(3) == Some(&b' '))
}
