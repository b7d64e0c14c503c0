//! A program that submits over SMTP, with a token as its password.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::process::Server;

const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that has logged in.
pub struct Submitter {
    lines: BufReader<TcpStream>,
}

/// Where a server takes messages over SMTP.
pub fn address_of(server: &Server) -> SocketAddr {
    let mut lines = server.greeting.iter();
    let line = lines.find_map(|line| line.strip_prefix("smtp")).unwrap();
    let address = line.split_whitespace().next();
    address.unwrap().parse().unwrap()
}

impl Submitter {
    pub fn login(address: SocketAddr, token: &str) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut submitter = Self {
            lines: BufReader::new(stream),
        };
        submitter.expect("220")?;
        submitter.say("EHLO app.example", "250")?;
        let login = STANDARD.encode(format!("\0app\0{token}"));
        submitter.say(&format!("AUTH PLAIN {login}"), "235")?;
        Ok(submitter)
    }

    /// Submits a message: its id, once it is acknowledged.
    pub fn submit(&mut self, to: &str, subject: &str) -> io::Result<String> {
        self.say("MAIL FROM:<orders@shop.example>", "250")?;
        self.say(&format!("RCPT TO:<{to}>"), "250")?;
        self.say("DATA", "354")?;
        let reply = self.say(
            &format!(
                "From: orders@shop.example\r\nTo: {to}\r\nSubject: {subject}\r\n\r\nHello!\r\n."
            ),
            "250",
        )?;
        let id = reply.split_whitespace().last();
        Ok(id.unwrap_or_default().to_owned())
    }

    /// Submits a message with one more header field to some recipients: what is
    /// said after its data, which begins like this.
    pub fn submit_to(&mut self, to: &[&str], field: &str, wanted: &str) -> io::Result<String> {
        self.say("MAIL FROM:<orders@shop.example>", "250")?;
        for to in to {
            self.say(&format!("RCPT TO:<{to}>"), "250")?;
        }
        self.say("DATA", "354")?;
        let from = "From: orders@shop.example";
        self.say(&format!("{from}\r\n{field}\r\n\r\nHello!\r\n."), wanted)
    }

    /// Submits a whole message: whatever is said after its data.
    pub fn submit_whole(&mut self, to: &str, mail: &str) -> io::Result<String> {
        self.say("MAIL FROM:<a@shop.example>", "250")?;
        self.say(&format!("RCPT TO:<{to}>"), "250")?;
        self.say("DATA", "354")?;
        self.lines.get_mut().write_all(mail.as_bytes())?;
        self.say("\r\n.", "")
    }

    fn say(&mut self, line: &str, wanted: &str) -> io::Result<String> {
        let bytes = format!("{line}\r\n");
        self.lines.get_mut().write_all(bytes.as_bytes())?;
        self.expect(wanted)
    }

    /// Reads a reply to its last line. Any other than the wanted one ends it
    /// all: only a server that is gone may say nothing.
    fn expect(&mut self, wanted: &str) -> io::Result<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            assert!(line.starts_with(wanted), "not {wanted}: {line}");
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(line.trim_end().to_owned());
            }
        }
    }
}
