//! A mail server with mailboxes: who begins with `gone` does not exist. It writes
//! down who wrote to whom.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A mail server with mailboxes.
pub struct Mailboxes {
    pub address: SocketAddr,
    /// Sender and recipient, as they were named.
    named: Arc<Mutex<Vec<(String, String)>>>,
}

impl Mailboxes {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let named: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let kept = Arc::clone(&named);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                // A client may hang up whenever it likes.
                thread::spawn(move || drop(talk(stream, &kept)));
            }
        });
        Self { address, named }
    }

    /// How often somebody was named as a recipient.
    pub fn named(&self, to: &str) -> usize {
        let named = self.named.lock().unwrap();
        named.iter().filter(|(_, other)| other == to).count()
    }

    /// Who last wrote to somebody.
    pub fn sender_to(&self, to: &str) -> String {
        let named = self.named.lock().unwrap();
        let last = named.iter().rfind(|(_, other)| other == to);
        last.unwrap_or_else(|| panic!("nobody wrote to {to}"))
            .0
            .clone()
    }
}

fn talk(stream: TcpStream, named: &Mutex<Vec<(String, String)>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    out.write_all(b"220 mailboxes ESMTP\r\n")?;
    let (mut from, mut is_known) = (String::new(), false);
    while let Some(line) = lines.next().transpose()? {
        let address = line.split(['<', '>']).nth(1).unwrap_or_default();
        let reply = match line.to_ascii_uppercase().get(..4) {
            Some("EHLO") => "250-mailboxes\r\n250-ENHANCEDSTATUSCODES\r\n250 PIPELINING",
            Some("MAIL") => {
                address.clone_into(&mut from);
                "250 2.1.0 Ok"
            }
            Some("RCPT") => {
                let pair = (from.clone(), address.to_owned());
                named.lock().unwrap().push(pair);
                is_known = !address.starts_with("gone");
                match is_known {
                    false => "550 5.1.1 The email account that you tried to reach does not exist",
                    true => "250 2.1.5 Ok",
                }
            }
            Some("DATA") if !is_known => "554 5.5.1 no valid recipients",
            Some("DATA") => {
                out.write_all(b"354 go\r\n")?;
                for line in lines.by_ref() {
                    if line? == "." {
                        break;
                    }
                }
                "250 2.0.0 Ok"
            }
            Some("QUIT") => return out.write_all(b"221 2.0.0 bye\r\n"),
            _ => "250 2.0.0 Ok",
        };
        out.write_all(reply.as_bytes())?;
        out.write_all(b"\r\n")?;
    }
    Ok(())
}
