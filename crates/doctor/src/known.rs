//! Questions, and what is known of their answers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::names;

/// What can be asked of DNS, or of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The texts of a name.
    Texts(String),
    /// The mail servers of a name.
    Hosts(String),
    /// The addresses of a name.
    Addresses(String),
    /// The names of an address.
    Names(IpAddr),
    /// How a mail server speaks TLS.
    Server {
        /// What it is called.
        host: String,
        /// Where it is.
        address: IpAddr,
        /// At which port.
        port: u16,
    },
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Texts, each in one piece.
    Texts(Vec<String>),
    /// Mail servers with their preference; "" is the root.
    Hosts(Vec<(u16, String)>),
    /// Addresses.
    Addresses(Vec<IpAddr>),
    /// Names.
    Names(Vec<String>),
    /// A mail server.
    Server(ServerSeen),
    /// There is no such record.
    Nothing,
    /// Nobody knows, for this reason.
    Failed(String),
}

/// How a mail server speaks TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSeen {
    /// Whether it offers STARTTLS.
    pub offers_tls: bool,
    /// Why TLS could not be begun.
    pub handshake_error: Option<String>,
    /// Its certificate, in DER.
    pub certificate: Option<Vec<u8>>,
    /// Why its certificate is not trusted for its name.
    pub distrust: Option<String>,
}

/// Answers so far, and questions that were missed.
#[derive(Clone, Debug, Default)]
pub struct Known {
    answers: BTreeMap<Question, Answer>,
    missed: BTreeSet<Question>,
}

impl Known {
    /// Something was answered.
    pub fn learn(&mut self, question: Question, answer: Answer) {
        self.answers.insert(question, answer);
    }

    /// How much was answered.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// What was missed since this was last called.
    pub fn take_missed(&mut self) -> BTreeSet<Question> {
        std::mem::take(&mut self.missed)
    }

    /// The texts of a name.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, String> {
        match self.about(name, Question::Texts)? {
            Answer::Texts(texts) => Ok(texts),
            other => none_of(other),
        }
    }

    /// The mail servers of a name, best first.
    pub fn hosts(&mut self, name: &str) -> Result<Vec<(u16, String)>, String> {
        match self.about(name, Question::Hosts)? {
            Answer::Hosts(mut hosts) => {
                hosts.sort();
                Ok(hosts)
            }
            other => none_of(other),
        }
    }

    /// The addresses of a name.
    pub fn addresses(&mut self, name: &str) -> Result<Vec<IpAddr>, String> {
        match self.about(name, Question::Addresses)? {
            Answer::Addresses(addresses) => Ok(addresses),
            other => none_of(other),
        }
    }

    /// The names of an address.
    pub fn names(&mut self, address: IpAddr) -> Result<Vec<String>, String> {
        match self.answer(Question::Names(address)) {
            Answer::Names(found) => Ok(found.iter().map(|name| names::normal(name)).collect()),
            other => none_of(other),
        }
    }

    /// How a mail server speaks TLS.
    pub fn server(&mut self, host: &str, address: IpAddr, port: u16) -> Result<ServerSeen, String> {
        let host = host.to_owned();
        let question = Question::Server {
            host,
            address,
            port,
        };
        match self.answer(question) {
            Answer::Server(seen) => Ok(seen),
            Answer::Failed(why) => Err(why),
            _ => Err("nothing was said".to_owned()),
        }
    }

    /// What cannot be a name is not asked for: it may come from a record that
    /// anybody wrote.
    fn about(&mut self, name: &str, kind: fn(String) -> Question) -> Result<Answer, String> {
        let name = names::normal(name);
        match names::is_name(&name) {
            true => Ok(self.answer(kind(name))),
            false => Err(format!("{} is no name", crate::finding::quoted(&name))),
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        match self.answers.get(&question) {
            Some(answer) => answer.clone(),
            None => {
                self.missed.insert(question);
                Answer::Failed("it was not asked for: too many questions".to_owned())
            }
        }
    }
}

fn none_of<T>(answer: Answer) -> Result<Vec<T>, String> {
    match answer {
        Answer::Failed(why) => Err(why),
        _ => Ok(Vec::new()),
    }
}
