//! Production's thread: the node, its clock, its inbox.
//!
//! One plain thread turns the node, answers what has become durable, takes what
//! is in the inbox in one go and sleeps until the next turn is due, a request
//! comes or a port wakes it. It is the one place where the pipeline reads a
//! clock; entropy is an argument.
//!
//! A panic ends the thread: the join handle carries it, callers of intake hear
//! that nothing is known to be stored, other callbacks are dropped. Whoever
//! spawns the thread joins it and ends the process when it ends: a server
//! without its node answers nothing and sends nothing.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is where time comes from"
)]

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outflow_core::engine::action::Alert;
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::intake::{Refused, Submission};
use outflow_ports::ledger::Ledger;
use outflow_ports::resolver::Resolver;
use outflow_ports::store::{BatchId, Store};
use outflow_ports::transport::Transport;

use crate::handle::{Inbox, Request, Waiting};
use crate::node::{Node, Ports};
use crate::shutdown::Phase;

/// Requests taken from the inbox between two turns.
const REQUESTS_MAX: usize = 1_024;
/// Batches of several callers are put together up to this many messages.
const MERGED_MAX: usize = 4_096;
/// The longest sleep. Due times are on the wall clock, which may be stepped.
const SLEEP_MAX: Nanos = Nanos::from_secs(1);

/// What a node's thread is given from outside.
pub struct Surroundings {
    /// Unpredictable bits, for jitter.
    pub entropy: Box<dyn FnMut() -> u64 + Send>,
    /// Called with what a person should know, on the node's thread.
    pub alert: Box<dyn FnMut(Alert) + Send>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surroundings")
    }
}

/// What is left when a node's thread has ended.
#[derive(Debug)]
pub struct Ended<S, L, T, R> {
    /// Whether everything was settled in time.
    pub settled: bool,
    /// What it was connected to.
    pub ports: Ports<S, L, T, R>,
}

/// Starts a node on a thread of its own. `start` makes the node there; requests
/// wait in the inbox meanwhile.
pub fn spawn<S, L, T, R>(
    inbox: Inbox,
    surroundings: Surroundings,
    start: impl FnOnce(&Now) -> Node<S, L, T, R> + Send + 'static,
) -> io::Result<JoinHandle<Ended<S, L, T, R>>>
where
    S: Store + Send + 'static,
    L: Ledger + Send + 'static,
    T: Transport + Send + 'static,
    R: Resolver + Send + 'static,
{
    Builder::new().name("node".to_owned()).spawn(move || {
        let Surroundings { entropy, alert } = surroundings;
        let mut clock = Clock::new(entropy);
        let now = clock.now();
        let seat = Seat {
            node: start(&now),
            clock,
            inbox,
            alert,
            waiting: VecDeque::new(),
            batch: Vec::new(),
            callers: Vec::new(),
            deadline: None,
        };
        seat.run()
    })
}

/// Both clocks.
struct Clock {
    start: Instant,
    entropy: Box<dyn FnMut() -> u64 + Send>,
}

impl Clock {
    fn new(entropy: Box<dyn FnMut() -> u64 + Send>) -> Self {
        Self {
            start: Instant::now(),
            entropy,
        }
    }

    fn now(&mut self) -> Now {
        let mono = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            mono: Mono(mono),
            wall: Wall(i64::try_from(wall.as_nanos()).unwrap_or(i64::MAX)),
            entropy: Entropy((self.entropy)()),
        }
    }
}

/// The node at work.
struct Seat<S, L, T, R> {
    node: Node<S, L, T, R>,
    clock: Clock,
    inbox: Inbox,
    alert: Box<dyn FnMut(Alert) + Send>,
    /// Callers of batches that are on their way to the disk, in order.
    waiting: VecDeque<(BatchId, Vec<Waiting>)>,
    /// What several callers want to submit in one batch.
    batch: Vec<Submission>,
    callers: Vec<Waiting>,
    /// When a shutdown stops waiting.
    deadline: Option<Mono>,
}

impl<S: Store, L: Ledger, T: Transport, R: Resolver> Seat<S, L, T, R> {
    fn run(mut self) -> Ended<S, L, T, R> {
        loop {
            self.inbox.state.awake();
            let now = self.clock.now();
            let next = self.node.turn(&now);
            self.answer();
            let is_late = self.deadline.is_some_and(|deadline| now.mono >= deadline);
            if self.node.phase() == Phase::Done || is_late {
                return Ended {
                    settled: self.node.phase() == Phase::Done,
                    ports: self.node.into_ports(),
                };
            }
            let next = next.min(self.deadline.unwrap_or(Mono::NEVER));
            self.take(next);
        }
    }

    /// Waits for a request until `next` and takes all that are there.
    fn take(&mut self, next: Mono) {
        let now = self.clock.now();
        let sleep = next.since(now.mono).min(SLEEP_MAX);
        let first = if sleep == Nanos::ZERO {
            self.inbox.requests.try_recv().ok()
        } else {
            let sleep = Duration::from_nanos(sleep.0);
            match self.inbox.requests.recv_timeout(sleep) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    // Nobody can ask for anything any more: not even for the end.
                    self.close(now.mono, Nanos::ZERO);
                    None
                }
            }
        };
        let Some(first) = first else { return };
        let now = self.clock.now();
        self.hear(&now, first);
        for _ in 1..REQUESTS_MAX {
            let Ok(request) = self.inbox.requests.try_recv() else {
                break;
            };
            self.hear(&now, request);
        }
        self.submit(&now);
    }

    fn hear(&mut self, now: &Now, request: Request) {
        let node = &mut self.node;
        match request {
            Request::Submit {
                batch,
                whole: false,
                waiting,
            } => self.gather(now, batch, waiting),
            Request::Submit { batch, waiting, .. } => self.submit_whole(now, batch, waiting),
            Request::Message { seq, then } => then(node.message(seq)),
            Request::Explain { seq, then } => then(node.explain(now, seq)),
            Request::Messages {
                filter,
                from,
                max,
                then,
            } => then(node.messages(&filter, from, max)),
            Request::Lanes { then } => then(node.lanes(now)),
            Request::Standings { then } => then(node.standings(now)),
            Request::Limits { then } => then(node.limits(now)),
            Request::Tallies { then } => then(node.tallies(now)),
            Request::Depth { then } => then(node.depth(now)),
            Request::FlowsOf { tenant, then } => then(node.engine().flows_of(&tenant)),
            Request::Meters { then } => then(node.meters()),
            Request::Cancel { seq, then } => then(node.cancel(now, seq)),
            Request::Retry { seq, then } => then(node.retry(seq)),
            Request::Bulk {
                bulk,
                matches,
                dry_run,
                then,
            } => then(node.bulk(bulk, matches, dry_run)),
            Request::Feedback { key, seq, reply } => node.feedback(now, *key, seq, reply),
            Request::Forget { seqs } => node.forget(now, seqs),
            Request::Lend { wants, class, then } => then(node.lend(now, &wants, class)),
            Request::GiveBack { slots } => node.take_back(now, &slots),
            Request::Post(event) => node.post(*event),
            Request::ShutDown { within } => self.close(now.mono, within),
            Request::Wake => {}
        }
    }

    /// Puts a caller's messages to those of others.
    fn gather(&mut self, now: &Now, batch: Vec<Submission>, waiting: Waiting) {
        let together = self.batch.len() + batch.len();
        if together > MERGED_MAX || together > self.node.room() {
            self.submit(now);
        }
        self.batch.extend(batch);
        self.callers.push(waiting);
    }

    /// Submits a caller's messages by themselves, after those that came before.
    fn submit_whole(&mut self, now: &Now, batch: Vec<Submission>, waiting: Waiting) {
        self.submit(now);
        let submitted = self.node.submit_whole(now, batch);
        self.note_submitted(submitted, vec![waiting]);
    }

    /// Submits what was gathered.
    fn submit(&mut self, now: &Now) {
        if self.callers.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let callers = std::mem::take(&mut self.callers);
        let submitted = self.node.submit(now, batch);
        self.note_submitted(submitted, callers);
    }

    fn note_submitted(&mut self, submitted: Result<BatchId, Refused>, mut callers: Vec<Waiting>) {
        match submitted {
            Ok(id) => {
                callers.iter_mut().for_each(Waiting::submitted);
                self.waiting.push_back((id, callers));
            }
            Err(refused) => {
                for caller in callers {
                    caller.answer(Err(refused));
                }
            }
        }
    }

    /// Tells callers what became of their messages, and people what they
    /// should know.
    fn answer(&mut self) {
        while let Some(answer) = self.node.next_answer() {
            let place = self.waiting.iter().position(|(id, _)| *id == answer.batch);
            let Some((_, callers)) = place.and_then(|place| self.waiting.remove(place)) else {
                continue;
            };
            let mut given = answer.given.map(Vec::into_iter);
            for caller in callers {
                let part = match &mut given {
                    Some(given) => Ok(given.take(caller.count).collect()),
                    None => Err(Refused::NotStored),
                };
                caller.answer(part);
            }
        }
        while let Some(alert) = self.node.next_alert() {
            (self.alert)(alert);
        }
    }

    fn close(&mut self, now: Mono, within: Nanos) {
        self.node.shut_down();
        let deadline = now + within;
        let deadline = self.deadline.map_or(deadline, |old| old.min(deadline));
        self.deadline = Some(deadline);
    }
}
