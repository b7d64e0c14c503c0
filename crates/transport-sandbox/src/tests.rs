//! The sandbox keeps the contract of transports, and does as it is told.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::handle::{AccountId, FlowId, PermitId, PoolId, SessionId, SessionRef};
use outflow_core::limit::spec::Rate;
use outflow_core::message::{Head, Seq};
use outflow_core::name::Name;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::conformance::transport::{Harness, exercise};
use outflow_ports::transport::{Transport, TransportWork};

use crate::{Answer, Behaviour, Failure, HiddenRate, Latency, Sandbox, Settings};

const SESSION: SessionRef = SessionRef {
    pool: PoolId(0),
    session: SessionId(0),
};

/// A sandbox in virtual time, with an account of request slots.
struct Bench {
    sandbox: Sandbox,
    mono: Mono,
    account: AccountSpec,
    sent: u32,
}

impl Bench {
    fn new(behaviour: Behaviour) -> Self {
        Self::with_seed(behaviour, 7)
    }

    fn with_seed(behaviour: Behaviour, seed: u64) -> Self {
        let settings = Settings { seed, kept_max: 10 };
        let sandbox = Sandbox::new(settings);
        sandbox.handle().set(&Name::from("a"), behaviour);
        let mut account = AccountSpec::new("a");
        account.sessions = Sessions::slots(100);
        Self {
            sandbox,
            mono: Mono(0),
            account,
            sent: 0,
        }
    }

    fn send(&mut self) -> PermitId {
        let now = self.now();
        self.sent += 1;
        let permit = PermitId {
            index: self.sent,
            generation: 0,
        };
        let delivery = Delivery {
            permit,
            session: SESSION,
            account: AccountId(0),
            flow: FlowId(0),
            head: Head::new(Seq(u64::from(self.sent)), now.wall),
        };
        let work = TransportWork::Deliver {
            delivery,
            parcel: None,
            account: &self.account,
            destination: &Destination::isp("somewhere"),
        };
        self.sandbox.submit(&now, work);
        permit
    }

    /// Sends one and waits for its answer: when it came, and what it was.
    fn ask(&mut self) -> (Nanos, Reply, bool) {
        let start = self.mono;
        self.send();
        self.mono = self.sandbox.next_completion().max(self.mono);
        let mut done = Vec::new();
        self.sandbox.complete(&self.now(), &mut done);
        match done.pop() {
            Some(Event::Replied {
                reply,
                session_lives,
                ..
            }) => (self.mono.since(start), reply, session_lives),
            other => panic!("{other:?} is no reply"),
        }
    }

    fn codes(&mut self, count: usize) -> Vec<u16> {
        let code = |reply| match reply {
            Reply::Said { code, .. } => code,
            _ => 0,
        };
        (0..count).map(|_| code(self.ask().1)).collect()
    }
}

impl Harness for Bench {
    type Transport = Sandbox;

    fn transport(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }

    fn now(&self) -> Now {
        Now {
            mono: self.mono,
            wall: Wall(0) + Nanos(self.mono.0),
            entropy: Entropy(0),
        }
    }

    fn advance(&mut self, to: Mono) {
        self.mono = self.mono.max(to);
    }

    fn account(&self) -> AccountSpec {
        AccountSpec::new("a")
    }

    fn destination(&self) -> Destination {
        Destination::isp("somewhere")
    }
}

fn failing(permille: u16, answer: Answer) -> Behaviour {
    Behaviour {
        failures: vec![Failure { permille, answer }],
        ..Behaviour::default()
    }
}

#[test]
fn it_keeps_the_contract_however_it_behaves() {
    let latency = Latency {
        p50: Nanos::from_millis(20),
        p99: Nanos::from_millis(300),
    };
    let silence = Answer::Silence {
        after: Nanos::from_secs(60),
    };
    let flaky = Behaviour {
        latency,
        open_time: Nanos::from_millis(50),
        open_failures: 300,
        ..failing(300, silence)
    };
    for behaviour in [
        Behaviour::default(),
        flaky,
        failing(1_000, Answer::too_many_mails()),
        failing(
            1_000,
            Answer::Network {
                text: "gone".into(),
            },
        ),
    ] {
        exercise(|| Bench::new(behaviour.clone()));
    }
}

#[test]
fn what_it_takes_says_sandbox_and_is_kept() {
    let mut bench = Bench::new(Behaviour::default());
    let (after, reply, lives) = bench.ask();
    assert_eq!((after, lives), (Nanos::ZERO, true));
    assert!(reply.is_accepted());
    assert!(matches!(reply, Reply::Said { text, .. } if text.contains("sandbox")));
    for _ in 0..11 {
        bench.ask();
    }
    let handle = bench.sandbox.handle();
    let last: Vec<u64> = handle.last(100).iter().map(|kept| kept.seq.0).collect();
    assert_eq!(last, (3..=12).rev().collect::<Vec<_>>(), "the last ten");
    let kept = handle.find(Seq(12)).unwrap();
    assert_eq!(kept.account, Name::from("a"));
    assert_eq!(kept.destination, Destination::isp("somewhere"));
    assert!(handle.find(Seq(1)).is_none());
    assert_eq!(handle.counts()[&Name::from("a")].taken, 12);
}

#[test]
fn answers_take_as_long_as_they_are_told() {
    let latency = Latency {
        p50: Nanos::from_millis(100),
        p99: Nanos::from_millis(900),
    };
    let mut bench = Bench::new(Behaviour {
        latency,
        ..Behaviour::default()
    });
    let mut times: Vec<u64> = (0..2_000).map(|_| bench.ask().0.0 / 1_000_000).collect();
    times.sort_unstable();
    let (p50, p99) = (times[1_000], times[1_980]);
    assert!((90..=115).contains(&p50), "{p50} ms");
    assert!((850..=1_100).contains(&p99), "{p99} ms");
}

#[test]
fn a_share_fails_as_it_is_told_and_a_change_holds_at_once() {
    let mut bench = Bench::new(failing(250, Answer::no_such_user()));
    let codes = bench.codes(2_000);
    let failed = codes.iter().filter(|&&code| code == 550).count();
    assert!((420..=580).contains(&failed), "{failed} of 2000");
    assert_eq!(codes.len() - failed, {
        codes.iter().filter(|&&code| code == 250).count()
    });
    let handle = bench.sandbox.handle();
    let counts = handle.counts()[&Name::from("a")];
    assert_eq!(
        (counts.failed, counts.taken),
        (failed as u64, (2_000 - failed) as u64)
    );
    handle.set(&Name::from("a"), Behaviour::default());
    assert!(bench.codes(100).iter().all(|&code| code == 250));
}

#[test]
fn one_seed_one_run() {
    let run = |seed| Bench::with_seed(failing(500, Answer::out_of_order()), seed).codes(200);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn above_the_hidden_rate_it_refuses_and_says_for_how_long() {
    let wait = Some(Nanos::from_secs(30));
    let mut bench = Bench::new(Behaviour {
        hidden_rate: Some(HiddenRate {
            rate: Rate::per_second(2),
            burst: 3,
            answer: Answer::too_many_requests(wait),
        }),
        ..Behaviour::default()
    });
    assert_eq!(bench.codes(5), [250, 250, 250, 429, 429]);
    let (_, reply, lives) = bench.ask();
    assert!(lives, "a slot of an API is there again");
    assert!(matches!(reply, Reply::Said { retry_after, .. } if retry_after == wait));
    bench.advance(bench.mono + Nanos::from_secs(1));
    assert_eq!(bench.codes(3), [250, 250, 429]);
    let counts = bench.sandbox.handle().counts()[&Name::from("a")];
    assert_eq!((counts.taken, counts.throttled), (5, 4));
}

#[test]
fn it_says_of_limits_what_its_headers_say() {
    let headers = [
        ("RateLimit-Policy", "5;w=1"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "7"),
        ("Retry-After", "9"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut bench = Bench::new(Behaviour {
        headers: headers.to_vec(),
        ..failing(500, Answer::too_many_requests(None))
    });
    let replies: Vec<Reply> = (0..50).map(|_| bench.ask().1).collect();
    let (mut taken, mut refused) = (0, 0);
    for reply in replies {
        let Reply::Said {
            code,
            retry_after,
            allows,
            ..
        } = reply
        else {
            panic!("{reply:?}")
        };
        let allows = allows.expect("it says so");
        assert_eq!(allows.rate, Some(Rate::per_second(5)));
        let left = allows.left.expect("it says so");
        assert_eq!((left.count, left.resets_in), (0, Nanos::from_secs(7)));
        let wait = (code == 429).then(|| Nanos::from_secs(9));
        assert_eq!(retry_after, wait, "who takes a message asks for no wait");
        (taken, refused) = match code {
            429 => (taken, refused + 1),
            _ => (taken + 1, refused),
        };
    }
    assert!(taken > 0 && refused > 0);
}

#[test]
fn a_connection_is_over_after_421() {
    let mut bench = Bench::new(failing(1_000, Answer::too_many_mails()));
    bench.account.sessions = Sessions::default();
    let now = bench.now();
    let open = TransportWork::Open {
        session: SESSION,
        account: &bench.account,
        destination: &Destination::isp("somewhere"),
    };
    bench.sandbox.submit(&now, open);
    let mut done = Vec::new();
    bench.sandbox.complete(&now, &mut done);
    assert!(matches!(done.as_slice(), [Event::SessionReady { .. }]));
    let (_, reply, lives) = bench.ask();
    assert!(matches!(
        reply,
        Reply::Said {
            code: 421,
            enhanced: Some(_),
            ..
        }
    ));
    assert!(!lives);
    let (_, reply, lives) = bench.ask();
    assert!(matches!(
        reply,
        Reply::Network {
            stage: Stage::Connect,
            ..
        }
    ));
    assert!(!lives);
}

#[test]
fn nobody_answers_for_as_long_as_is_told() {
    let after = Nanos::from_secs(45);
    let mut bench = Bench::new(failing(1_000, Answer::Silence { after }));
    let (waited, reply, _) = bench.ask();
    assert_eq!((waited, reply), (after, Reply::Uncertain));
}
