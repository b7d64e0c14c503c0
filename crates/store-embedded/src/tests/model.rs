//! Random work, random deaths, and a model of what must be there: after a death
//! the store is as it was before the last piece of work, or after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use outflow_core::engine::action::{Hasten, Record};
use outflow_core::entropy::Entropy;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::dead_letter::{DeadLetter, LastError};
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::conformance::store::Harness;
use outflow_ports::store::{NewMessage, Store, StoreWork};

use super::driver::{Driver, Said, message, settlement};
use super::harness::Rig;

const FLOWS: u64 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Message {
    flow: FlowId,
    due_at: Option<Wall>,
    dead: bool,
    envelope: Vec<u8>,
    body: Vec<u8>,
}

type Messages = BTreeMap<Seq, Message>;

/// What a game has seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Messages that were acknowledged.
    pub accepted: u64,
    /// Bodies that were read back and held against what was given.
    pub read: u64,
    /// Deaths, and after how many of them the work under way was there.
    pub deaths: u64,
    pub done_unheard: u64,
}

pub struct Game {
    pub driver: Driver,
    pub entropy: Entropy,
    pub tally: Tally,
    known: Messages,
    held: BTreeSet<Seq>,
    keys: BTreeMap<String, Seq>,
    /// What else may be true after a death: a batch that was not answered, or
    /// that failed and after which nothing has become durable yet.
    maybe: Vec<(Messages, BTreeMap<String, Seq>)>,
    mark: u64,
}

fn error() -> LastError {
    LastError {
        code: Some(451),
        enhanced: None,
        class: ReplyClass::Other,
        rule: Name::from("other"),
        text: String::from("not now"),
    }
}

fn difference(
    found: &Messages,
    expected: &Messages,
) -> Vec<(Seq, Option<Message>, Option<Message>)> {
    let seqs: BTreeSet<Seq> = found.keys().chain(expected.keys()).copied().collect();
    let both = seqs.into_iter().map(|seq| {
        let (found, expected) = (found.get(&seq), expected.get(&seq));
        (seq, found.cloned(), expected.cloned())
    });
    both.filter(|(_, found, expected)| found != expected)
        .collect()
}

impl Game {
    pub fn new(seed: u64) -> Self {
        let mut rig = Rig::on_memory(seed);
        rig.settings.envelope_segment_bytes = 4_096;
        rig.settings.body_segment_bytes = 8_192;
        rig.settings.slack_bytes = 8_192;
        rig.settings.reading_grace = Nanos::ZERO;
        rig.settings.record.batch_time = Nanos::from_millis(1);
        rig.crash();
        let mut driver = Driver::new(rig);
        for flow in 0..FLOWS {
            driver.open(FlowId(flow as u32));
        }
        Self {
            driver,
            entropy: Entropy(seed),
            tally: Tally::default(),
            known: Messages::new(),
            held: BTreeSet::new(),
            keys: BTreeMap::new(),
            maybe: Vec::new(),
            mark: 0,
        }
    }

    fn flow(&mut self) -> FlowId {
        FlowId(self.entropy.between(0, FLOWS - 1) as u32)
    }

    fn found(&mut self) -> Messages {
        let mut found = Vec::new();
        let end = self
            .driver
            .rig
            .store()
            .scan(Seq(0), usize::MAX, &mut |it| found.push(it));
        assert_eq!(end, None);
        self.tally.read += found.len() as u64;
        let of_each = found.into_iter().map(|it| {
            let parcel = self.driver.rig.store().parcel(it.head.seq).unwrap();
            let now = parcel.read_now();
            let parcel = parcel.read().unwrap();
            // Not every file system can say what it has in memory.
            let is_memory = self.driver.rig.memory.is_some();
            assert!(now.map_or(!is_memory, |now| now == parcel));
            let message = Message {
                flow: it.flow,
                due_at: it.due_at,
                dead: it.dead,
                envelope: parcel.envelope.to_vec(),
                body: parcel.body.to_vec(),
            };
            (it.head.seq, message)
        });
        of_each.collect()
    }

    /// What the model says, as the store would say it now.
    fn expected(&self, of: &Messages) -> Messages {
        let now = self.driver.rig.now().wall;
        let mut of = of.clone();
        for message in of.values_mut() {
            message.due_at = message.due_at.filter(|at| *at > now && !message.dead);
        }
        of
    }

    pub fn check(&mut self) {
        // What has become due is in the queue by then.
        self.driver.turn();
        let found = self.found();
        let expected = self.expected(&self.known);
        assert_eq!(difference(&found, &expected), []);
    }

    /// After a death it is as before, or as it may be.
    fn check_after_death(&mut self) {
        self.driver.turn();
        let found = self.found();
        let mut maybe = std::mem::take(&mut self.maybe);
        let as_known = maybe.len();
        maybe.push((self.known.clone(), self.keys.clone()));
        let fits = maybe.iter().position(|(it, _)| self.expected(it) == found);
        let Some(fits) = fits else {
            let differences = maybe
                .iter()
                .map(|(it, _)| difference(&found, &self.expected(it)));
            panic!("{:#?}", differences.collect::<Vec<_>>());
        };
        self.tally.deaths += 1;
        self.tally.done_unheard += u64::from(fits < as_known);
        (self.known, self.keys) = maybe.swap_remove(fits);
    }

    fn a_record(&mut self) -> Option<(Record, Messages)> {
        let mut after = self.known.clone();
        let flow = self.flow();
        let waiting = |known: &Messages, held: &BTreeSet<Seq>| {
            let of_flow = known.iter().filter(|(_, it)| it.flow == flow && !it.dead);
            let of_flow = of_flow
                .map(|(seq, _)| *seq)
                .filter(|seq| !held.contains(seq));
            of_flow.collect::<Vec<Seq>>()
        };
        let through = self.driver.rig.store().last_seq();
        let record = match self.entropy.between(0, 9) {
            0 => {
                for seq in waiting(&self.known, &self.held) {
                    after.remove(&seq);
                }
                Record::Cancelled { flow, through }
            }
            1 => {
                let to = self.flow();
                let held = self.held.iter().copied();
                let held: Vec<Seq> = held.filter(|seq| self.known[seq].flow == flow).collect();
                for seq in waiting(&self.known, &self.held).iter().chain(&held) {
                    after.get_mut(seq).unwrap().flow = to;
                }
                Record::Moved {
                    flow,
                    to,
                    through,
                    held,
                }
            }
            2 => {
                let at = self.driver.rig.now().wall;
                for seq in waiting(&self.known, &self.held) {
                    let due_at = &mut after.get_mut(&seq).unwrap().due_at;
                    *due_at = due_at.map(|due| due.min(at));
                }
                let which = Hasten::Through(through);
                Record::Hastened { flow, which }
            }
            no => {
                let seq = *self.held.iter().next()?;
                let flow = self.known[&seq].flow;
                match no {
                    3..=5 => {
                        let until = self.driver.rig.now().wall + Nanos::from_secs(no);
                        after.get_mut(&seq).unwrap().due_at = Some(until);
                        Record::Deferral {
                            flow,
                            seq,
                            until,
                            attempt: None,
                        }
                    }
                    6 => {
                        after.get_mut(&seq).unwrap().dead = true;
                        Record::Dead {
                            flow,
                            seq,
                            account: None,
                            letter: Box::new(DeadLetter {
                                first_attempt_at: Wall(0),
                                last_attempt_at: Wall(1),
                                attempts: 1,
                                cause: DeathCause::Attempts,
                                error: error(),
                            }),
                        }
                    }
                    _ => {
                        after.remove(&seq);
                        settlement(flow, seq, State::Delivered)
                    }
                }
            }
        };
        Some((record, after))
    }

    /// One piece of work, done or failed.
    pub fn step(&mut self) -> Option<()> {
        match self.entropy.between(0, 9) {
            0..=2 => self.accept(),
            3 | 4 => {
                let flow = self.flow();
                let max = self.entropy.between(1, 6) as u32;
                let heads = self.driver.page(flow, max);
                self.held.extend(heads.iter().map(|head| head.seq));
            }
            5 => {
                let span = Nanos::from_millis(self.entropy.between(0, 900));
                self.driver.pass(span);
                self.driver.turn();
            }
            6 => {
                let dead = self.known.iter().find(|(_, it)| it.dead);
                let seq = *dead?.0;
                // What nobody answers for is tried until the disk works.
                self.driver.rig.fail_commits(false);
                self.driver.rig.fill_disk(false);
                self.driver.submit(StoreWork::Forget { seqs: vec![seq] });
                // It is not answered; what is answered behind it is.
                let key = Arc::new(super::driver::key_of(FlowId(0)));
                self.driver.submit(StoreWork::OpenFlow {
                    flow: FlowId(0),
                    key,
                });
                let mut after = self.known.clone();
                after.remove(&seq);
                while self.driver.rig.store().is_busy() && !self.driver.is_dead() {
                    self.driver.turn();
                    self.driver.pass(Nanos::from_millis(1));
                }
                if self.driver.is_dead() {
                    self.maybe.push((after, self.keys.clone()));
                    return None;
                }
                self.driver.turn();
                self.maybe.clear();
                self.known = after;
            }
            _ => {
                let (record, after) = self.a_record()?;
                loop {
                    if self.driver.commit(record.clone()) == Said::Committed {
                        self.done(&record, after);
                        return None;
                    }
                    if self.driver.is_dead() {
                        self.maybe.push((after, self.keys.clone()));
                        return None;
                    }
                    // A failed record comes again, once the disk works.
                    self.driver.rig.fail_commits(false);
                    self.driver.rig.fill_disk(false);
                }
            }
        }
        None
    }

    fn done(&mut self, record: &Record, after: Messages) {
        match record {
            Record::Deferral { seq, .. }
            | Record::Settlement { seq, .. }
            | Record::Dead { seq, .. } => {
                self.held.remove(seq);
            }
            Record::Moved { held, .. } => self.held.retain(|seq| !held.contains(seq)),
            _ => {}
        }
        self.known = after;
        self.maybe.clear();
    }

    fn accept(&mut self) {
        let count = self.entropy.between(1, 5);
        let shared: Arc<[u8]> = Arc::from(vec![count as u8; 700]);
        let mut messages: Vec<NewMessage> = Vec::new();
        for _ in 0..count {
            self.mark += 1;
            let flow = self.flow();
            let own: Arc<[u8]> = Arc::from(self.mark.to_le_bytes());
            let body = if self.entropy.between(0, 1) == 0 {
                &shared
            } else {
                &own
            };
            let key = self.entropy.between(0, 60);
            messages.push(NewMessage {
                idempotency_key: (key < 40).then(|| Arc::from(format!("key {key}"))),
                ..message(flow, self.mark, body)
            });
        }
        let first = self.driver.rig.store().last_seq().0 + 1;
        let (mut after, mut keys) = (self.known.clone(), self.keys.clone());
        for (it, no) in messages.iter().zip(first..) {
            if let Some(key) = &it.idempotency_key {
                if keys.contains_key(&**key) {
                    continue;
                }
                keys.insert(key.to_string(), Seq(no));
            }
            let new = Message {
                flow: it.flow,
                due_at: None,
                dead: false,
                envelope: it.envelope.to_vec(),
                body: it.body.to_vec(),
            };
            after.insert(Seq(no), new);
        }
        match self.driver.accept(messages.clone()) {
            Said::Given(given) => {
                self.tally.accepted += given.len() as u64;
                for (it, given) in messages.iter().zip(given) {
                    if let Some(key) = &it.idempotency_key {
                        assert_eq!(keys[&**key], given.seq, "one message per key");
                    }
                }
                (self.known, self.keys) = (after, keys);
                self.maybe.clear();
            }
            _ => self.maybe.push((after, keys)),
        }
    }

    /// The power goes, and comes back.
    pub fn restart(&mut self) {
        self.driver.restart();
        self.go_on();
    }

    /// The process is killed, and another one goes on.
    pub fn kill(&mut self) {
        self.driver.rig.kill();
        self.driver.rig.open().unwrap();
        self.driver.recover();
        self.go_on();
    }

    fn go_on(&mut self) {
        self.held.clear();
        self.check_after_death();
        for flow in 0..FLOWS {
            self.driver.open(FlowId(flow as u32));
        }
    }
}

fn play(seed: u64, steps: u32) {
    let mut game = Game::new(seed);
    for _ in 0..steps {
        match game.entropy.between(0, 39) {
            0 => {
                let mood = &game.driver.rig.disk.mood;
                let at = mood.operations.load(SeqCst) + game.entropy.between(1, 12);
                mood.dies_at.store(at, SeqCst);
            }
            1 => game.driver.rig.fail_commits(true),
            2 => game.driver.rig.fail_commits(false),
            3 => game.driver.rig.fill_disk(true),
            4..=6 => game.driver.rig.fill_disk(false),
            _ => {}
        }
        game.step();
        if game.driver.is_dead() {
            game.driver.rig.fail_commits(false);
            game.driver.rig.fill_disk(false);
            game.restart();
        } else {
            game.check();
        }
    }
    game.driver.rig.fail_commits(false);
    game.driver.rig.fill_disk(false);
    game.restart();
}

#[test]
fn the_store_is_as_its_model() {
    let number = |name, usual| std::env::var(name).map_or(usual, |it| it.parse().unwrap());
    let first: u64 = number("OUTFLOW_FIRST_SEED", 0);
    for seed in first..first + number("OUTFLOW_SEEDS", 40) {
        let played = std::panic::catch_unwind(|| play(seed, 150));
        assert!(played.is_ok(), "seed {seed}");
    }
}
