//! A small DNS server on loopback. It answers as it is told, over UDP.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

pub const A: u16 = 1;
const SOA: u16 = 6;
const PTR: u16 = 12;
pub const MX: u16 = 15;
pub const TXT: u16 = 16;
pub const AAAA: u16 = 28;

/// How the server is, besides what it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// It answers.
    #[default]
    Well,
    /// It answers SERVFAIL.
    Failing,
    /// It says nothing.
    Silent,
}

/// How long an answer holds, and what it says.
type Answers = (u32, Vec<Vec<u8>>);

#[derive(Default)]
struct Zone {
    mood: Mood,
    records: BTreeMap<(String, u16), Answers>,
    /// Names for which it answers SERVFAIL.
    broken: Vec<String>,
    asked: BTreeMap<(String, u16), usize>,
}

/// A running server. It ends when this is dropped.
pub struct DnsServer {
    pub address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

impl DnsServer {
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let zone = Arc::new(Mutex::new(Zone::default()));
        let watched = Arc::downgrade(&zone);
        thread::spawn(move || serve(&socket, &watched));
        Self { address, zone }
    }

    pub fn set_mood(&self, mood: Mood) {
        self.zone.lock().unwrap().mood = mood;
    }

    pub fn set_broken(&self, name: &str) {
        self.zone.lock().unwrap().broken.push(name.to_owned());
    }

    pub fn mend(&self, name: &str) {
        let mut zone = self.zone.lock().unwrap();
        zone.broken.retain(|broken| broken != name);
    }

    /// A domain has these mail servers; "" is the root.
    pub fn mx(&self, domain: &str, ttl: u32, hosts: &[(u16, &str)]) {
        let records = hosts.iter().map(|(preference, host)| {
            let mut bytes = preference.to_be_bytes().to_vec();
            write_name(&mut bytes, host);
            bytes
        });
        self.put(domain, MX, ttl, records.collect());
    }

    /// A host has these addresses.
    pub fn addresses(&self, host: &str, ttl: u32, addresses: &[&str]) {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for address in addresses {
            match address.parse().unwrap() {
                IpAddr::V4(address) => v4.push(address.octets().to_vec()),
                IpAddr::V6(address) => v6.push(address.octets().to_vec()),
            }
        }
        for (kind, records) in [(A, v4), (AAAA, v6)] {
            if !records.is_empty() {
                self.put(host, kind, ttl, records);
            }
        }
    }

    /// A name has these texts, each in pieces as long as they may be.
    pub fn texts(&self, name: &str, ttl: u32, texts: &[&str]) {
        let records = texts.iter().map(|text| {
            let mut bytes = Vec::new();
            for piece in text.as_bytes().chunks(255) {
                bytes.push(u8::try_from(piece.len()).unwrap());
                bytes.extend(piece);
            }
            bytes
        });
        self.put(name, TXT, ttl, records.collect());
    }

    /// An IPv4 address has these names.
    pub fn names(&self, address: &str, ttl: u32, names: &[&str]) {
        let parts: Vec<&str> = address.rsplit('.').collect();
        let records = names.iter().map(|name| {
            let mut bytes = Vec::new();
            write_name(&mut bytes, name);
            bytes
        });
        let place = format!("{}.in-addr.arpa", parts.join("."));
        self.put(&place, PTR, ttl, records.collect());
    }

    /// Forgets all that is known of a name.
    pub fn forget(&self, name: &str) {
        let mut zone = self.zone.lock().unwrap();
        zone.records.retain(|(known, _), _| known != name);
    }

    /// How often a record was asked for.
    pub fn asked(&self, name: &str, kind: u16) -> usize {
        let zone = self.zone.lock().unwrap();
        zone.asked
            .get(&(name.to_owned(), kind))
            .copied()
            .unwrap_or(0)
    }

    fn put(&self, name: &str, kind: u16, ttl: u32, records: Vec<Vec<u8>>) {
        let mut zone = self.zone.lock().unwrap();
        zone.records.insert((name.to_owned(), kind), (ttl, records));
    }
}

fn serve(socket: &UdpSocket, zone: &Weak<Mutex<Zone>>) {
    let mut bytes = [0; 1_500];
    while let Some(zone) = zone.upgrade() {
        let Ok((count, from)) = socket.recv_from(&mut bytes) else {
            continue;
        };
        let answer = answer(&bytes[..count], &mut zone.lock().unwrap());
        if let Some(answer) = answer {
            socket.send_to(&answer, from).unwrap();
        }
    }
}

fn answer(query: &[u8], zone: &mut Zone) -> Option<Vec<u8>> {
    let (name, end) = read_name(query, 12)?;
    let kind = u16::from_be_bytes([query[end], query[end + 1]]);
    *zone.asked.entry((name.clone(), kind)).or_default() += 1;
    let question = &query[12..end + 4];
    let exists = zone.records.keys().any(|(known, _)| *known == name);
    let found = zone.records.get(&(name.clone(), kind));
    let code: u8 = match zone.mood {
        Mood::Silent => return None,
        Mood::Failing => 2,
        Mood::Well if zone.broken.contains(&name) => 2,
        Mood::Well if !exists => 3,
        Mood::Well => 0,
    };
    let found = found.filter(|_| code == 0);
    let answers = found.map_or(0, |(_, records)| records.len());
    let negative = usize::from(code != 2 && answers == 0);
    let mut bytes = query[..2].to_vec();
    bytes.extend([0x85, 0x80 | code, 0, 1]);
    bytes.extend(u16::try_from(answers).unwrap().to_be_bytes());
    bytes.extend(u16::try_from(negative).unwrap().to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(question);
    for (ttl, rdata) in found
        .iter()
        .flat_map(|(ttl, it)| it.iter().map(move |it| (*ttl, it)))
    {
        record(&mut bytes, kind, ttl, rdata);
    }
    if negative == 1 {
        let mut rdata = Vec::new();
        write_name(&mut rdata, "ns.test");
        write_name(&mut rdata, "admin.test");
        for number in [1_u32, 3_600, 600, 86_400, 1] {
            rdata.extend(number.to_be_bytes());
        }
        record(&mut bytes, SOA, 1, &rdata);
    }
    Some(bytes)
}

fn record(bytes: &mut Vec<u8>, kind: u16, ttl: u32, rdata: &[u8]) {
    bytes.extend([0xc0, 12]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(1_u16.to_be_bytes());
    bytes.extend(ttl.to_be_bytes());
    bytes.extend(u16::try_from(rdata.len()).unwrap().to_be_bytes());
    bytes.extend(rdata);
}

fn write_name(bytes: &mut Vec<u8>, name: &str) {
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
}

fn read_name(bytes: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*bytes.get(at)?);
        if length == 0 {
            return Some((labels.join("."), at + 1));
        }
        let label = bytes.get(at + 1..at + 1 + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + length;
    }
}
