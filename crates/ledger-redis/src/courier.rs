//! Carries work to Redis and answers back: all that waits goes at once, in one
//! round trip however many limits it is about.

use std::sync::Arc;
use std::time::Duration;

use outflow_core::engine::action::{GiveBack, LeaseRequest};
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::debits::{Debit, is_long};
use outflow_core::limit::LimitSpec;
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::ledger::LedgerWork;
use redis::Value;
use tokio::sync::Semaphore;

use crate::answer::{Answer, Word};
use crate::ask::{self, Ask, Asker};
use crate::desk::{Desk, Job, lock};
use crate::health::Phase;
use crate::name::Tag;
use crate::script::{Call, Script};
use crate::server::{Fault, Server};

/// Work in one round trip: a few milliseconds of Redis' time, so that a fleet
/// that starts at once does not take itself for away.
const BATCH_MAX: usize = 100;
/// Round trips under way at the same time.
const BATCHES_MAX: usize = 2;
/// How often a request is asked again: with a larger cost, at another time, or
/// of a server that did not know the script.
const ROUNDS_MAX: usize = 6;
/// A request that cannot be settled comes back after this long.
const UNSETTLED_PAUSE: Nanos = Nanos::from_millis(50);
/// The wait between two attempts to connect.
const PROBE_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause of a limit.
const PAUSE_MAX: Nanos = Nanos::from_secs(366 * 86_400);

/// Keeps a connection: looks for a server whenever there is none.
pub(crate) async fn connect(desk: Arc<Desk>) {
    let mut phases = desk.phases();
    loop {
        let phase = *phases.borrow_and_update();
        if let Phase::Up(_) = phase {
            if phases.changed().await.is_err() {
                return;
            }
            continue;
        }
        match Server::connect(&desk.settings, &desk.scripts).await {
            Ok(server) => desk.connected(server),
            Err(error) => {
                desk.failed(phase, &error);
                tokio::time::sleep(PROBE_PAUSE).await;
            }
        }
    }
}

/// Carries work for ever.
pub(crate) async fn carry(desk: Arc<Desk>) {
    let room = Arc::new(Semaphore::new(BATCHES_MAX));
    let mut phases = desk.phases();
    loop {
        desk.work.notified().await;
        let connected = phases.wait_for(|phase| *phase != Phase::Connecting);
        if connected.await.is_err() {
            return;
        }
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                return;
            };
            let jobs = desk.take(BATCH_MAX);
            if jobs.is_empty() {
                break;
            }
            let Some((server, phase)) = desk.server() else {
                jobs.into_iter().for_each(|job| desk.answer_away(job));
                continue;
            };
            let desk = Arc::clone(&desk);
            tokio::spawn(async move {
                Batch::new(&desk, jobs).run(&server, phase).await;
                drop(place);
            });
        }
    }
}

/// Work with the call that does it.
struct Item {
    job: Job,
    tag: Tag,
    call: Call,
    ask: Option<Ask>,
    by_source: bool,
}

/// Work that goes at once.
struct Batch<'a> {
    desk: &'a Desk,
    items: Vec<Item>,
}

impl<'a> Batch<'a> {
    fn new(desk: &'a Desk, jobs: Vec<Job>) -> Self {
        let items = jobs.into_iter().filter_map(|job| prepare(desk, job));
        let items = items.collect();
        Self { desk, items }
    }

    async fn run(mut self, server: &Server, phase: Phase) {
        let desk = self.desk;
        let mut phases = desk.phases();
        for _ in 0..ROUNDS_MAX {
            if self.items.is_empty() {
                return;
            }
            let scripts = &desk.scripts;
            let commands = self.items.iter();
            let commands: Vec<_> = commands
                .map(|item| scripts.command(&item.call, item.by_source))
                .collect();
            let answers = tokio::select! {
                answers = server.send(&commands) => answers,
                // Somebody else found out first.
                _ = phases.wait_for(|now| *now != phase) => Err("it went away".to_owned()),
            };
            match answers {
                Ok(answers) => {
                    desk.count(|status| status.round_trips += 1);
                    self.take_in(server, phase, answers);
                }
                Err(error) => {
                    desk.failed(phase, &error);
                    let items = self.items.into_iter();
                    return items.for_each(|item| desk.answer_away(item.job));
                }
            }
        }
        for item in self.items {
            if let LedgerWork::Lease(request) = &item.job.work {
                let retry_after = UNSETTLED_PAUSE;
                item.job.tell(request, LeaseAnswer::Refused { retry_after });
            }
        }
    }

    /// Takes answers in. What must be asked again stays.
    fn take_in(&mut self, server: &Server, phase: Phase, answers: Vec<Result<Value, Fault>>) {
        let desk = self.desk;
        let items = std::mem::take(&mut self.items);
        let mut gone = None;
        for (mut item, answer) in items.into_iter().zip(answers) {
            match answer {
                Ok(value) => match Answer::read(&value) {
                    Some(answer) => self.items.extend(settle(desk, item, &answer)),
                    None => {
                        desk.note_error("a script said what none of ours says");
                        desk.answer_away(item.job);
                    }
                },
                Err(Fault::NoScript) if !item.by_source => {
                    item.by_source = true;
                    self.items.push(item);
                }
                Err(Fault::NoScript) => desk.answer_away(item.job),
                Err(Fault::Gone(error)) if server.is_cluster() => {
                    desk.part_failed(item.tag, &error);
                    desk.answer_away(item.job);
                }
                Err(Fault::Gone(error)) => {
                    gone = Some(error);
                    desk.answer_away(item.job);
                }
                Err(Fault::Broken(error)) => {
                    desk.note_error(&error);
                    desk.answer_away(item.job);
                }
            }
        }
        if let Some(error) = gone {
            desk.failed(phase, &error);
        }
    }
}

/// The call that does a piece of work; none if it needs none.
fn prepare(desk: &Desk, job: Job) -> Option<Item> {
    let key = match &job.work {
        LedgerWork::Lease(request) => &request.key,
        LedgerWork::GiveBack(back) => &back.key,
        LedgerWork::Pause { key, .. } => key,
        LedgerWork::Recall(recalled) => &recalled.key,
    };
    let (tag, limit) = desk.names.limit(key);
    desk.use_tag(tag);
    if desk.is_part_away(tag) {
        desk.answer_away(job);
        return None;
    }
    let (call, ask) = match &job.work {
        LedgerWork::Lease(request) => {
            desk.count(|status| status.requests += 1);
            let ask = match lease(desk, &job, request) {
                Ok(ask) => ask,
                Err(answer) => {
                    job.tell(request, answer);
                    return None;
                }
            };
            (ask.call.clone(), Some(ask))
        }
        LedgerWork::GiveBack(back) => {
            forget(desk, back);
            (ask::give_back(&desk.names, back), None)
        }
        LedgerWork::Pause { key, lasts } => {
            let call = Call {
                script: Script::Pause,
                keys: vec![desk.names.epoch(tag), limit, desk.names.pauses(tag)],
                args: vec![
                    ask::micros_up((*lasts).min(PAUSE_MAX)).to_string(),
                    key.to_string(),
                    desk.names.channel(),
                ],
            };
            (call, None)
        }
        LedgerWork::Recall(_) => return None,
    };
    Some(Item {
        job,
        tag,
        call,
        ask,
        by_source: false,
    })
}

fn lease(desk: &Desk, job: &Job, request: &LeaseRequest) -> Result<Ask, LeaseAnswer> {
    // A cost that can never fit is no reason to lease on worse terms.
    let cost = if request.at_least <= request.spec.capacity() {
        let told = told_cost(request);
        desk.learn_cost(&request.key, told);
        desk.cost(&request.key, told.max(1))
    } else {
        request.at_least
    };
    let asker = Asker {
        settings: &desk.settings.leasing,
        names: &desk.names,
        node: &job.sender.node,
        no: job.no,
        cost,
        wall: desk.ledger_wall(),
    };
    asker.lease(request)
}

/// The largest cost that a request speaks of, of those that can ever fit.
pub(crate) fn told_cost(request: &LeaseRequest) -> u32 {
    let most = request.at_most.min(request.spec.capacity());
    most.max(request.at_least)
}

fn forget(desk: &Desk, back: &GiveBack) {
    if is_long(&back.spec) {
        let (epoch, at) = (back.receipt.epoch, back.receipt.at);
        lock(&desk.debits).give_back(&back.key, epoch, at, back.tokens);
    }
}

/// Takes an answer in. The work, if it must be asked again.
fn settle(desk: &Desk, item: Item, answer: &Answer) -> Option<Item> {
    desk.learn(item.tag, answer);
    if let Word::GivenBack(tokens) = answer.word {
        desk.count(|status| status.given_back += tokens);
    }
    let LedgerWork::Lease(request) = &item.job.work else {
        return None;
    };
    match answer.word {
        Word::Cost(cost) => desk.learn_cost(&request.key, cost),
        Word::Paused(lasts) => desk.paused(&request.key, lasts),
        Word::Stale => desk.look.notify_one(),
        Word::Leased(tokens, _) if is_unreported(desk, request, answer) => {
            refuse_unreported(desk, &item, request, tokens, answer);
            return None;
        }
        Word::Leased(tokens, _) => remember(desk, request, tokens, answer),
        _ => {}
    }
    let told = item.ask.as_ref().and_then(|ask| answer.to_lease(ask));
    if let Some(told) = told {
        item.job.tell(request, told);
        return None;
    }
    // Prepared anew, since what was learnt changes the terms.
    match lease(desk, &item.job, request) {
        Ok(ask) => Some(Item {
            call: ask.call.clone(),
            ask: Some(ask),
            ..item
        }),
        Err(answer) => {
            item.job.tell(request, answer);
            None
        }
    }
}

/// Whether the ledger leased in an epoch that does not know yet what this node
/// debited before.
fn is_unreported(desk: &Desk, request: &LeaseRequest, answer: &Answer) -> bool {
    is_long(&request.spec) && !lock(&desk.debits).is_reported(&request.key, answer.epoch)
}

/// Does not use such a lease: the node's account would name an epoch that lacks
/// some of its debits.
fn refuse_unreported(
    desk: &Desk,
    item: &Item,
    request: &LeaseRequest,
    tokens: u32,
    answer: &Answer,
) {
    desk.look.notify_one();
    item.job.tell(
        request,
        LeaseAnswer::Refused {
            retry_after: UNSETTLED_PAUSE,
        },
    );
    let told = item.ask.as_ref().and_then(|ask| answer.to_lease(ask));
    if let Some(LeaseAnswer::Leased { receipt, .. }) = told {
        let back = GiveBack {
            key: Arc::clone(&request.key),
            spec: request.spec.clone(),
            tokens,
            receipt,
        };
        desk.submit(Job {
            work: LedgerWork::GiveBack(back),
            ..item.job.clone()
        });
    }
}

fn remember(desk: &Desk, request: &LeaseRequest, tokens: u32, answer: &Answer) {
    // Slots are asked for again and again.
    let is_held = matches!(request.spec, LimitSpec::Concurrency { .. });
    let counted = if is_held { 0 } else { u64::from(tokens) };
    desk.count(|status| {
        status.leases += 1;
        status.tokens += counted;
    });
    if is_long(&request.spec) {
        let debit = Debit {
            epoch: answer.epoch,
            at: answer.now,
            wall: Wall(answer.wall_micros.saturating_mul(1_000)),
            tokens,
        };
        let numbers = (&request.spec, request.version);
        let key: &Arc<LimitKey> = &request.key;
        lock(&desk.debits).add(desk.mono(), key, numbers, debit);
    }
}
