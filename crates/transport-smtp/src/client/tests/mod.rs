//! What a server may say, and what comes of it.

mod chaos;
mod opening;
mod sending;

use std::sync::Arc;
use std::time::Duration;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::{Address, Mail, Utf8};

use super::timeouts::Timeouts;
use super::{Client, ClientSettings, Output, Tls};

const PIPELINING: &str = "250-mx.example\r\n250-PIPELINING\r\n250 SIZE 1000\r\n";
const PLAIN: &str = "250 mx.example\r\n";

fn settings(tls: Tls) -> ClientSettings {
    ClientSettings {
        helo: "client.example".to_owned(),
        tls,
        login: None,
        password_in_clear: false,
        chunking: true,
        timeouts: Timeouts::all(Duration::from_secs(1)),
    }
}

fn mail(body: &str) -> Mail {
    Mail {
        sender: Some(Address::parse("a@example.com").unwrap()),
        recipient: Address::parse("b@example.org").unwrap(),
        author_domain: "example.com".to_owned(),
        bytes: format!("Subject: x\r\n\r\n{body}\r\n").into_bytes(),
        utf8: Utf8::No,
        eight_bit: false,
    }
}

/// A client and what it said so far.
struct Talk {
    client: Client,
    written: String,
    others: Vec<Output>,
}

impl Talk {
    fn new(settings: ClientSettings) -> Self {
        Self {
            client: Client::new(Arc::new(settings)),
            written: String::new(),
            others: Vec::new(),
        }
    }

    /// A session that is ready, with these offers.
    fn ready(ehlo: &str) -> Self {
        let mut talk = Self::new(settings(Tls::None));
        talk.hear("220 mx.example\r\n");
        talk.hear(ehlo);
        assert_eq!(talk.others.pop(), Some(Output::Ready));
        talk.written.clear();
        talk
    }

    fn hear(&mut self, text: &str) {
        self.client.on_bytes(text.as_bytes());
        self.drain();
    }

    /// All that is to be written is written at once.
    fn drain(&mut self) {
        self.drain_unwritten();
        self.client.on_written();
    }

    fn drain_unwritten(&mut self) {
        while let Some(output) = self.client.next_output() {
            match output {
                Output::Write(bytes) => self.written += &String::from_utf8(bytes).unwrap(),
                output => self.others.push(output),
            }
        }
    }

    fn send(&mut self, mail: Mail) {
        self.client.deliver(mail);
        self.drain();
    }

    fn replied(&mut self) -> (Reply, bool) {
        let closes = self.others.last() == Some(&Output::Close);
        if closes {
            self.others.pop();
        }
        match self.others.pop() {
            Some(Output::Replied { reply, lives }) => {
                assert_eq!(lives, !closes);
                (reply, lives)
            }
            other => panic!("{other:?} is no reply, after {:?}", self.written),
        }
    }

    fn failed(&mut self) -> Reply {
        assert_eq!(self.others.pop(), Some(Output::Close));
        match self.others.pop() {
            Some(Output::Failed(reply)) => reply,
            other => panic!("{other:?} is no failure"),
        }
    }
}

fn network(stage: Stage, text: &str) -> Reply {
    let text = text.to_owned().into();
    Reply::Network { stage, text }
}
