//! The cases, and how they speak to a transport.

use std::collections::BTreeMap;

use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::handle::{AccountId, FlowId, PermitId, PoolId, SessionId, SessionRef};
use outflow_core::message::{Head, Seq};
use outflow_core::reply::Reply;
use outflow_core::time::{Mono, Nanos};

use super::{Case, Harness};
use crate::transport::{Transport, TransportWork};

/// Every answer comes within this.
const PATIENCE: Nanos = Nanos::from_secs(120);
/// The longest that is waited between two looks.
const LOOK: Nanos = Nanos::from_millis(50);

/// All cases.
pub fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("an open is answered once", an_open_is_answered_once),
        ("a dead end closes", a_dead_end_closes),
        ("a delivery has one reply", a_delivery_has_one_reply),
        ("closing is not answered", closing_is_not_answered),
        (
            "a closed session still replies",
            a_closed_session_still_replies,
        ),
        (
            "closing in flight still replies",
            closing_in_flight_still_replies,
        ),
        ("what comes was foretold", what_comes_was_foretold),
    ]
}

/// A transport under test and what it said.
struct Bench<H> {
    harness: H,
    account: AccountSpec,
    destination: Destination,
    /// How often each session was called ready, and closed.
    ready: BTreeMap<SessionRef, u32>,
    closed: BTreeMap<SessionRef, u32>,
    replies: BTreeMap<PermitId, Vec<(Reply, bool)>>,
    permits: u32,
}

const fn session(no: u32) -> SessionRef {
    SessionRef {
        pool: PoolId(0),
        session: SessionId(no),
    }
}

impl<H: Harness> Bench<H> {
    fn new(harness: H) -> Self {
        Self {
            account: harness.account(),
            destination: harness.destination(),
            harness,
            ready: BTreeMap::new(),
            closed: BTreeMap::new(),
            replies: BTreeMap::new(),
            permits: 0,
        }
    }

    fn open(&mut self, no: u32) {
        let (now, session) = (self.harness.now(), session(no));
        let work = TransportWork::Open {
            session,
            account: &self.account,
            destination: &self.destination,
        };
        self.harness.transport().submit(&now, work);
    }

    fn close(&mut self, no: u32) {
        let (now, session) = (self.harness.now(), session(no));
        let work = TransportWork::Close { session };
        self.harness.transport().submit(&now, work);
    }

    fn deliver(&mut self, no: u32) -> PermitId {
        self.permits += 1;
        let now = self.harness.now();
        let permit = PermitId {
            index: self.permits,
            generation: 3,
        };
        let work = TransportWork::Deliver {
            parcel: self.harness.parcel(),
            delivery: Delivery {
                permit,
                session: session(no),
                account: AccountId(0),
                flow: FlowId(0),
                head: Head::new(Seq(u64::from(self.permits)), now.wall),
            },
            account: &self.account,
            destination: &self.destination,
        };
        self.harness.transport().submit(&now, work);
        permit
    }

    fn turn(&mut self) {
        let now = self.harness.now();
        let foretold = self.harness.transport().next_completion() <= now.mono;
        let mut done = Vec::new();
        self.harness.transport().complete(&now, &mut done);
        if self.harness.foretells() {
            assert!(foretold || done.is_empty(), "something comes unforetold");
        }
        for event in done {
            match event {
                Event::SessionReady { session } => *self.ready.entry(session).or_default() += 1,
                Event::SessionClosed { session } | Event::SessionRefused { session, .. } => {
                    *self.closed.entry(session).or_default() += 1
                }
                Event::Replied {
                    permit,
                    reply,
                    session_lives,
                } => {
                    let replies = self.replies.entry(permit).or_default();
                    replies.push((reply, session_lives));
                }
                other => unreachable!("a transport does not say {other:?}"),
            }
        }
    }

    /// Looks until `wanted` holds, or patience ends. Whether it held.
    fn wait(&mut self, wanted: impl Fn(&Self) -> bool) -> bool {
        let deadline = self.harness.now().mono + PATIENCE;
        loop {
            self.turn();
            if wanted(self) {
                return true;
            }
            let now = self.harness.now().mono;
            if now >= deadline {
                return false;
            }
            let next: Mono = self.harness.transport().next_completion();
            let next = next.min(now + LOOK).max(now + Nanos(1));
            self.harness.advance(next);
        }
    }

    fn is_answered(&self, no: u32) -> bool {
        self.is_ready(no) || self.closed.contains_key(&session(no))
    }

    fn is_ready(&self, no: u32) -> bool {
        self.ready.contains_key(&session(no))
    }

    /// Opens a session, again and again if need be, until one is ready.
    fn ready_session(&mut self) -> u32 {
        for no in 0..100 {
            self.open(no);
            self.wait(|bench| bench.is_answered(no));
            if self.is_ready(no) && !self.closed.contains_key(&session(no)) {
                return no;
            }
        }
        unreachable!("no session can be opened to a destination that takes messages");
    }

    /// The one reply to a delivery.
    fn reply(&mut self, permit: PermitId) -> (Reply, bool) {
        let replied = self.wait(|bench| bench.replies.contains_key(&permit));
        assert!(replied, "a delivery has no reply");
        let replies = self.replies.get(&permit);
        let first = replies.and_then(|replies| replies.first());
        first.cloned().expect("it was replied to")
    }

    /// Nothing more comes, and nothing came twice.
    fn finish(&mut self) {
        self.wait(|_| false);
        for replies in self.replies.values() {
            assert_eq!(replies.len(), 1, "a delivery has several replies");
        }
        assert_eq!(
            self.replies.len(),
            self.permits as usize,
            "a delivery has no reply"
        );
        assert!(
            self.ready.values().all(|times| *times == 1),
            "a session is ready several times"
        );
        assert!(
            self.closed.values().all(|times| *times == 1),
            "a session is closed several times"
        );
    }
}

fn an_open_is_answered_once<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = Bench::new(make());
    for no in 0..4 {
        bench.open(no);
    }
    let answered = bench.wait(|bench| (0..4).all(|no| bench.is_answered(no)));
    assert!(answered, "an open is not answered");
    bench.finish();
}

fn a_dead_end_closes<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = Bench::new(make());
    let Some(dead_end) = bench.harness.dead_end() else {
        return;
    };
    bench.destination = dead_end;
    bench.open(0);
    let answered = bench.wait(|bench| bench.is_answered(0));
    assert!(answered, "an open to a dead end is not answered");
    assert!(!bench.is_ready(0), "a dead end is no end");
    bench.finish();
}

fn a_delivery_has_one_reply<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = Bench::new(make());
    let mut no = bench.ready_session();
    for _ in 0..50 {
        let permit = bench.deliver(no);
        let (_, lives) = bench.reply(permit);
        if !lives || bench.closed.contains_key(&session(no)) {
            no += 100;
            bench.open(no);
            bench.wait(|bench| bench.is_answered(no));
        }
    }
    bench.finish();
}

fn closing_is_not_answered<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = Bench::new(make());
    let no = bench.ready_session();
    bench.close(no);
    bench.finish();
    assert!(
        !bench.closed.contains_key(&session(no)),
        "closing is answered"
    );
}

fn a_closed_session_still_replies<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = Bench::new(make());
    let no = bench.ready_session();
    bench.close(no);
    bench.turn();
    let permit = bench.deliver(no);
    let (reply, lives) = bench.reply(permit);
    assert!(
        matches!(reply, Reply::Network { .. }),
        "what was not sent is not uncertain: {reply:?}"
    );
    assert!(!lives, "a closed session lives on");
    bench.finish();
}

fn closing_in_flight_still_replies<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = Bench::new(make());
    let no = bench.ready_session();
    let permit = bench.deliver(no);
    bench.close(no);
    bench.reply(permit);
    bench.finish();
}

fn what_comes_was_foretold<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = Bench::new(make());
    if !bench.harness.foretells() {
        return;
    }
    let at_rest = bench.harness.transport().next_completion();
    assert_eq!(at_rest, Mono::NEVER, "nothing was asked for");
    let no = bench.ready_session();
    bench.deliver(no);
    let next = bench.harness.transport().next_completion();
    assert!(next < Mono::NEVER, "a reply is foretold");
    bench.finish();
}
