//! What a node tells of itself is what happened: each acceptance, attempt and
//! settlement once, also when commits fail and are made again, when answers
//! come twice and when none comes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::engine;
use outflow_core::engine::action::Alert;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Recipient, Seq, State};
use outflow_core::name::Name;
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_pipeline::shutdown::Phase;
use outflow_pipeline::{Node, Ports};
use outflow_ports::intake::Submission;
use outflow_ports::resolver::Resolver;
use outflow_ports::transport::{Transport, TransportWork};
use outflow_simulator::memory::ledger::Settings as LedgerSettings;
use outflow_simulator::memory::ledger::{LinkFaults, MemoryLedger, WorldClock};
use outflow_simulator::memory::store::{Faults, MemoryStore, Settings};
use outflow_simulator::memory::window::Window;
use outflow_telemetry::catalogue::{AttemptOutcome, Event as Told};
use outflow_telemetry::{Metrics, Sink, Sinks, Snapshot};

const MESSAGES: u64 = 600;
const LATENCY: Nanos = Nanos::from_millis(5);
const STEP: Nanos = Nanos::from_millis(1);

/// What the far end makes of an attempt: most messages are taken at once, some
/// later, some never, and some answers get lost or come twice.
fn fate(seq: Seq, attempt: u16) -> (AttemptOutcome, Vec<Reply>) {
    match (seq.0 % 10, attempt) {
        (1, _) => {
            let reply = Reply::said(
                Stage::Recipient,
                550,
                "5.1.1 <bob@example.com>: no such user",
            );
            (AttemptOutcome::Bounced, vec![reply])
        }
        (2, 1) => {
            let reply = Reply::said(Stage::Data, 451, "4.3.0 later");
            (AttemptOutcome::Deferred, vec![reply])
        }
        (3, 1) => (AttemptOutcome::Uncertain, Vec::new()),
        (4, _) => (AttemptOutcome::Delivered, vec![Reply::accepted(); 2]),
        _ => (AttemptOutcome::Delivered, vec![Reply::accepted()]),
    }
}

type Attempts = BTreeMap<(Seq, u16), Vec<AttemptOutcome>>;

#[derive(Default)]
struct FarEnd {
    coming: BTreeMap<(Mono, usize), Event>,
    count: usize,
    attempts: Attempts,
}

impl Transport for FarEnd {
    fn submit(&mut self, now: &Now, work: TransportWork<'_>) {
        let TransportWork::Deliver { delivery, .. } = work else {
            panic!("slots need no sessions");
        };
        let (seq, attempt) = (delivery.head.seq, delivery.head.attempts + 1);
        let (outcome, replies) = fate(seq, attempt);
        self.attempts
            .entry((seq, attempt))
            .or_default()
            .push(outcome);
        for reply in replies {
            self.count += 1;
            let event = Event::Replied {
                permit: delivery.permit,
                reply,
                session_lives: true,
            };
            self.coming.insert((now.mono + LATENCY, self.count), event);
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        while let Some(first) = self.coming.first_entry() {
            if first.key().0 > now.mono {
                break;
            }
            done.push(first.remove());
        }
    }

    fn next_completion(&self) -> Mono {
        let first = self.coming.first_key_value();
        first.map_or(Mono::NEVER, |(key, _)| key.0)
    }
}

struct Nobody;

impl Resolver for Nobody {
    fn submit(&mut self, _: &Now, _: Name) {}

    fn complete(&mut self, _: &Now, _: &mut Vec<Event>) {}

    fn next_completion(&self) -> Mono {
        Mono::NEVER
    }
}

/// Passes on what it is told.
#[derive(Debug)]
struct Tape(Sender<Heard>);

/// What a tape passes on.
#[derive(Debug)]
enum Heard {
    Accepted(Class, u32),
    Attempted((Seq, u16), AttemptOutcome),
    Settled(Seq, State),
    Deferred,
    Alert(Alert),
    End(&'static str),
}

impl Sink for Tape {
    fn emit(&self, event: &Told<'_>) {
        let heard = match event {
            Told::Started(started) => {
                assert!(started.fresh);
                return;
            }
            Told::Accepted { class, count, .. } => Heard::Accepted(*class, *count),
            Told::Attempted(attempt) => {
                assert_eq!(attempt.account, Some("main"));
                if attempt.outcome == AttemptOutcome::Uncertain {
                    assert!(attempt.duration >= Nanos::from_secs(30));
                    assert_eq!(attempt.code, None);
                } else {
                    assert!(attempt.duration >= LATENCY && attempt.duration < LATENCY.times(2));
                    assert!(attempt.code.is_some() && attempt.enhanced.is_some());
                }
                Heard::Attempted((attempt.message.seq(), attempt.attempt), attempt.outcome)
            }
            Told::Settled(settled) => Heard::Settled(settled.message.unwrap().seq(), settled.state),
            Told::Deferred { attempted, .. } => {
                assert!(attempted);
                Heard::Deferred
            }
            Told::Alert(alert) => Heard::Alert((*alert).clone()),
            Told::Stopping => Heard::End("stopping"),
            Told::Stopped => Heard::End("stopped"),
            _ => return,
        };
        self.0.send(heard).unwrap();
    }
}

#[derive(Debug, Default)]
struct Written {
    accepted: [u64; Class::COUNT],
    attempts: Attempts,
    settled: BTreeMap<Seq, Vec<State>>,
    deferred: u64,
    failing: u64,
    recovered: u64,
    lost: u64,
    ends: Vec<&'static str>,
}

impl Written {
    fn note(&mut self, heard: Heard) {
        match heard {
            Heard::Accepted(class, count) => self.accepted[class.index()] += u64::from(count),
            Heard::Attempted(key, outcome) => self.attempts.entry(key).or_default().push(outcome),
            Heard::Settled(seq, state) => self.settled.entry(seq).or_default().push(state),
            Heard::Deferred => self.deferred += 1,
            Heard::Alert(Alert::StoreFailing) => self.failing += 1,
            Heard::Alert(Alert::StoreRecovered) => self.recovered += 1,
            Heard::Alert(Alert::WorkerLost { .. }) => self.lost += 1,
            Heard::Alert(Alert::Broken { .. } | Alert::Restored { .. }) => {}
            Heard::Alert(other) => panic!("{other:?}"),
            Heard::End(end) => self.ends.push(end),
        }
    }
}

fn at(mono: Mono) -> Now {
    Now {
        mono,
        wall: Wall(1_700_000_000_000_000_000) + Nanos(mono.0),
        entropy: Entropy(mono.0),
    }
}

fn submission(no: u64) -> Submission {
    let body: Arc<[u8]> = Arc::from(*b"hello");
    Submission {
        key: FlowKey {
            tenant: Name::from(format!("tenant-{}", no % 7)),
            class: Class::ALL[(no % 2) as usize],
            ..FlowKey::to(Destination::isp("example"))
        },
        idempotency_key: Some(Arc::from(format!("key-{no}"))),
        not_before: None,
        expires_at: Wall::NEVER,
        recipient: Recipient(no),
        cost: 1,
        engaged: None,
        envelope: Arc::clone(&body),
        body,
    }
}

#[test]
fn a_node_tells_each_thing_once() {
    let clock = WorldClock::default();
    let ledger = MemoryLedger::new(LedgerSettings::default(), clock.clone());
    let window = |from: u64, until: u64| Window {
        from: Mono(from),
        until: Mono(until),
    };
    let faults = Faults {
        // The first batch is durable; then records fail, twice.
        failing: vec![
            window(4_000_000, 60_000_000),
            window(70_000_000, 400_000_000),
        ],
        ..Faults::default()
    };
    let ports = Ports {
        store: MemoryStore::new(Settings::default(), faults),
        ledger: ledger.link(LinkFaults::default()),
        transport: FarEnd::default(),
        resolver: Nobody,
    };
    let settings = engine::Settings {
        delivery_deadline: Nanos::from_secs(30),
        ..engine::Settings::default()
    };
    let (tape, heard) = channel();
    let tape = Arc::new(Tape(tape));
    let metrics = Arc::new(Metrics::new("0.0.0", Default::default()));
    let sinks = Sinks(vec![metrics.clone(), tape]);
    let mut node = Node::start_observed(
        &at(Mono(0)),
        settings,
        Policies::default(),
        ports,
        Arc::new(sinks),
    );
    node.post(Event::AccountChanged {
        account: Box::new(AccountSpec {
            sessions: Sessions::slots(40),
            ..AccountSpec::new("main")
        }),
    });
    node.submit(&at(Mono(0)), (0..MESSAGES).map(submission).collect())
        .unwrap();
    let (mut now, end) = (Mono(0), Mono(Nanos::from_secs(1_000).0));
    let mut repeated = false;
    while now < end {
        clock.set(now);
        let next = node.turn(&at(now));
        if now > Mono(Nanos::from_secs(1).0) && !repeated {
            // All of them again: their keys are known.
            repeated = true;
            node.submit(&at(now), (0..MESSAGES).map(submission).collect())
                .unwrap();
        }
        // A turn may leave work for the next one, a little later.
        now = next.max(now + STEP).min(end);
    }
    node.shut_down();
    while node.phase() != Phase::Done {
        node.turn(&at(now));
        now = now + STEP;
        assert!(now < end + Nanos::from_secs(60), "the node does not end");
    }

    let mut told = Written::default();
    heard.try_iter().for_each(|heard| told.note(heard));
    assert_eq!(told.accepted, [MESSAGES / 2, MESSAGES / 2, 0, 0]);
    assert_eq!(told.attempts, node.ports().transport.attempts);
    assert_eq!(told.lost, MESSAGES / 10);
    assert_eq!(told.deferred, MESSAGES / 10 * 2, "later, and uncertain");
    assert!(
        told.failing > 0 && told.failing == told.recovered,
        "{told:?}"
    );
    assert_eq!(told.settled.len() as u64, MESSAGES);
    for (seq, states) in &told.settled {
        let state = match seq.0 % 10 {
            1 => State::Bounced,
            _ => State::Delivered,
        };
        assert_eq!(states.as_slice(), [state], "{seq:?}");
    }
    assert_eq!(told.ends, ["stopping", "stopped"]);

    let page = metrics.render(&Snapshot::default());
    for line in [
        r#"outflow_messages_accepted_total{channel="email",class="critical"} 300"#,
        r#"outflow_attempts_total{channel="email",destination="isp:example",outcome="delivered"} 540"#,
        r#"outflow_attempts_total{channel="email",destination="isp:example",outcome="bounced"} 60"#,
        r#"outflow_attempts_total{channel="email",destination="isp:example",outcome="uncertain"} 60"#,
        r#"outflow_deferrals_total{class="low",reason="attempt"} 0"#,
        r#"outflow_store_failing 0"#,
        r#"outflow_alerts_total{alert="worker_lost"} 60"#,
    ] {
        assert!(page.lines().any(|it| it == line), "{line}\n{page}");
    }
}
