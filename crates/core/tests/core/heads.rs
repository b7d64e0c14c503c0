//! What holds the head of a flow, and what a journal that fails or starts anew
//! does to it: recipients, retry budgets, blocks. Driven by steps alone, with a
//! store that is no more than a list.

use std::collections::{BTreeMap, VecDeque};

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Action, Alert, Hold, Receipt, Record};
use outflow_core::engine::command::Command;
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::engine::learners::Lore;
use outflow_core::engine::{Engine, SavedLimit, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId, PermitId};
use outflow_core::limit::{Headroom, LimitSpec};
use outflow_core::message::{Head, Recipient, Seq};
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::Policy;
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::{Mono, Nanos, Now, Wall};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const DAY: u64 = 86_400 * SECOND;
/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600 * SECOND as i64;

/// What is durable, as a store would bring it back.
#[derive(Clone, Default)]
struct Disk {
    limits: BTreeMap<LimitKey, SavedLimit>,
    holds: BTreeMap<LimitKey, Hold>,
    adapted: BTreeMap<LimitKey, Lore>,
    /// Messages that wait for their time.
    later: Vec<(Wall, Head)>,
    ready: VecDeque<Head>,
    /// All messages, as they were last written.
    heads: BTreeMap<Seq, Head>,
    last_record: u64,
}

/// One flow of an engine over a disk.
struct Bench {
    engine: Engine,
    flow: FlowId,
    time: u64,
    /// When this life began, on no clock but ours.
    booted: u64,
    disk: Disk,
    /// How long a commit takes, and whether it fails.
    commit: u64,
    fails: bool,
    appended: VecDeque<(u64, AppendNo, Record)>,
    reply: Reply,
    sent: Vec<(u64, Head)>,
    dead: Vec<(Seq, DeathCause)>,
    records: usize,
    deferrals: usize,
    recovered_at: Option<u64>,
    unanswered: Vec<PermitId>,
    answers: bool,
}

fn policies(matches: (&str, &str), limits: &[&str]) -> Policies {
    let mut policies = Policies::default();
    let mut policy = Policy::new(Match::from_pairs([matches]).unwrap());
    let specs = limits.iter().map(|text| LimitSpec::parse(text).unwrap());
    policy.limits = specs.collect();
    policies.insert(policy).unwrap();
    policies
}

fn said(code: u16, retry_after: Option<Nanos>) -> Reply {
    Reply::Said {
        stage: Stage::Data,
        code,
        enhanced: None,
        text: "".into(),
        retry_after,
        allows: None,
    }
}

impl Bench {
    fn new(policies: Policies) -> Self {
        Self::start(policies, Start::Fresh, 0, Disk::default())
    }

    fn start(policies: Policies, start: Start, time: u64, disk: Disk) -> Self {
        let now = now_at(time, time);
        let mut engine = Engine::new(Settings::default(), policies, start, &now);
        let key = FlowKey::to(Destination::isp("google"));
        let flow = engine.open_flow(&now, key, &mut Vec::new());
        let mut bench = Self {
            engine,
            flow,
            time,
            booted: time,
            disk,
            commit: MILLI,
            fails: false,
            appended: VecDeque::new(),
            reply: said(250, None),
            sent: Vec::new(),
            dead: Vec::new(),
            records: 0,
            deferrals: 0,
            recovered_at: None,
            unanswered: Vec::new(),
            answers: true,
        };
        let mut account = AccountSpec::new("main");
        account.sessions = Sessions::slots(20_000);
        bench.step(Event::AccountChanged {
            account: Box::new(account),
        });
        let count = bench.disk.ready.len() as u32;
        bench.step(Event::Due { flow, count });
        bench
    }

    /// The process dies; what is durable goes on after `down`.
    fn crash(self, policies: Policies, down: u64) -> Self {
        self.crash_into(policies, down, None)
    }

    /// The same, after which counts of limits are lost.
    fn crash_into(self, policies: Policies, down: u64, counts_lost_at: Option<Wall>) -> Self {
        let start = Start::Again {
            counts_lost_at,
            limits: self.disk.limits.clone(),
            holds: self.disk.holds.clone(),
            adapted: self.disk.adapted.clone(),
            downtime: Nanos(self.time + down - self.disk.last_record),
        };
        Self::start(policies, start, self.time + down, self.disk)
    }

    fn now(&self) -> Now {
        now_at(self.time, self.booted)
    }

    fn queue(&mut self, heads: impl IntoIterator<Item = Head>) {
        let before = self.disk.ready.len();
        for head in heads {
            self.disk.heads.insert(head.seq, head);
            self.disk.ready.push_back(head);
        }
        let (flow, count) = (self.flow, (self.disk.ready.len() - before) as u32);
        self.step(Event::Accepted { flow, count });
    }

    fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        loop {
            let event = match events.pop_front() {
                Some(event) => event,
                None if self.engine.next_wake() <= self.now().mono => Event::Woke,
                None => break,
            };
            let (now, mut actions) = (self.now(), Vec::new());
            self.engine.step(&now, event, &mut actions);
            for action in actions {
                self.carry_out(action, &mut events);
            }
        }
    }

    fn carry_out(&mut self, action: Action, events: &mut VecDeque<Event>) {
        match action {
            Action::Page { flow, max } => {
                let count = (max as usize).min(self.disk.ready.len());
                let heads = self.disk.ready.drain(..count).collect();
                events.push_back(Event::Paged { flow, heads });
            }
            Action::Append { no, record } => {
                self.records += 1;
                if let Record::Cancelled { through, .. } = &record {
                    self.disk.ready.retain(|head| head.seq > *through);
                }
                self.deferrals += usize::from(matches!(record, Record::Deferral { .. }));
                self.appended
                    .push_back((self.time + self.commit, no, record));
            }
            Action::OpenSession { session, .. } => {
                events.push_back(Event::SessionReady { session });
            }
            Action::Deliver(delivery) => {
                self.sent.push((self.time, delivery.head));
                if self.answers {
                    events.push_back(self.answer(delivery.permit));
                } else {
                    self.unanswered.push(delivery.permit);
                }
            }
            Action::Alert {
                alert: Alert::StoreRecovered,
            } => self.recovered_at = Some(self.time),
            _ => {}
        }
    }

    fn answer(&self, permit: PermitId) -> Event {
        Event::Replied {
            permit,
            reply: self.reply.clone(),
            session_lives: true,
        }
    }

    /// Lets time pass: commits, due times, timers.
    fn run_until(&mut self, end: u64) {
        loop {
            let committed = self.appended.front().map_or(u64::MAX, |(at, ..)| *at);
            let due = self.disk.later.iter().map(|(at, _)| *at).min();
            let due = due.map_or(u64::MAX, |at| (at.0 - NEW_YEAR).max(0) as u64);
            let wake = self.engine.next_wake();
            let wake = match wake {
                Mono::NEVER => u64::MAX,
                at => at.0 + self.booted - 1,
            };
            let next = committed.min(due).min(wake).max(self.time);
            if next > end {
                self.time = end;
                return;
            }
            self.time = next;
            if committed <= next {
                self.commit_group();
            } else if due <= next {
                self.ripen();
            } else {
                self.step(Event::Woke);
            }
        }
    }

    /// All that waits for the disk gets there together, or not at all.
    fn commit_group(&mut self) {
        let group: Vec<_> = self.appended.drain(..).collect();
        let through = group.last().map(|(_, no, _)| *no).unwrap();
        if self.fails {
            self.step(Event::CommitFailed { through });
            return;
        }
        for (_, _, record) in group {
            self.write(record);
        }
        self.disk.last_record = self.time;
        self.step(Event::Committed { through });
    }

    fn write(&mut self, record: Record) {
        match record {
            Record::Deferral {
                seq,
                until,
                attempt,
                ..
            } => {
                let head = self.disk.heads.get_mut(&seq).unwrap();
                if let Some(attempt) = attempt {
                    head.attempts = attempt.attempts;
                    head.uncertain = attempt.uncertain;
                    head.first_attempt_at = attempt.first_attempt_at;
                }
                self.disk.later.push((until, *head));
            }
            Record::Dead { seq, letter, .. } => self.dead.push((seq, letter.cause)),
            Record::Reservation { key, saved, block } => {
                let reserved_since = u64::from(block);
                let known = SavedLimit {
                    saved,
                    reserved_since,
                };
                self.disk.limits.insert((*key).clone(), known);
            }
            Record::Forgotten { key } => {
                self.disk.limits.remove(&*key);
            }
            Record::Held { key, hold } => {
                self.disk.holds.insert((*key).clone(), hold);
            }
            Record::Adapted { key, lore } => {
                self.disk.adapted.insert((*key).clone(), *lore);
            }
            _ => {}
        }
    }

    fn ripen(&mut self) {
        let wall = self.now().wall;
        let all = std::mem::take(&mut self.disk.later);
        let (due, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|(at, _)| *at <= wall);
        self.disk.later = later;
        let count = due.len() as u32;
        self.disk
            .ready
            .extend(due.into_iter().map(|(_, head)| head));
        let flow = self.flow;
        self.step(Event::Due { flow, count });
    }

    fn times(&self) -> Vec<u64> {
        self.sent.iter().map(|(time, _)| *time).collect()
    }
}

/// The monotonic clock starts anew with each life, the wall clock does not.
fn now_at(time: u64, booted: u64) -> Now {
    Now {
        mono: Mono(time - booted + 1),
        wall: Wall(NEW_YEAR) + Nanos(time),
        entropy: Entropy(7),
    }
}

/// A message whose number says all: recipient in millions, cost in hundreds of
/// thousands.
fn message(number: u64) -> Head {
    Head {
        recipient: Recipient(number / 1_000_000),
        cost: (number / 100_000 % 10).max(1) as u32,
        ..Head::new(Seq(number), Wall(NEW_YEAR))
    }
}

fn to(recipient: u64, count: u64) -> impl Iterator<Item = Head> {
    (1..=count).map(move |number| message(recipient * 1_000_000 + number))
}

/// No stretch of `window` holds more than `most`.
fn holds(times: &[u64], window: u64, most: usize) {
    for (index, first) in times.iter().enumerate() {
        let inside = times[index..].iter().filter(|at| **at < first + window);
        assert!(inside.count() <= most, "more than {most} from {first} on");
    }
}

#[test]
fn three_a_day_to_each_recipient_and_no_more() {
    let mut bench = Bench::new(policies(("recipient", "*"), &["3/day"]));
    bench.queue(to(1, 10));
    bench.queue(to(2, 2));
    bench.run_until(DAY - 1);
    let of = |bench: &Bench, recipient| {
        let sent = bench.sent.iter();
        let sent = sent.filter(|(_, head)| head.recipient == Recipient(recipient));
        sent.map(|(time, _)| *time).collect::<Vec<_>>()
    };
    assert_eq!((of(&bench, 1).len(), of(&bench, 2).len()), (3, 2));
    assert!(
        of(&bench, 2).iter().all(|time| *time < SECOND),
        "{:?}",
        bench.times()
    );
    assert!(bench.records < 100, "{} records", bench.records);
    bench.run_until(5 * DAY);
    holds(&of(&bench, 1), DAY, 3);
    assert_eq!(of(&bench, 1).len(), 10);
    assert!(bench.records < 120, "{} records", bench.records);
}

#[test]
fn a_recipients_limit_of_each_kind_holds_and_is_used() {
    for (text, window, most, by) in [
        // Three in the evening of a day, and three in the morning of the next.
        ("3/day@UTC", DAY, 6, 4 * DAY),
        ("6/min burst 2", 10 * SECOND + 1, 3, 2 * 60 * SECOND),
        ("1/min spaced", 60 * SECOND, 1, 11 * 60 * SECOND),
        ("2/s burst 2", SECOND / 2, 2, 6 * SECOND),
    ] {
        let mut bench = Bench::new(policies(("recipient", "*"), &[text]));
        bench.queue(to(1, 10));
        bench.run_until(by);
        assert_eq!(bench.sent.len(), 10, "{text}: {:?}", bench.times());
        holds(&bench.times(), window, most);
        assert!(
            bench.deferrals <= 40,
            "{text}: {} deferrals",
            bench.deferrals
        );
    }
}

#[test]
fn a_restart_forgets_no_recipient() {
    for (text, gap) in [("3/day", DAY), ("1/min spaced", 60 * SECOND)] {
        let rules = || policies(("recipient", "*"), &[text]);
        let mut bench = Bench::new(rules());
        bench.queue(to(1, 3));
        bench.run_until(2 * SECOND);
        let before = bench.sent.len();
        assert!(before > 0);
        let mut bench = bench.crash(rules(), SECOND);
        bench.queue(to(1, 2));
        bench.run_until(gap);
        assert_eq!(bench.sent.len(), 0, "{text}: none before its time");
        bench.run_until(3 * gap);
        assert!(!bench.sent.is_empty(), "{text}: but then");
    }
    // A send whose reservation is not durable is not made.
    let mut bench = Bench::new(policies(("recipient", "*"), &["3/day"]));
    bench.commit = 10 * SECOND;
    bench.queue(to(1, 1));
    bench.run_until(9 * SECOND);
    assert!(bench.sent.is_empty());
    bench.run_until(25 * SECOND);
    assert_eq!(bench.sent.len(), 1);
}

/// A store that was salvaged may lack the reservations of limits.
#[test]
fn what_was_counted_and_lost_counts_as_used_up() {
    let of_recipients = ("recipient", "*");
    let of_a_destination = ("destination", "isp:google");
    let cases = [
        ("2/h", 3_600 * SECOND, of_recipients),
        ("2/h", 3_600 * SECOND, of_a_destination),
        ("2/day@UTC", DAY, of_recipients),
        ("2/day@UTC", DAY, of_a_destination),
    ];
    for (text, window, matches) in cases {
        let rules = || {
            let mut rules = policies(matches, &[text]);
            rules.set_headroom(Headroom::default());
            rules
        };
        let mut bench = Bench::new(rules());
        bench.queue(to(1, 2));
        bench.run_until(2 * SECOND);
        assert_eq!(bench.sent.len(), 2, "{text} {matches:?}");
        bench.disk.limits.clear();
        let lost_at = bench.now().wall;
        let mut bench = bench.crash_into(rules(), SECOND, Some(lost_at));
        // A calendar's window ends when it ends, others by the start at last.
        let ends = if window == DAY {
            DAY
        } else {
            bench.time + window
        };
        bench.queue((3..=7).map(|number| message(1_000_000 + number)));
        bench.run_until(ends - 1);
        assert_eq!(bench.sent.len(), 0, "{text}: a quota is spent once");
        if window == DAY {
            for (day, sent) in [(1, 2), (2, 4), (3, 5)] {
                bench.run_until(day * DAY + SECOND);
                assert_eq!(bench.sent.len(), sent, "{matches:?}: {:?}", bench.times());
            }
        } else {
            bench.run_until(ends + 2 * window + SECOND);
            assert_eq!(bench.sent.len(), 5, "{matches:?}: {:?}", bench.times());
            holds(&bench.times(), window, 2);
        }
        assert!(bench.deferrals <= 25, "{} deferrals", bench.deferrals);
        // Once it is over it counts for nothing, whoever starts again.
        assert!(!bench.disk.limits.is_empty());
        bench.disk.limits.clear();
        let mut bench = bench.crash_into(rules(), 2 * window, Some(lost_at));
        bench.queue(to(2, 1));
        bench.run_until(bench.time + 10 * SECOND);
        assert!(!bench.sent.is_empty(), "{text} {matches:?}");
    }
}

/// A quota of the calendar lets as many pass as it has when its window begins,
/// and however many wait for it, each looks about once in a window.
#[test]
fn a_recipients_day_is_used_from_its_first_moment() {
    let mut rules = policies(("recipient", "*"), &["2/day@UTC"]);
    rules.set_headroom(Headroom::default());
    let mut bench = Bench::new(rules);
    bench.queue(to(1, 40));
    for day in 0..20 {
        bench.run_until(day * DAY + SECOND);
        let due = 2 * (day as usize + 1);
        assert_eq!(bench.sent.len(), due, "{:?}", bench.times());
    }
    holds(&bench.times(), DAY, 2);
    assert!(bench.deferrals <= 2 * 20 * 40, "{}", bench.deferrals);
    // What is kept for classes above comes free when the day is nearly over.
    let mut bench = Bench::new(policies(("recipient", "*"), &["2/day@UTC"]));
    bench.queue(to(1, 6));
    for day in 0..3 {
        bench.run_until(day * DAY + SECOND);
        assert_eq!(
            bench.sent.len(),
            2 * day as usize + 1,
            "{:?}",
            bench.times()
        );
        bench.run_until((day + 1) * DAY - 60 * SECOND);
        assert_eq!(
            bench.sent.len(),
            2 * day as usize + 2,
            "{:?}",
            bench.times()
        );
    }
}

#[test]
fn damaged_content_ends_a_message_and_says_nothing_of_anybody() {
    let mut bench = Bench::new(Policies::default());
    bench.reply = Reply::Damaged {
        text: "it does not hold".into(),
    };
    bench.queue(to(1, 40));
    bench.run_until(SECOND);
    let all = bench.dead.iter();
    assert!(
        all.clone()
            .all(|(_, cause)| *cause == DeathCause::StorageDamaged)
    );
    assert_eq!(
        (bench.dead.len(), bench.sent.len()),
        (40, 40),
        "each was tried once"
    );
    assert_eq!(bench.deferrals, 0);
    // Neither the account nor the destination is held for that.
    bench.reply = said(250, None);
    bench.queue(to(2, 20));
    bench.run_until(2 * SECOND);
    assert_eq!((bench.sent.len(), bench.dead.len()), (60, 40));
    assert!(bench.disk.holds.is_empty());
}

#[test]
fn an_idle_recipient_is_forgotten_also_on_disk() {
    let rules = || policies(("recipient", "*"), &["2/min"]);
    let mut bench = Bench::new(rules());
    bench.queue((1..=50).flat_map(|recipient| to(recipient, 1)));
    bench.run_until(SECOND);
    assert_eq!((bench.sent.len(), bench.engine.gauges().limits), (50, 50));
    assert_eq!(bench.disk.limits.len(), 50);
    // Half are forgotten by this life, the rest by the next one.
    let mut bench = bench.crash(rules(), SECOND);
    bench.run_until(bench.time + 180 * SECOND);
    bench.queue((100..150).flat_map(|recipient| to(recipient, 1)));
    bench.run_until(bench.time + 180 * SECOND);
    bench.queue((200..250).flat_map(|recipient| to(recipient, 1)));
    bench.run_until(bench.time + SECOND);
    let known = bench.engine.gauges().limits;
    assert!(known <= 60, "{known} limits are known");
    assert!(
        bench.disk.limits.len() <= 60,
        "{} on disk",
        bench.disk.limits.len()
    );
}

#[test]
fn another_rate_reaches_a_recipient_at_once() {
    let mut bench = Bench::new(policies(("recipient", "*"), &["3/day"]));
    bench.queue(to(1, 3));
    bench.run_until(SECOND);
    assert_eq!(bench.sent.len(), 3);
    bench.step(Event::PolicyChanged {
        policies: Box::new(policies(("recipient", "*"), &["5/day"])),
    });
    bench.queue((10..20).map(|number| message(1_000_000 + number)));
    bench.run_until(DAY / 2);
    assert_eq!(bench.sent.len(), 5);
}

#[test]
fn a_cost_above_a_recipients_limit_is_refused_for_good() {
    let mut bench = Bench::new(policies(("recipient", "*"), &["3/day"]));
    bench.queue([message(1_400_001), message(1_300_002)]);
    bench.run_until(SECOND);
    assert_eq!(bench.dead, [(Seq(1_400_001), DeathCause::TooLarge)]);
    assert_eq!(bench.sent.len(), 1);
    // A limit that was lowered refuses those that wait at the head, too.
    let mut bench = Bench::new(policies(("recipient", "*"), &["3/day"]));
    bench.queue([message(1_300_001), message(1_300_002)]);
    bench.run_until(SECOND);
    bench.step(Event::PolicyChanged {
        policies: Box::new(policies(("recipient", "*"), &["2/day"])),
    });
    bench.run_until(3 * DAY);
    assert_eq!(bench.dead, [(Seq(1_300_002), DeathCause::TooLarge)]);
}

#[test]
fn slots_per_recipient_are_refused_when_they_are_written() {
    let mut policy = Policy::new(Match::from_pairs([("recipient", "*")]).unwrap());
    policy.concurrency = Some(2);
    let error = policy.check().unwrap_err().to_string();
    assert!(error.contains("in flight to one recipient"), "{error}");
    policy.concurrency = None;
    policy.limits = vec![LimitSpec::parse("2 concurrent").unwrap()];
    assert!(policy.check().is_err());
}

#[test]
fn refused_retries_wait_for_turns_of_their_own() {
    let mut bench = Bench::new(Policies::default());
    bench.reply = said(451, None);
    let retries = 2_000;
    bench.queue(to(1, retries).map(|head| Head {
        attempts: 1,
        first_attempt_at: Wall(NEW_YEAR),
        ..head
    }));
    // Ten a minute are let through, and ten were saved up.
    bench.run_until(60 * SECOND);
    assert!(
        (10..=20).contains(&bench.sent.len()),
        "{}",
        bench.sent.len()
    );
    let first = bench.deferrals;
    assert!(
        first as u64 <= retries + 30,
        "{first} deferrals in a minute"
    );
    bench.run_until(3_600 * SECOND);
    let sent = bench.sent.len();
    assert!((590..=620).contains(&sent), "{sent} of the floor's 610");
    let more = bench.deferrals - first - sent;
    assert!((more as u64) < 3 * retries, "{more} deferrals in an hour");
}

#[test]
fn a_store_that_recovers_is_caught_up_with_at_once() {
    let mut bench = Bench::new(Policies::default());
    bench.answers = false;
    bench.queue(to(1, 10_000));
    bench.run_until(SECOND);
    assert_eq!(bench.unanswered.len(), 10_000);
    bench.fails = true;
    for permit in std::mem::take(&mut bench.unanswered) {
        let answer = bench.answer(permit);
        bench.step(answer);
    }
    bench.run_until(600 * SECOND);
    assert_eq!(bench.engine.gauges().unconfirmed, 10_000);
    bench.fails = false;
    bench.run_until(620 * SECOND);
    let recovered_at = bench.recovered_at.expect("the store takes records again");
    // One pause of at most five seconds, then a commit for each 512.
    assert!(recovered_at <= 605 * SECOND + 30 * MILLI, "{recovered_at}");
    assert_eq!(bench.engine.gauges().unconfirmed, 0);
}

#[test]
fn what_expires_while_the_store_fails_is_settled_afterwards() {
    let mut bench = Bench::new(Policies::default());
    bench.fails = true;
    let flow = bench.flow;
    let expired = |from: u64| Event::Expired {
        flow,
        seqs: (from..from + 1_000).map(Seq).collect(),
        held: false,
    };
    bench.step(expired(1));
    bench.run_until(60 * SECOND);
    for from in 1..100 {
        bench.step(expired(from * 1_000 + 1));
    }
    bench.run_until(120 * SECOND);
    assert_eq!(bench.engine.gauges().unconfirmed, 100_000);
    bench.fails = false;
    let before = bench.records;
    bench.run_until(130 * SECOND);
    assert_eq!(bench.engine.gauges().unconfirmed, 0);
    assert_eq!(bench.records - before, 100_000, "each once");
}

/// A store that fails has not heard of what was cancelled meanwhile, and would
/// hand it over if it were asked for more.
#[test]
fn what_is_cancelled_while_the_store_fails_is_not_sent() {
    let mut bench = Bench::new(Policies::default());
    bench.fails = true;
    let (flow, seqs) = (bench.flow, vec![Seq(1_000)]);
    let held = false;
    bench.step(Event::Expired { flow, seqs, held });
    bench.run_until(SECOND);
    bench.queue((1..=200).map(message));
    let cancel = Command::CancelAll {
        matches: Match::from_pairs([("isp", "google")]).unwrap(),
        through: Seq(200),
    };
    bench.step(Event::Command(cancel));
    bench.queue((201..=300).map(message));
    bench.fails = false;
    bench.run_until(60 * SECOND);
    let sent: Vec<u64> = bench.sent.iter().map(|(_, head)| head.seq.0).collect();
    assert_eq!(sent, (201..=300).collect::<Vec<_>>());
}

#[test]
fn lost_answers_are_bounded_over_a_crash() {
    let mut bench = Bench::new(Policies::default());
    bench.reply = Reply::Uncertain;
    bench.queue(to(1, 1));
    bench.run_until(SECOND);
    let before = bench.sent.len();
    assert_eq!((before, bench.dead.len()), (1, 0));
    let mut bench = bench.crash(Policies::default(), 10 * SECOND);
    bench.reply = Reply::Uncertain;
    bench.run_until(5 * DAY);
    let copies = before + bench.sent.len();
    assert_eq!(copies, 3, "{:?}", bench.times());
    assert_eq!(bench.dead, [(Seq(1_000_001), DeathCause::Uncertain)]);
}

#[test]
fn a_block_by_the_far_end_outlives_a_restart() {
    let mut bench = Bench::new(Policies::default());
    bench.reply = said(429, Some(Nanos::from_secs(600)));
    bench.queue(to(1, 1));
    bench.run_until(SECOND);
    assert_eq!(bench.sent.len(), 1);
    assert_eq!(bench.disk.holds.len(), 1, "it was written down");
    let mut bench = bench.crash(Policies::default(), 10 * SECOND);
    bench.queue(to(2, 1));
    bench.run_until(599 * SECOND);
    assert_eq!(bench.sent.len(), 0, "{:?}", bench.times());
    bench.run_until(610 * SECOND);
    assert_eq!(bench.sent.len(), 2);
}

#[test]
fn bulk_uses_the_whole_day_and_does_not_sleep_at_its_floor() {
    for matches in [("isp", "google"), ("account", "main")] {
        let mut bench = Bench::new(policies(matches, &["1000/day@UTC"]));
        bench.queue(to(1, 1_500));
        bench.run_until(DAY / 2);
        let noon = bench.sent.len();
        assert!((895..=902).contains(&noon), "{matches:?}: {noon} by noon");
        bench.run_until(DAY - 1);
        let sent = bench.sent.len();
        assert!(
            (999..=1_000).contains(&sent),
            "{matches:?}: {sent} of the day"
        );
    }
}

#[test]
fn a_limit_that_comes_to_reserve_goes_on() {
    for matches in [("isp", "google"), ("account", "main")] {
        let mut bench = Bench::new(policies(matches, &["10/s burst 20"]));
        bench.queue(to(1, 10));
        bench.run_until(SECOND);
        assert_eq!(bench.sent.len(), 10);
        let rules = Box::new(policies(matches, &["10/s burst 80"]));
        bench.step(Event::PolicyChanged { policies: rules });
        bench.queue(to(2, 50));
        bench.run_until(20 * SECOND);
        assert_eq!(bench.sent.len(), 60, "{matches:?}");
    }
}

/// How many messages go out when leased tokens arrive 10 ms after they were
/// asked for, while the wall clock moves by `moved` besides.
fn sent_on_lease(moved: i64) -> usize {
    let now = now_at(SECOND, 0);
    let settings = Settings {
        leased: true,
        ..Settings::default()
    };
    let rules = policies(("isp", "google"), &["100/s burst 100"]);
    let mut engine = Engine::new(settings, rules, Start::Fresh, &now);
    let key = FlowKey::to(Destination::isp("google"));
    let flow = engine.open_flow(&now, key, &mut Vec::new());
    let mut account = AccountSpec::new("main");
    account.sessions = Sessions::slots(10);
    let account = Box::new(account);
    let heads = to(1, 5).collect();
    let mut events = VecDeque::from([
        Event::AccountChanged { account },
        Event::Accepted { flow, count: 5 },
        Event::Paged { flow, heads },
    ]);
    let (mut now, mut sent) = (now, 0);
    while let Some(event) = events.pop_front() {
        let mut actions = Vec::new();
        engine.step(&now, event, &mut actions);
        while engine.next_wake() <= now.mono {
            engine.step(&now, Event::Woke, &mut actions);
        }
        for action in actions {
            match action {
                Action::OpenSession { session, .. } => {
                    events.push_front(Event::SessionReady { session });
                }
                // Only the first request is answered.
                Action::Lease(request) if request.no == 1 => {
                    let life = Nanos(300 * MILLI);
                    let (limit, no) = (request.limit, request.no);
                    let answer = LeaseAnswer::Leased {
                        tokens: 5,
                        life,
                        wait: Nanos::ZERO,
                        spacing: Nanos::ZERO,
                        receipt: Receipt::default(),
                        owed: Default::default(),
                    };
                    now = now.at(now.mono + Nanos(10 * MILLI));
                    now.wall.0 += moved;
                    events.push_back(Event::Granted { limit, no, answer });
                }
                Action::Deliver(_) => sent += 1,
                _ => {}
            }
        }
    }
    sent
}

#[test]
fn a_lease_is_void_if_the_clocks_parted_while_it_was_asked_for() {
    // A quarter of its life, less the millisecond that goes unnoticed.
    let quarter = 74 * MILLI as i64;
    assert_eq!([0, quarter, -quarter].map(sent_on_lease), [5, 5, 5]);
    let parted = [quarter + 1, -quarter - 1, 3_600 * SECOND as i64];
    assert_eq!(parted.map(sent_on_lease), [0, 0, 0]);
}
