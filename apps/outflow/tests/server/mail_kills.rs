//! `kill -9` under load, with a real Postfix behind it: everything that was
//! acknowledged, over HTTP or over SMTP, arrives there. What arrives twice was
//! handed over by a process that was killed before its settlement was written.
//!
//! Each process greets Postfix by a name of its own, so what arrives tells which
//! process sent it; and Postfix writes the microsecond at which it began to take
//! a message into its queue's name for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::kills::from_env;
use crate::postfix_server::Postfix;
use crate::process::{Place, Server, listed, message, wait_for};
use crate::sink::wall;
use crate::submitter::{Submitter, address_of};

const CONNECTIONS: usize = 8;

/// A message that came to Postfix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    /// The process that sent it.
    round: usize,
    /// When Postfix began to take it, in microseconds.
    at: u64,
    /// Which message.
    no: usize,
}

impl Arrival {
    fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap();
        let (_, received) = text.split_once("Received: from r").unwrap();
        let (round, _) = received.split_once(".client.example").unwrap();
        let (_, id) = received.split_once(" id ").unwrap();
        let id = id.split_whitespace().next().unwrap();
        let (_, no) = text.split_once("\nSubject: no ").unwrap();
        let no = no.lines().next().unwrap();
        Self {
            round: round.parse().unwrap(),
            at: queued_at(id),
            no: no.trim().parse().unwrap(),
        }
    }
}

/// When a queue file of Postfix was made, by its long name: seconds, four digits
/// of microseconds, `z`, and more.
fn queued_at(id: &str) -> u64 {
    let (time, _) = id.rsplit_once('z').unwrap();
    let (seconds, micros) = time.split_at(time.len() - 4);
    number(seconds) * 1_000_000 + number(micros)
}

/// Digits and letters without vowels.
fn number(text: &str) -> u64 {
    const DIGITS: &str = "0123456789BCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz";
    let digits = text.chars().map(|digit| DIGITS.find(digit).unwrap() as u64);
    digits.fold(0, |number, digit| number * DIGITS.len() as u64 + digit)
}

/// Moments that one seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        // Xorshift: nobody has to be surprised by it but a server.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// What is known of all messages.
#[derive(Default)]
struct Known {
    /// Numbers of those that were acknowledged, by id, and over which way.
    acknowledged: BTreeMap<String, (usize, Way)>,
    /// Numbers of those whose settlement a process was seen to have written.
    settled: BTreeMap<usize, usize>,
    /// When each process was killed, in microseconds.
    killed_at: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Http,
    Smtp,
}

fn start(place: &Place, postfix: &Postfix, round: usize) -> Server {
    place.configure(&format!(
        "[dns]\nlookups = \"never\"\n[smtp]\nlisten = \"127.0.0.1:0\"\n\
         [[account]]\nid = \"relay\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n\
         max_connections = {CONNECTIONS}\nhelo = \"r{round}.client.example\"\n",
        postfix.port,
    ));
    place.start()
}

/// Submits until told to stop or the server is gone.
fn load(
    way: Way,
    server: (Client, SocketAddr, String),
    next: &AtomicUsize,
    stop: &AtomicBool,
) -> Vec<(String, usize)> {
    const BATCH: usize = 3;
    let (mut client, smtp, token) = server;
    let mut acknowledged = Vec::new();
    let subject = |no: usize| format!("no {no}");
    let mut session = None;
    while !stop.load(Ordering::Acquire) {
        match way {
            Way::Http => {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                let messages: Vec<Value> = (first..first + BATCH)
                    .map(|no| message(json!({ "to": "u@example.org", "subject": subject(no) })))
                    .collect();
                let body = json!({ "messages": messages });
                let Ok(answer) = client.post("/api/v1/messages", &body) else {
                    break;
                };
                assert_eq!(answer.status, 202, "{}", answer.text);
                let answer = answer.json();
                let accepted = answer["accepted"].as_array().unwrap();
                for (accepted, no) in accepted.iter().zip(first..) {
                    acknowledged.push((accepted["id"].as_str().unwrap().to_owned(), no));
                }
            }
            Way::Smtp => {
                if session.is_none() {
                    session = Submitter::login(smtp, &token).ok();
                }
                let Some(session) = &mut session else { break };
                let no = next.fetch_add(1, Ordering::Relaxed);
                let Ok(id) = session.submit("u@example.org", &subject(no)) else {
                    break;
                };
                acknowledged.push((id, no));
            }
        }
        // Not more than Postfix can take on a machine that has other work.
        thread::park_timeout(Duration::from_millis(match way {
            Way::Http => 30,
            Way::Smtp => 20,
        }));
    }
    acknowledged
}

/// One round: load over both ways, and a kill at a moment. What was acknowledged
/// and what was seen to be settled goes into `known`.
fn round(server: Server, round: usize, moment: Duration, next: &AtomicUsize, known: &mut Known) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let loads = [Way::Http, Way::Http, Way::Smtp, Way::Smtp].map(|way| {
            let parts = (server.client(), address_of(&server), server.token.clone());
            let stop = &stop;
            (way, scope.spawn(move || load(way, parts, next, stop)))
        });
        let mut client = server.client();
        let until = wall() + u64::try_from(moment.as_nanos()).unwrap();
        while let Some(left) = until.checked_sub(wall()) {
            thread::park_timeout(Duration::from_nanos(left));
        }
        let page = client.get("/api/v1/messages?state=delivered&limit=200");
        let page = page.map(|page| page.json()).unwrap_or_default();
        server.kill();
        known.killed_at.push(wall() / 1_000);
        for (way, load) in loads {
            let acknowledged = load.join().unwrap().into_iter();
            let acknowledged = acknowledged.map(|(id, no)| (id, (no, way)));
            known.acknowledged.extend(acknowledged);
        }
        for message in page["messages"].as_array().into_iter().flatten() {
            let id = message["id"].as_str().unwrap();
            if let Some((no, _)) = known.acknowledged.get(id) {
                known.settled.entry(*no).or_insert(round);
            }
        }
    });
}

/// Everything that came so far, by message. Nothing is on its way inside of
/// Postfix.
fn arrivals(postfix: &Postfix) -> BTreeMap<usize, Vec<Arrival>> {
    let queues = ["incoming", "active", "deferred", "maildrop"];
    let queues = queues.map(|name| postfix.at(&format!("queue/{name}")));
    wait_for("Postfix has delivered all", || {
        queues.iter().all(|queue| is_bare(queue)).then_some(())
    });
    let mut found = BTreeMap::<usize, Vec<Arrival>>::new();
    for file in postfix.delivered() {
        let arrival = Arrival::read(&file);
        found.entry(arrival.no).or_default().push(arrival);
    }
    found.values_mut().for_each(|arrivals| arrivals.sort());
    found
}

/// Whether there is no file in a folder and those in it.
fn is_bare(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.all(|path| path.is_dir() && is_bare(&path))
}

#[test]
fn everything_acknowledged_survives_kill_9_and_reaches_a_real_server() {
    let rounds = from_env("OUTFLOW_KILL_ROUNDS", 50);
    let random = || usize::try_from(RandomState::new().build_hasher().finish() >> 1).unwrap();
    let seed = from_env("OUTFLOW_KILL_SEED", random());
    eprintln!("OUTFLOW_KILL_SEED={seed}");
    let mut dice = Dice(seed as u64 | 1);
    let postfix = Postfix::start(|_| {
        "mynetworks = 127.0.0.0/8\nvirtual_mailbox_domains = example.org\n\
         smtpd_relay_restrictions = permit_mynetworks, reject\nenable_long_queue_ids = yes\n"
            .to_owned()
    });
    let place = Place::new("mail-kills");
    let (next, mut known, mut readiness) = (AtomicUsize::new(0), Known::default(), Vec::new());
    for number in 0..rounds {
        let server = start(&place, &postfix, number);
        readiness.push(server.ready_after);
        let moment = Duration::from_millis(200 + dice.below(1_200));
        round(server, number, moment, &next, &mut known);
    }
    let server = start(&place, &postfix, rounds);
    let mut client = server.client();
    wait_for("nothing waits", || {
        let waiting = listed(&mut client, "queued,sending,deferred");
        waiting.is_empty().then_some(())
    });
    server.stop();
    let arrivals = arrivals(&postfix);
    for (id, (no, way)) in &known.acknowledged {
        assert!(
            arrivals.contains_key(no),
            "{id} was acknowledged ({way:?}) and never came"
        );
    }
    for (no, settled_by) in &known.settled {
        let last = arrivals[no].last().unwrap();
        assert!(last.round <= *settled_by, "no {no} was settled: {last:?}");
    }
    let repeats = repeats(&arrivals, &known);
    let count = |wanted| {
        let ways = known
            .acknowledged
            .values()
            .filter(|(_, way)| *way == wanted);
        ways.count()
    };
    readiness.sort_unstable();
    eprintln!(
        "{rounds} kills: {} acknowledged over HTTP and {} over SMTP, {} messages came; \
         {} came again, at most {} for one kill; they came within {} ms of it, and at most {} \
         others after them; {} known to be settled never came again; ready after {:?} at worst",
        count(Way::Http),
        count(Way::Smtp),
        arrivals.len(),
        repeats.count,
        repeats.of_one_kill,
        repeats.micros_before / 1_000,
        repeats.later_ones,
        known.settled.len(),
        readiness.last().unwrap_or(&Duration::ZERO),
    );
    assert!(count(Way::Http) > rounds && count(Way::Smtp) > rounds);
}

/// What is worth knowing of those that came again.
#[derive(Default)]
struct Repeats {
    count: usize,
    /// The most that one kill cost.
    of_one_kill: usize,
    /// How long before the kill the earliest of them had come.
    micros_before: u64,
    /// How many others of the same process came after one of them.
    later_ones: usize,
}

/// Ties each repeat to a kill: no process sent a message twice, and what was sent
/// again by a later one was on its way when the earlier one was killed.
///
/// Settlements are written in the order of the replies. So of the messages that
/// began before one that was seen to be settled just before the kill, only those
/// can have been without a settlement that were under way beside it: one on each
/// other connection. All others that came again began after it, between that
/// look and the kill.
fn repeats(arrivals: &BTreeMap<usize, Vec<Arrival>>, known: &Known) -> Repeats {
    let mut by_round = BTreeMap::<usize, BTreeSet<(u64, usize)>>::new();
    for arrival in arrivals.values().flatten() {
        let of_round = by_round.entry(arrival.round).or_default();
        of_round.insert((arrival.at, arrival.no));
    }
    let mut last_settled = BTreeMap::<usize, u64>::new();
    for (no, round) in &known.settled {
        let settled = arrivals[no].iter().filter(|it| it.round == *round);
        for arrival in settled {
            let last = last_settled.entry(*round).or_default();
            *last = (*last).max(arrival.at);
        }
    }
    let (mut repeats, mut of_kill) = (Repeats::default(), BTreeMap::<usize, usize>::new());
    let mut beside_settled = BTreeMap::<usize, usize>::new();
    for arrivals in arrivals.values() {
        for pair in arrivals.windows(2) {
            let (before, again) = (pair[0], pair[1]);
            assert!(before.round < again.round, "twice by one process: {pair:?}");
            // The first may begin a little later than the kill: what was written
            // before is still read.
            let killed_at = known.killed_at[before.round];
            assert!(killed_at <= again.at, "{pair:?}, {killed_at}");
            if last_settled.get(&before.round) > Some(&before.at) {
                *beside_settled.entry(before.round).or_default() += 1;
            }
            let later = by_round[&before.round].range((before.at + 1, 0)..).count();
            repeats.count += 1;
            repeats.later_ones = repeats.later_ones.max(later);
            let micros = killed_at.saturating_sub(before.at);
            repeats.micros_before = repeats.micros_before.max(micros);
            *of_kill.entry(before.round).or_default() += 1;
        }
    }
    for (round, count) in beside_settled {
        assert!(count < CONNECTIONS, "{count} came again after kill {round}");
    }
    repeats.of_one_kill = of_kill.into_values().max().unwrap_or(0);
    repeats
}
