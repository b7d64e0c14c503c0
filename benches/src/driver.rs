//! Drives an engine without a world: the queue is endless or a count, replies
//! come at once, the disk is never slow. Records are committed in groups, as the
//! store commits them: what was written while others were answered, 512 records
//! at most.

use std::collections::VecDeque;

use outflow_core::account::{AccountSpec, Sessions};
use outflow_core::engine::action::{Action, Record};
use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Head, Seq};
use outflow_core::policy::set::Policies;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, NANOS_PER_SECOND, Nanos, Now, Wall};

/// Records of one commit, as in the store.
const GROUP_MAX: u32 = 512;

/// An engine with a queue that exists only as numbers.
pub struct Driver {
    /// The engine.
    pub engine: Engine,
    /// Messages delivered so far.
    pub delivered: u64,
    now: Now,
    queued: Vec<u64>,
    seqs: u64,
    actions: Vec<Action>,
    events: VecDeque<Event>,
    /// The last record that is written and not committed, and how many there are.
    written: Option<AppendNo>,
    uncommitted: u32,
}

impl Driver {
    /// An engine with one account of many request slots and these policies.
    pub fn new(policies: Policies) -> Self {
        let now = at(Mono(0));
        let engine = Engine::new(Settings::default(), policies, Start::Fresh, &now);
        let mut account = AccountSpec::new("main");
        account.sessions = Sessions::slots(1_000_000);
        let mut driver = Self {
            engine,
            delivered: 0,
            now,
            queued: Vec::new(),
            seqs: 0,
            actions: Vec::new(),
            events: VecDeque::new(),
            written: None,
            uncommitted: 0,
        };
        driver.events.push_back(Event::AccountChanged {
            account: Box::new(account),
        });
        driver.settle();
        driver
    }

    /// Makes a flow.
    pub fn open(&mut self, key: FlowKey) -> FlowId {
        let id = self.engine.open_flow(&self.now, key, &mut self.actions);
        self.carry_out();
        if self.queued.len() <= id.index() {
            self.queued.resize(id.index() + 1, 0);
        }
        id
    }

    /// Puts messages into a flow's queue.
    pub fn queue(&mut self, flow: FlowId, count: u32) {
        self.queued[flow.index()] += u64::from(count);
        self.events.push_back(Event::Accepted { flow, count });
    }

    /// Handles all that is to be handled now.
    pub fn settle(&mut self) {
        loop {
            if self.events.is_empty() || self.uncommitted >= GROUP_MAX {
                self.commit();
            }
            let event = match self.events.pop_front() {
                Some(event) => event,
                None if self.engine.next_wake() <= self.now.mono => Event::Woke,
                None => return,
            };
            self.engine.step(&self.now, event, &mut self.actions);
            self.carry_out();
        }
    }

    /// Lets time pass until so many more were delivered; false if nothing more
    /// can happen.
    pub fn deliver(&mut self, count: u64) -> bool {
        let goal = self.delivered + count;
        while self.delivered < goal {
            self.settle();
            if self.delivered >= goal {
                break;
            }
            let next = self.engine.next_wake();
            if next == Mono::NEVER {
                return false;
            }
            self.now = at(next.max(self.now.mono));
        }
        true
    }

    /// What was written becomes durable, in one commit.
    fn commit(&mut self) {
        self.uncommitted = 0;
        if let Some(through) = self.written.take() {
            self.events.push_back(Event::Committed { through });
        }
    }

    fn carry_out(&mut self) {
        for action in self.actions.drain(..) {
            match action {
                Action::Page { flow, max } => {
                    let queued = &mut self.queued[flow.index()];
                    let count = u64::from(max).min(*queued);
                    *queued -= count;
                    let heads = (0..count)
                        .map(|index| Head::new(Seq(self.seqs + index), self.now.wall))
                        .collect();
                    self.seqs += count;
                    self.events.push_back(Event::Paged { flow, heads });
                }
                Action::Append { no, record } => {
                    if let Record::Settlement { .. } = record {
                        self.delivered += 1;
                    }
                    self.written = Some(no);
                    self.uncommitted += 1;
                }
                Action::Deliver(delivery) => self.events.push_back(Event::Replied {
                    permit: delivery.permit,
                    reply: accepted(),
                    session_lives: true,
                }),
                Action::OpenSession { session, .. } => {
                    self.events.push_back(Event::SessionReady { session });
                }
                Action::OpenFlow { .. }
                | Action::CloseFlow { .. }
                | Action::CloseSession { .. }
                | Action::Lease(_)
                | Action::GiveBack(_)
                | Action::PauseLimit { .. }
                | Action::Suppress { .. }
                | Action::Resolve { .. }
                | Action::Alert { .. } => {}
            }
        }
    }
}

/// What a transport makes of `250`, without the text that nobody reads.
fn accepted() -> Reply {
    Reply::Said {
        stage: Stage::Data,
        code: 250,
        enhanced: None,
        text: "".into(),
        retry_after: None,
        allows: None,
    }
}

/// A point in virtual time.
pub fn at(mono: Mono) -> Now {
    let wall = Wall(1_700_000_000 * NANOS_PER_SECOND as i64) + Nanos(mono.0);
    Now {
        mono,
        wall,
        entropy: Entropy(mono.0),
    }
}
