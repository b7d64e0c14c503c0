//! Who hosts a domain, by a table of well-known mailbox domains.
//!
//! Limits of mailbox providers count over all their domains, so the few
//! domains that most mail goes to must roll up to one destination. Any other
//! domain is a destination of its own. Answers are there at once, so messages
//! are stored under their destination already; only what an earlier process
//! stored without one is asked for.

use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::engine::event::Event;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Now};
use outflow_pipeline::Handle;
use outflow_ports::intake::{Given, Intake, Refused, Submission, Then};
use outflow_ports::resolver::Resolver;

/// Domains that providers own, by the name that policies know them under.
const DOMAINS: &[(&str, &[&str])] = &[
    ("google", &["gmail.com", "googlemail.com"]),
    ("outlook", &["msn.com", "windowslive.com", "passport.com"]),
    (
        "yahoo",
        &[
            "ymail.com",
            "rocketmail.com",
            "aim.com",
            "verizon.net",
            "yahoo.com",
        ],
    ),
    ("yahoo-japan", &["yahoo.co.jp", "ymail.ne.jp"]),
    ("icloud", &["icloud.com", "me.com", "mac.com"]),
    ("comcast", &["comcast.net"]),
    ("gmx", &["web.de", "mail.com", "usa.com"]),
    ("orange", &["orange.fr", "wanadoo.fr"]),
    ("laposte", &["laposte.net"]),
    ("free", &["free.fr", "aliceadsl.fr"]),
    ("qq", &["qq.com", "foxmail.com"]),
    ("netease", &["163.com", "126.com", "yeah.net"]),
    ("mail.ru", &["mail.ru", "bk.ru", "inbox.ru", "list.ru"]),
    ("yandex", &["ya.ru"]),
    ("naver", &["naver.com"]),
    ("att", &["att.net", "sbcglobal.net", "bellsouth.net"]),
    ("cox", &["cox.net"]),
    ("spectrum", &["charter.net", "rr.com"]),
];

/// Names that providers use under many endings: `hotmail.co.uk`.
const BRANDS: &[(&str, &str)] = &[
    ("outlook", "outlook"),
    ("hotmail", "outlook"),
    ("live", "outlook"),
    ("yahoo", "yahoo"),
    ("aol", "yahoo"),
    ("gmx", "gmx"),
    ("yandex", "yandex"),
];

/// The endings under which brands are theirs. A longer list would catch
/// domains of others.
const ENDINGS: &[&str] = &[
    "at", "be", "by", "ca", "ch", "cl", "cn", "co.id", "co.il", "co.in", "co.kr", "co.nz", "co.th",
    "co.uk", "co.za", "com", "com.ar", "com.au", "com.br", "com.hk", "com.mx", "com.my", "com.ph",
    "com.sg", "com.tr", "com.tw", "com.vn", "cz", "de", "dk", "es", "eu", "fi", "fr", "gr", "hu",
    "ie", "in", "it", "kz", "net", "nl", "no", "org", "pl", "pt", "ro", "ru", "se", "ua",
];

/// Where mail for a domain goes.
pub fn destination_of(domain: &str) -> Destination {
    let domain = domain.to_ascii_lowercase();
    let owner = DOMAINS
        .iter()
        .find(|(_, domains)| domains.contains(&domain.as_str()))
        .map(|(isp, _)| *isp);
    let owner = owner.or_else(|| {
        let (brand, ending) = domain.split_once('.')?;
        let (_, isp) = BRANDS.iter().find(|(name, _)| *name == brand)?;
        ENDINGS.contains(&ending).then_some(*isp)
    });
    match owner {
        Some(isp) => Destination::isp(isp),
        None => Destination::new(DestinationKind::Host, domain),
    }
}

/// Takes messages in under the destination of their domain.
#[derive(Debug)]
pub struct ResolvedIntake(pub Handle);

impl Intake for ResolvedIntake {
    fn submit(&self, mut batch: Vec<Submission>, then: Then<Result<Vec<Given>, Refused>>) {
        for submission in &mut batch {
            let destination = &mut submission.key.destination;
            if !destination.is_resolved() {
                *destination = destination_of(destination.name.as_str());
            }
        }
        self.0.submit(batch, then);
    }
}

/// Answers from the table.
#[derive(Debug, Default)]
pub struct TableResolver {
    answers: Vec<Event>,
}

impl Resolver for TableResolver {
    fn submit(&mut self, _: &Now, domain: Name) {
        let destination = destination_of(domain.as_str());
        self.answers.push(Event::Resolved {
            domain,
            destination,
        });
    }

    fn complete(&mut self, _: &Now, done: &mut Vec<Event>) {
        done.append(&mut self.answers);
    }

    fn next_completion(&self) -> Mono {
        if self.answers.is_empty() {
            Mono::NEVER
        } else {
            Mono(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::destination_of;

    #[test]
    fn well_known_domains_roll_up_and_others_stand_alone() {
        for (domain, destination) in [
            ("gmail.com", "isp:google"),
            ("GoogleMail.com", "isp:google"),
            ("hotmail.co.uk", "isp:outlook"),
            ("live.com", "isp:outlook"),
            ("live.example.com", "host:live.example.com"),
            ("yahoo.fr", "isp:yahoo"),
            ("yahoo.co.jp", "isp:yahoo-japan"),
            ("aol.com", "isp:yahoo"),
            ("me.com", "isp:icloud"),
            ("Example.ORG", "host:example.org"),
        ] {
            assert_eq!(destination_of(domain).to_string(), destination, "{domain}");
        }
    }
}
