//! A DNS that knows what a test tells it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_doctor::subject::{Key, Plan, Sender, WarmUp, Way};
use outflow_doctor::{
    Answer, Check, Finding, Known, QUESTIONS_MAX, Question, ROUNDS_MAX, ServerSeen, Status,
    Subject, examine,
};

/// An RSA key of 2048 bits.
pub const KEY: &str = include_str!("key-2048.txt");
/// One of 1024 bits.
pub const KEY_1024: &str = include_str!("key-1024.txt");
/// One of 512 bits.
pub const KEY_512: &str = include_str!("key-512.txt");

pub const NOW_S: i64 = 1_794_844_372;

/// What is judged, and what DNS knows of it.
pub struct World {
    pub subject: Subject,
    pub answers: BTreeMap<Question, Answer>,
    /// What it does not answer.
    pub silent: Vec<Question>,
    /// How many questions were asked.
    pub asked: usize,
    pub rounds: usize,
}

pub fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl World {
    /// A domain with which all is well.
    pub fn good() -> Self {
        let record = format!("v=DKIM1; k=rsa; p={}", KEY.trim());
        let mut world = Self {
            subject: Subject {
                domain: "example.com".to_owned(),
                senders: vec![Sender {
                    account: "direct".to_owned(),
                    way: Way::Direct {
                        addresses: vec![address("192.0.2.10")],
                        port: 25,
                    },
                    helo: "mail.example.com".to_owned(),
                    key: Some(Key {
                        domain: "example.com".to_owned(),
                        selector: "s1".to_owned(),
                        record: Ok(record.clone()),
                    }),
                }],
                warm_up: WarmUp::Plans(vec![Plan {
                    about: "192.0.2.10".to_owned(),
                    state: "day 12 of 30".to_owned(),
                    is_held: false,
                }]),
                now_s: NOW_S,
                ..Subject::default()
            },
            answers: BTreeMap::new(),
            silent: Vec::new(),
            asked: 0,
            rounds: 0,
        };
        world.texts("example.com", &["v=spf1 ip4:192.0.2.0/24 -all", "other"]);
        world.texts("s1._domainkey.example.com", &[&record]);
        world.texts(
            "_dmarc.example.com",
            &["v=DMARC1; p=reject; rua=mailto:d@example.com"],
        );
        world.hosts("example.com", &["mx.example.com"]);
        world.addresses("mx.example.com", &["192.0.2.20"]);
        world.names("192.0.2.10", &["mail.example.com"]);
        world.addresses("mail.example.com", &["192.0.2.10"]);
        world.server(ServerSeen {
            offers_tls: true,
            ..ServerSeen::default()
        });
        world
    }

    pub fn texts(&mut self, name: &str, texts: &[&str]) {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.tell(Question::Texts(name.to_owned()), Answer::Texts(texts));
    }

    pub fn hosts(&mut self, name: &str, hosts: &[&str]) {
        let hosts = hosts.iter().map(|host| (10, (*host).to_owned())).collect();
        self.tell(Question::Hosts(name.to_owned()), Answer::Hosts(hosts));
    }

    pub fn addresses(&mut self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| address(text)).collect();
        let question = Question::Addresses(name.to_owned());
        self.tell(question, Answer::Addresses(addresses));
    }

    pub fn names(&mut self, of: &str, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.tell(Question::Names(address(of)), Answer::Names(names));
    }

    /// The mail server of the domain.
    pub fn server(&mut self, seen: ServerSeen) {
        let question = Question::Server {
            host: "mx.example.com".to_owned(),
            address: address("192.0.2.20"),
            port: 25,
        };
        self.tell(question, Answer::Server(seen));
    }

    pub fn tell(&mut self, question: Question, answer: Answer) {
        self.answers.insert(question, answer);
    }

    pub fn forget(&mut self, question: Question) {
        self.answers.remove(&question);
    }

    pub fn sender(&mut self) -> &mut Sender {
        &mut self.subject.senders[0]
    }

    pub fn key(&mut self) -> &mut Key {
        self.subject.senders[0].key.as_mut().unwrap()
    }

    /// Asks until nothing is missing, as whoever calls the judge does.
    pub fn judge(&mut self) -> Vec<Finding> {
        let mut known = Known::default();
        loop {
            let exam = examine(&self.subject, &mut known);
            let room = QUESTIONS_MAX - known.len();
            if exam.missing.is_empty() || room == 0 || self.rounds == ROUNDS_MAX {
                return exam.findings;
            }
            self.rounds += 1;
            for question in exam.missing.into_iter().take(room) {
                self.asked += 1;
                let answer = match self.silent.contains(&question) {
                    true => Answer::Failed("DNS does not answer".to_owned()),
                    false => self
                        .answers
                        .get(&question)
                        .cloned()
                        .unwrap_or(Answer::Nothing),
                };
                known.learn(question, answer);
            }
        }
    }
}

/// Findings of a check that are not as they should be.
pub fn bad(findings: &[Finding], check: Check) -> Vec<(Status, &str)> {
    let of_check = findings.iter().filter(|finding| finding.check == check);
    let bad = of_check.filter(|finding| finding.status != Status::Ok);
    bad.map(|finding| (finding.status, finding.what.as_str()))
        .collect()
}

/// DNS does not answer a question.
pub fn silence(world: &mut World, question: Question) {
    world.silent.push(question);
}
