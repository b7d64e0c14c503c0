//! A plain client, line by line.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::world::World;

pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    /// Connects, and hears the greeting.
    pub fn connect(world: &World) -> (Self, String) {
        let stream = TcpStream::connect(world.address).unwrap();
        let mut client = Self {
            reader: BufReader::new(stream),
        };
        let greeting = client.hear();
        (client, greeting)
    }

    /// Connects, and shows this token.
    pub fn with(world: &World, token: &str) -> Self {
        let (mut client, _) = Self::connect(world);
        client.say("EHLO client.example\r\nAUTH LOGIN eA==\r\n");
        client.hear();
        client.hear();
        let token = base64(token.as_bytes());
        assert_eq!(client.ask(&format!("{token}\r\n"))[..3], *"235");
        client
    }

    pub fn say(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The next reply, whole; nothing if the server is gone.
    pub fn hear(&mut self) -> String {
        let mut reply = String::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
                return reply;
            }
            let is_last = line.as_bytes().get(3) == Some(&b' ');
            reply.push_str(&line);
            if is_last {
                return reply;
            }
        }
    }

    /// What is there to hear, without waiting.
    pub fn try_hear(&mut self) -> Option<u8> {
        let mut byte = [0];
        let stream = self.reader.get_ref();
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut byte);
        stream.set_nonblocking(false).unwrap();
        peeked.ok().map(|_| byte[0])
    }

    pub fn ask(&mut self, text: &str) -> String {
        self.say(text);
        self.hear()
    }

    /// Names a sender and recipients, up to the data.
    pub fn begin(&mut self, recipients: &[&str]) {
        assert_eq!(self.ask("MAIL FROM:<bounces@example.com>\r\n")[..3], *"250");
        for recipient in recipients {
            assert_eq!(self.ask(&format!("RCPT TO:<{recipient}>\r\n"))[..3], *"250");
        }
        assert_eq!(self.ask("DATA\r\n")[..3], *"354");
    }

    /// Sends a message, whose header is `header`, and hears what became of it.
    pub fn send(&mut self, recipients: &[&str], header: &str) -> String {
        self.begin(recipients);
        self.ask(&format!("{header}\r\nHello\r\n.\r\n"))
    }
}

pub fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut bits = 0_u32;
        for place in 0..3 {
            bits = bits << 8 | u32::from(*three.get(place).unwrap_or(&0));
        }
        for place in 0..4 {
            let letter = letters[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= three.len() {
                letter.into()
            } else {
                '='
            });
        }
    }
    text
}
