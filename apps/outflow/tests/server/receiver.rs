//! What limits promise, counted where mail arrives.
//!
//! Tokens are taken just before a message is handed to its session, and the
//! network, the scheduler of the operating system and the receiver's own thread
//! may hold one message longer than the next. So each guarantee is checked
//! twice, for every interval: at the moments at which tokens were taken, with no
//! allowance but the millisecond to which they are written down; and at the
//! receiver, where an interval may hold what was sent in an interval that is
//! longer by the longest delay that was measured between the two.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::dns::DnsServer;
use crate::process::{Place, message, wait_for};
use crate::sink::{Arrival, Manner, Sink, wall};

const SECOND: u64 = 1_000_000_000;
/// The log of attempts rounds to a millisecond, at both ends of an interval.
const ROUNDING: u64 = 2_000_000;
/// A machine that is starved holds messages up for as long as it likes. What is
/// measured then says nothing, and is measured again, so often.
const TRIES: usize = 3;
const DELAY_MAX: u64 = SECOND;
/// How much of what is allowed is used.
const USED_MIN: f64 = 0.98;

/// What a limit promises of every interval.
#[derive(Clone, Copy, Debug)]
enum Promise {
    /// At most `burst` and `rate` a second.
    Bucket { rate: u64, burst: u64 },
    /// At most so many in any window of this length.
    Window { count: u64, length: u64 },
}

/// When messages were sent and arrived, in nanoseconds of the wall clock, each
/// in order.
#[derive(Debug)]
struct Run {
    sent: Vec<u64>,
    arrived: Vec<u64>,
    /// The longest time from one to the other.
    delay: u64,
}

impl Run {
    /// Puts together what the log of attempts and the sink say of some messages,
    /// by their ids and recipients.
    fn of(place: &Place, arrivals: &[Arrival], ids: &BTreeMap<String, String>) -> Self {
        let log = fs::read_to_string(place.dir.join("attempts.jsonl")).unwrap();
        let sent: BTreeMap<String, u64> = log.lines().map(sent_at).collect();
        let mut run = Self {
            sent: Vec::new(),
            arrived: Vec::new(),
            delay: 0,
        };
        for arrival in arrivals {
            assert!(arrival.mail_at <= arrival.data_at, "{arrival:?}");
            let sent = sent[&ids[&arrival.to]];
            run.delay = run.delay.max(arrival.mail_at.saturating_sub(sent));
            run.sent.push(sent);
            run.arrived.push(arrival.mail_at);
        }
        run.sent.sort_unstable();
        run.arrived.sort_unstable();
        run
    }

    /// Checks every interval that begins and ends with a message.
    fn keeps(&self, promise: Promise) {
        for (what, times, more) in [
            ("sent", &self.sent, ROUNDING),
            ("arrived", &self.arrived, self.delay + ROUNDING),
        ] {
            for (first, &from) in times.iter().enumerate() {
                for (count, &to) in (1..).zip(&times[first..]) {
                    let time = to - from;
                    let is_kept = match promise {
                        Promise::Bucket { rate, burst } => {
                            // In parts of a token, so that nothing is rounded.
                            let allowed = u128::from(rate) * u128::from(time + more)
                                + u128::from(burst * SECOND);
                            u128::from(count) * u128::from(SECOND) <= allowed
                        }
                        Promise::Window {
                            count: most,
                            length,
                        } => time + more >= length || count <= most,
                    };
                    assert!(is_kept, "{count} {what} in {time} ns, {promise:?}");
                }
            }
        }
    }

    /// The share of a bucket's rate that was used at the receiver, once its burst
    /// was gone.
    fn used(&self, rate: u64, burst: usize) -> f64 {
        let times = &self.arrived[burst..];
        let time = times[times.len() - 1] - times[0];
        (times.len() - 1) as f64 * SECOND as f64 / (rate as f64 * time as f64)
    }
}

/// The id of an attempt's message, and when its tokens were taken.
fn sent_at(line: &str) -> (String, u64) {
    let line: Value = serde_json::from_str(line).unwrap();
    let at: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
    let at = u64::try_from(at.as_nanosecond()).unwrap();
    let took = (line["duration_ms"].as_f64().unwrap() * 1e6) as u64;
    assert_eq!(line["attempt"], 1, "{line}");
    (line["message_id"].as_str().unwrap().to_owned(), at - took)
}

/// Settings with a log of attempts. `[log]` is the section that is open at the
/// beginning of `more`.
fn configure(place: &Place, more: &str) {
    place.configure(&format!("attempts = \"attempts.jsonl\"\n{more}"));
}

fn relay(id: &str, sink: &Sink, more: &str) -> String {
    format!(
        "[[account]]\nid = \"{id}\"\npool = \"{id}\"\nhost = \"127.0.0.1\"\nport = {}\n\
         tls = \"none\"\nhelo = \"client.example\"\n{more}\n",
        sink.address.port(),
    )
}

/// Submits messages, a thousand at a time: their ids by recipient.
fn submit_all(
    client: &mut Client,
    recipients: &[String],
    fields: &Value,
) -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for some in recipients.chunks(1_000) {
        let messages: Vec<Value> = some
            .iter()
            .map(|to| {
                let mut fields = fields.clone();
                fields["to"] = json!(to);
                message(fields)
            })
            .collect();
        let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
        let answer = answer.unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text);
        let answer = answer.json();
        let accepted = answer["accepted"].as_array().unwrap();
        assert_eq!(accepted.len(), some.len());
        for (to, accepted) in some.iter().zip(accepted) {
            ids.insert(to.clone(), accepted["id"].as_str().unwrap().to_owned());
        }
    }
    ids
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    let addresses = (0..count).map(|no| format!("{prefix}{no}@gmail.com"));
    addresses.collect()
}

/// Waits until so many lines of attempts are there; they are written a little
/// later.
fn wait_attempts(place: &Place, count: usize) {
    wait_for("attempts in the log", || {
        let log = fs::read_to_string(place.dir.join("attempts.jsonl"));
        (log.unwrap_or_default().lines().count() >= count).then_some(())
    });
}

const RATE: u64 = 100;
const BURST: u64 = 20;
const WINDOW: u64 = 600;

/// One measurement of both limits: the shares of what was allowed that were
/// used, or nothing if the machine was too busy to tell.
fn both_limits() -> Option<(f64, f64)> {
    let (place, bucket, window) = (Place::new("receiver"), Sink::start(), Sink::start());
    let limits = |limit: &str| format!("limits = [\"{limit}\"]\n");
    configure(
        &place,
        &format!(
            "{}{}",
            relay("bucket", &bucket, &limits("100/s burst 20")),
            relay("window", &window, &limits("600/min")),
        ),
    );
    let server = place.start();
    let mut client = server.client();
    // Twelve seconds of the one; of the other, two windows and more.
    let (few, many) = (1_220, 1_500);
    let mut ids = submit_all(
        &mut client,
        &numbered("b", few),
        &json!({ "pool": "bucket" }),
    );
    ids.extend(submit_all(
        &mut client,
        &numbered("w", many),
        &json!({ "pool": "window" }),
    ));
    wait_for("all of the bucket", || {
        (bucket.count() == few).then_some(())
    });
    let second = usize::try_from(WINDOW).unwrap() + 1;
    wait_for("the second window", || {
        (window.count() >= second).then_some(())
    });
    // From here on the first window's messages leave it one after the other.
    let began = window.seen().arrivals.iter().map(|it| it.mail_at).min();
    let until = began.unwrap() + 68 * SECOND;
    wait_for("68 seconds", || (wall() >= until).then_some(()));
    let came = window.seen().arrivals;
    wait_attempts(&place, few + came.len());
    let bucket = Run::of(&place, &bucket.seen().arrivals, &ids);
    let window = Run::of(&place, &came, &ids);
    server.stop();
    eprintln!(
        "100/s burst 20: {} came, the longest delay was {} us; 600/min: {} in 68 s, {} us",
        bucket.arrived.len(),
        bucket.delay / 1_000,
        window.arrived.len(),
        window.delay / 1_000,
    );
    bucket.keeps(Promise::Bucket {
        rate: RATE,
        burst: BURST,
    });
    window.keeps(Promise::Window {
        count: WINDOW,
        length: 60 * SECOND,
    });
    if bucket.delay.max(window.delay) > DELAY_MAX {
        return None;
    }
    let used = bucket.used(RATE, usize::try_from(BURST).unwrap());
    // Two whole windows fit into this time.
    Some((used, window.arrived.len() as f64 / (2 * WINDOW) as f64))
}

#[test]
fn no_interval_at_the_receiver_holds_more_than_was_promised() {
    let enough = |(bucket, window): &(f64, f64)| *bucket >= USED_MIN && *window >= USED_MIN;
    let mut measured = Vec::new();
    for _ in 0..TRIES {
        let used = both_limits();
        eprintln!("of the bucket's rate and of two windows was used: {used:?}");
        measured.push(used);
        if used.as_ref().is_some_and(enough) {
            return;
        }
    }
    panic!("too little of what was allowed was used: {measured:?}");
}

#[test]
fn a_thousand_domains_behind_one_server_share_its_limit() {
    let (place, dns, sink) = (Place::new("thousand"), DnsServer::start(), Sink::start());
    dns.addresses("mx.example.net", 300, &["127.0.0.1"]);
    configure(
        &place,
        &format!(
            "[dns]\nservers = [\"{}\"]\nallowed_networks = [\"127.0.0.0/8\"]\n\
             [[policy]]\nmatch = {{ host = \"mx.example.net\" }}\nrate = \"100/s\"\nburst = 20\n\
             [[account]]\nid = \"direct\"\ntransport = \"mx\"\nport = {}\n\
             helo = \"client.example\"\n",
            dns.address,
            sink.address.port(),
        ),
    );
    let server = place.start();
    let mut client = server.client();
    let recipients: Vec<String> = (0..1_000).map(|no| format!("u@d{no}.example")).collect();
    for to in &recipients {
        let domain = to.strip_prefix("u@").unwrap();
        dns.mx(domain, 300, &[(10, "mx.example.net")]);
    }
    let ids = submit_all(&mut client, &recipients, &json!({}));
    wait_for("all came", || (sink.count() == 1_000).then_some(()));
    wait_attempts(&place, 1_000);
    let seen = sink.seen();
    let run = Run::of(&place, &seen.arrivals, &ids);
    run.keeps(Promise::Bucket {
        rate: RATE,
        burst: BURST,
    });
    eprintln!(
        "a thousand domains: {:.3} of the rate was used, at most {} connections at once of {}, \
         the longest delay was {} us",
        run.used(RATE, usize::try_from(BURST).unwrap()),
        seen.connections.most,
        seen.connections.in_all,
        run.delay / 1_000,
    );
    // The usual cap of an `mx` account for one destination.
    assert!(seen.connections.most <= 5, "{:?}", seen.connections);
    server.stop();
}

#[test]
fn the_receiver_never_sees_more_connections_than_the_cap() {
    // Connections carry a few messages each, and the sink is slow to let go: so
    // at nearly every moment some are on their way out.
    let manner = Manner {
        data: Duration::from_millis(3),
        quit: Duration::from_millis(25),
        ..Manner::default()
    };
    let (place, dns) = (Place::new("caps"), DnsServer::start());
    let (all, each, busy) = (Sink::with(manner), Sink::with(manner), Sink::with(manner));
    let few = "max_messages_per_connection = 3\n";
    dns.mx("one.example", 300, &[(10, "mx.one.example")]);
    dns.addresses("mx.one.example", 300, &["127.0.0.1"]);
    configure(
        &place,
        &format!(
            "[dns]\nservers = [\"{}\"]\nallowed_networks = [\"127.0.0.0/8\"]\n\
             [[policy]]\nmatch = {{ account = \"busy\" }}\nconcurrency = 3\n\
             {}{}\
             [[account]]\nid = \"each\"\npool = \"each\"\ntransport = \"mx\"\nport = {}\n\
             helo = \"client.example\"\nmax_connections = 9\n\
             max_connections_per_destination = 2\n{few}",
            dns.address,
            relay("all", &all, &format!("max_connections = 4\n{few}")),
            relay("busy", &busy, &format!("max_connections = 9\n{few}")),
            each.address.port(),
        ),
    );
    let server = place.start();
    let mut client = server.client();
    let (many, some) = (600, 300);
    submit_all(&mut client, &numbered("u", many), &json!({ "pool": "all" }));
    submit_all(
        &mut client,
        &numbered("u", many),
        &json!({ "pool": "busy" }),
    );
    let to_one: Vec<String> = (0..some).map(|no| format!("u{no}@one.example")).collect();
    submit_all(&mut client, &to_one, &json!({ "pool": "each" }));
    for (sink, count) in [(&all, many), (&busy, many), (&each, some)] {
        wait_for("all came", || (sink.count() == count).then_some(()));
    }
    let [all, busy, each] = [all.seen(), busy.seen(), each.seen()];
    eprintln!(
        "at once, at most: {:?} of 4 connections, {:?} of 2 to a destination, {:?} of 3 messages",
        all.connections, each.connections, busy.transactions,
    );
    for (level, cap) in [
        (all.connections, 4),
        (each.connections, 2),
        (busy.transactions, 3),
    ] {
        assert!(level.most <= cap, "{level:?} of {cap}");
        assert!(level.in_all > 50, "hardly any turnover: {level:?}");
    }
    server.stop();
}
