//! The suite that every ledger passes, over the scripts in a real server, in
//! virtual time: the same run each time, whatever else the machine does. Only
//! the scripts' `TIME` is replaced.

#[path = "../tests/redis/server.rs"]
#[allow(dead_code)]
mod server;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use outflow_core::class::Class;
use outflow_core::engine::action::LeaseRequest;
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::entropy::Entropy;
use outflow_core::handle::{AccountLimitId, LimitId};
use outflow_core::ledger::Settings;
use outflow_core::limit::{Headroom, LimitSpec};
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::pool::ClassMask;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::conformance::ledger::{self, Harness};
use outflow_ports::ledger::{Ledger, LedgerWork};
use redis::Connection;

use self::server::RedisServer;
use crate::answer::{Answer, Word};
use crate::ask::{self, Asker};
use crate::courier::told_cost;
use crate::name::Names;
use crate::script::{Call, Script, Scripts};

/// One way to the ledger or back.
const WAY: Nanos = Nanos::from_millis(1);
/// What the wall shows at the beginning: some seconds into a minute.
const BEGIN: Wall = Wall(1_794_830_007_000_000_000);

/// Answers on their way to a node.
type Inbox = Rc<RefCell<BTreeMap<(Mono, u64), Event>>>;

/// Work on its way to the ledger.
struct Arrival {
    work: LedgerWork,
    node: String,
    no: u64,
    inbox: Inbox,
}

/// The world: its time, the scripts' server, and what is on its way.
struct World {
    now: Cell<Mono>,
    names: Names,
    prefix: String,
    connection: RefCell<Connection>,
    arrivals: RefCell<BTreeMap<(Mono, u64), Arrival>>,
    inboxes: RefCell<Vec<Inbox>>,
    costs: RefCell<BTreeMap<LimitKey, u32>>,
    numbers: Cell<u64>,
}

impl World {
    fn number(&self) -> u64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    fn wall(at: Mono) -> Wall {
        BEGIN + Nanos(at.0)
    }

    fn call(&self, wall: Wall, call: &Call) -> Answer {
        let micros = wall.0 / 1_000;
        let epoch = call.keys.first().expect("each has an epoch");
        let time = format!("{epoch}:time");
        let source = Scripts::source(call.script).replace(
            "redis.call('TIME')",
            "redis.call('LRANGE', KEYS[1] .. ':time', 0, 1)",
        );
        let mut eval = redis::cmd("EVAL");
        eval.arg(source)
            .arg(call.keys.len())
            .arg(&call.keys)
            .arg(&call.args);
        let mut pipeline = redis::pipe();
        pipeline.cmd("DEL").arg(&time).ignore();
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        pipeline
            .cmd("RPUSH")
            .arg(&time)
            .arg(seconds)
            .arg(rest)
            .ignore();
        pipeline.add_command(eval);
        let connection = &mut *self.connection.borrow_mut();
        let (value,): (redis::Value,) = pipeline.query(connection).expect("a script answers");
        Answer::read(&value).expect("what scripts say")
    }

    fn lease(&self, at: Mono, arrival: &Arrival, request: &LeaseRequest) -> LeaseAnswer {
        for _ in 0..4 {
            let cost = self.costs.borrow().get(&*request.key).copied();
            let settings = Settings::default();
            let asker = Asker {
                settings: &settings,
                names: &self.names,
                node: &arrival.node,
                no: arrival.no,
                cost: cost.unwrap_or(1).max(told_cost(request)),
                wall: Self::wall(at),
            };
            let ask = match asker.lease(request) {
                Ok(ask) => ask,
                Err(answer) => return answer,
            };
            let answer = self.call(Self::wall(at), &ask.call);
            if let Word::Cost(cost) = answer.word {
                self.costs.borrow_mut().insert((*request.key).clone(), cost);
            }
            if let Some(answer) = answer.to_lease(&ask) {
                return answer;
            }
        }
        unreachable!("a request that is never settled: {request:?}");
    }

    fn take_in(&self, at: Mono, no: u64, arrival: &Arrival) {
        match &arrival.work {
            LedgerWork::Lease(request) => {
                let answer = self.lease(at, arrival, request);
                let (limit, no_of) = (request.limit, request.no);
                let event = Event::Granted {
                    limit,
                    no: no_of,
                    answer,
                };
                arrival.inbox.borrow_mut().insert((at + WAY, no), event);
            }
            LedgerWork::GiveBack(back) => {
                self.call(Self::wall(at), &ask::give_back(&self.names, back));
            }
            // Told by whoever watches the server, which nobody does here.
            LedgerWork::Recall(_) => {}
            LedgerWork::Pause { key, lasts } => {
                let (tag, limit) = self.names.limit(key);
                let call = Call {
                    script: Script::Pause,
                    keys: vec![self.names.epoch(tag), limit, self.names.pauses(tag)],
                    args: vec![
                        ask::micros_up(*lasts).to_string(),
                        key.to_string(),
                        self.names.channel(),
                    ],
                };
                self.call(Self::wall(at), &call);
                for inbox in &*self.inboxes.borrow() {
                    let (key, lasts) = (Arc::clone(key), *lasts);
                    let paused = Event::Paused { key, lasts };
                    inbox.borrow_mut().insert((at + WAY, self.number()), paused);
                }
            }
        }
    }

    /// The ledger answers all that arrived by now.
    fn catch_up(&self) {
        loop {
            let first = self.arrivals.borrow_mut().pop_first();
            match first {
                Some(((at, no), arrival)) if at <= self.now.get() => {
                    self.take_in(at, no, &arrival);
                }
                Some((place, arrival)) => {
                    self.arrivals.borrow_mut().insert(place, arrival);
                    return;
                }
                None => return,
            }
        }
    }
}

struct Virtual(Rc<World>);

impl Virtual {
    fn new(server: &RedisServer) -> Self {
        static NO: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("virtual{}", NO.fetch_add(1, Ordering::Relaxed));
        let world = World {
            now: Cell::new(Mono(0)),
            names: Names::new(&prefix),
            prefix,
            connection: RefCell::new(server.connect()),
            arrivals: RefCell::default(),
            inboxes: RefCell::default(),
            costs: RefCell::default(),
            numbers: Cell::new(0),
        };
        // A ledger that is not new: its epochs began an hour ago.
        let long_ago = Wall(BEGIN.0 - 3_600_000_000_000);
        for tag in (0..crate::name::TAGS).map(crate::name::Tag) {
            let look = Call {
                script: Script::Look,
                keys: vec![world.names.epoch(tag), world.names.pauses(tag)],
                args: vec!["0".to_owned()],
            };
            world.call(long_ago, &look);
        }
        Self(Rc::new(world))
    }
}

struct Link {
    world: Rc<World>,
    inbox: Inbox,
    node: String,
}

impl Ledger for Link {
    fn submit(&mut self, _: &Now, work: LedgerWork) {
        let no = self.world.number();
        let arrival = Arrival {
            work,
            node: self.node.clone(),
            no,
            inbox: Rc::clone(&self.inbox),
        };
        let at = self.world.now.get() + WAY;
        self.world.arrivals.borrow_mut().insert((at, no), arrival);
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        self.world.catch_up();
        let mut inbox = self.inbox.borrow_mut();
        while let Some(first) = inbox.first_entry() {
            if first.key().0 > now.mono {
                break;
            }
            done.push(first.remove());
        }
    }

    fn next_completion(&self) -> Mono {
        let told = self.inbox.borrow().first_key_value().map(|(at, _)| at.0);
        let arrives = self.world.arrivals.borrow();
        let arrives = arrives.first_key_value().map(|(at, _)| at.0);
        told.into_iter().chain(arrives).min().unwrap_or(Mono::NEVER)
    }
}

impl Harness for Virtual {
    type Link = Link;

    fn link(&mut self) -> Link {
        let inbox = Inbox::default();
        self.0.inboxes.borrow_mut().push(Rc::clone(&inbox));
        Link {
            world: Rc::clone(&self.0),
            inbox,
            node: format!("node{}", self.0.number()),
        }
    }

    fn now(&self) -> Now {
        let mono = self.0.now.get();
        Now {
            mono,
            wall: World::wall(mono),
            entropy: Entropy(0),
        }
    }

    fn advance(&mut self, to: Mono) {
        self.0.now.set(to.max(self.0.now.get()));
        self.0.catch_up();
    }

    fn lose_state(&mut self) {
        let mut command = redis::cmd("EVAL");
        let forget = "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. ':*')) do \
                      redis.call('DEL', key) end";
        command.arg(forget).arg(0).arg(&self.0.prefix);
        let connection = &mut *self.0.connection.borrow_mut();
        command.exec(connection).expect("all can be forgotten");
    }
}

#[test]
fn scripts_do_what_every_ledger_must() {
    let server = RedisServer::start(&[]);
    for (_, case) in ledger::cases::<Virtual>() {
        case(&|| Virtual::new(&server));
    }
}

/// What was on its way over a connection that broke comes after what was asked
/// over the next one.
#[test]
fn a_late_request_for_slots_changes_nothing() {
    let server = RedisServer::start(&[]);
    let harness = Virtual::new(&server);
    let ask = |node: &str, no: u64, tokens: u32| {
        let request = LeaseRequest {
            limit: LimitId::Account(AccountLimitId(1)),
            no: 1,
            key: Arc::new(LimitKey::of(Scope::Tenant, "acme")),
            spec: LimitSpec::Concurrency { slots: 3 },
            headroom: Headroom::default(),
            class: Class::Normal,
            waiting: ClassMask::of(Class::Normal),
            tokens,
            at_least: 1,
            at_most: 1,
            held: 0,
            version: 0,
        };
        let arrival = Arrival {
            work: LedgerWork::Lease(request.clone()),
            node: node.to_owned(),
            no,
            inbox: Inbox::default(),
        };
        harness.0.lease(Mono(0), &arrival, &request)
    };
    let is_leased = |answer: LeaseAnswer| matches!(answer, LeaseAnswer::Leased { .. });
    assert!(is_leased(ask("a", 2, 3)));
    assert!(!is_leased(ask("a", 1, 0)), "it came too late");
    assert!(!is_leased(ask("b", 1, 1)), "all are held");
    assert!(is_leased(ask("a", 3, 0)), "given back");
    assert!(is_leased(ask("b", 2, 1)));
}
