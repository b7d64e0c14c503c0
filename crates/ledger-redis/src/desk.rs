//! What all links share: the queue of what is asked for, the connection, and
//! what was learnt from answers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outflow_core::engine::action::LeaseRequest;
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::ledger::debits::NodeDebits;
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Mono, Nanos, Wall};
use outflow_ports::ledger::LedgerWork;
use tokio::sync::{Notify, watch};

use crate::answer::Answer;
use crate::health::{Health, LedgerStatus, Phase};
use crate::name::{Names, TAGS, Tag};
use crate::outbox::Outbox;
use crate::script::Scripts;
use crate::server::Server;
use crate::settings::RedisSettings;

/// Work that may wait. A node has one request per limit under way.
const QUEUE_MAX: usize = 200_000;
/// A request that waited for its turn for more than this share of the time-out
/// would be answered too late: half of a lease's life, at the longest, is for
/// question and answer.
const QUEUED_MAX_PERCENT: u32 = 60;
/// Who was sent away because Redis has too much to do comes back after this.
const CROWDED_PAUSE: Nanos = Nanos::from_millis(20);
/// Limits whose largest cost is remembered; those beyond take a round trip more.
const COSTS_MAX: usize = 100_000;
/// Pauses that are remembered.
const PAUSES_MAX: usize = 10_000;
/// Pauses that differ by less are the same.
const SAME_PAUSE: Duration = Duration::from_millis(20);
/// How long a part of a cluster that failed is left alone.
const PART_AWAY: Duration = Duration::from_millis(100);

/// How long it is shown as away.
const PART_SHOWN: Duration = Duration::from_secs(2);

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub outbox: Arc<Outbox>,
    /// What the ledger calls it.
    pub node: Arc<str>,
}

/// Work of one link.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub sender: Sender,
    /// Grows with each.
    pub no: u64,
    /// When it was handed over.
    pub at: Instant,
    pub work: LedgerWork,
}

impl Job {
    /// The answer to a request.
    pub fn tell(&self, request: &LeaseRequest, answer: LeaseAnswer) {
        self.sender.outbox.tell(Event::Granted {
            limit: request.limit,
            no: request.no,
            answer,
        });
    }
}

/// What was learnt from answers.
#[derive(Debug)]
struct Learnt {
    /// The largest cost by limit, where it is above one.
    costs: BTreeMap<Arc<LimitKey>, u32>,
    /// The epoch of each tag.
    epochs: [u64; TAGS as usize],
    /// Parts of a cluster that failed a moment ago.
    away: [Option<Instant>; TAGS as usize],
    /// The ledger's wall clock in microseconds, and when it showed that.
    clock: Option<(i64, Instant)>,
    /// Until when limits are paused.
    pauses: BTreeMap<LimitKey, Instant>,
    /// Pauses that Redis was not told of; none for one that was lifted.
    unsent: BTreeMap<Arc<LimitKey>, Option<Instant>>,
}

impl Learnt {
    fn remember_pause(&mut self, now: Instant, key: &LimitKey, until: Instant) {
        if self.pauses.len() >= PAUSES_MAX {
            self.pauses.retain(|_, until| *until > now);
        }
        if self.pauses.len() < PAUSES_MAX {
            self.pauses.insert(key.clone(), until);
        }
    }
}

/// What all links share.
pub(crate) struct Desk {
    pub settings: RedisSettings,
    pub names: Names,
    pub scripts: Scripts,
    /// What the fleet calls this process.
    pub node: String,
    /// Under which name it reports its debits.
    pub reporter: String,
    queue: Mutex<VecDeque<Job>>,
    /// There is work.
    pub work: Notify,
    /// Something may have changed: look at once.
    pub look: Notify,
    health: Mutex<Health>,
    server: Mutex<Option<(Server, Phase)>>,
    phase: watch::Sender<Phase>,
    learnt: Mutex<Learnt>,
    pub debits: Mutex<NodeDebits>,
    /// When it began: the zero of its monotonic clock.
    began: Instant,
    tags: AtomicU64,
    links: Mutex<Vec<Weak<Outbox>>>,
    version: watch::Sender<u64>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub fn new(settings: RedisSettings, node: String) -> Self {
        let learnt = Learnt {
            costs: BTreeMap::new(),
            epochs: [0; TAGS as usize],
            away: [None; TAGS as usize],
            clock: None,
            pauses: BTreeMap::new(),
            unsent: BTreeMap::new(),
        };
        Self {
            names: Names::new(&settings.prefix),
            scripts: Scripts::new(),
            reporter: settings.reporter.clone().unwrap_or_else(|| node.clone()),
            settings,
            node,
            queue: Mutex::default(),
            work: Notify::new(),
            look: Notify::new(),
            health: Mutex::new(Health::new()),
            server: Mutex::new(None),
            phase: watch::Sender::new(Phase::Connecting),
            learnt: Mutex::new(learnt),
            debits: Mutex::default(),
            began: Instant::now(),
            tags: AtomicU64::new(0),
            links: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }

    /// Another link.
    pub fn join(&self, outbox: &Arc<Outbox>) {
        let mut links = lock(&self.links);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(outbox));
    }

    /// Takes work; answers it at once while Redis is away.
    pub fn submit(&self, job: Job) {
        if let LedgerWork::Recall(recalled) = &job.work {
            let (tag, _) = self.names.limit(&recalled.key);
            self.use_tag(tag);
            return lock(&self.debits).recall(self.mono(), recalled);
        }
        if *self.phase.borrow() == Phase::Away {
            return self.answer_away(job);
        }
        let mut queue = lock(&self.queue);
        if queue.len() >= QUEUE_MAX {
            drop(queue);
            return self.answer_away(job);
        }
        queue.push_back(job);
        drop(queue);
        self.work.notify_one();
    }

    /// Takes up to so much work from the queue. Requests that waited too long
    /// to be of use are sent away: if Redis has more to do than it can, it does
    /// what still counts, instead of everything too late.
    pub fn take(&self, most: usize) -> Vec<Job> {
        let mut queue = lock(&self.queue);
        let now = Instant::now();
        let longest = self.settings.timeout * QUEUED_MAX_PERCENT / 100;
        let is_stale = |job: &Job| now.duration_since(job.at) > longest;
        let stale = queue.iter().take_while(|job| is_stale(job)).count();
        let mut jobs = Vec::new();
        for job in queue.drain(..stale) {
            match &job.work {
                LedgerWork::Lease(request) => {
                    let retry_after = CROWDED_PAUSE;
                    job.tell(request, LeaseAnswer::Refused { retry_after });
                }
                LedgerWork::GiveBack(_) | LedgerWork::Recall(_) => {}
                LedgerWork::Pause { .. } => jobs.push(job),
            }
        }
        let fresh = queue.len().min(most);
        jobs.extend(queue.drain(..fresh));
        jobs
    }

    /// Answers that Redis is away. A pause waits until it is back.
    pub fn answer_away(&self, job: Job) {
        match &job.work {
            LedgerWork::Lease(request) => job.tell(request, LeaseAnswer::Away),
            // Lost: that only wastes tokens.
            LedgerWork::GiveBack(_) | LedgerWork::Recall(_) => {}
            LedgerWork::Pause { key, lasts } => {
                let mut learnt = lock(&self.learnt);
                if learnt.unsent.len() < PAUSES_MAX {
                    let until = (*lasts > Nanos::ZERO)
                        .then(|| Instant::now() + Duration::from_nanos(lasts.0));
                    learnt.unsent.insert(Arc::clone(key), until);
                }
            }
        }
    }

    /// The time of its monotonic clock.
    pub fn mono(&self) -> Mono {
        let nanos = self.began.elapsed().as_nanos();
        Mono(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The connection, if there is one.
    pub fn server(&self) -> Option<(Server, Phase)> {
        lock(&self.server).clone()
    }

    /// Hears of connections and of their end.
    pub fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Connected.
    pub fn connected(&self, server: Server) {
        let phase = lock(&self.health).connected(server.address.clone(), server.may_evict);
        *lock(&self.server) = Some((server, phase));
        let now = Instant::now();
        let unsent = std::mem::take(&mut lock(&self.learnt).unsent);
        let sender = Sender {
            outbox: Arc::new(Outbox::new(Arc::new(|| {}))),
            node: Arc::from(self.node.as_str()),
        };
        // One that ran out meanwhile must not lift another's.
        let left = |until: Instant| until.checked_duration_since(now);
        let pauses = unsent.into_iter().filter_map(|(key, until)| {
            let rest = until.map_or(Some(Duration::ZERO), left)?.as_nanos();
            let lasts = Nanos(u64::try_from(rest).unwrap_or(u64::MAX));
            Some(Job {
                sender: sender.clone(),
                no: 0,
                at: now,
                work: LedgerWork::Pause { key, lasts },
            })
        });
        lock(&self.queue).extend(pauses);
        self.phase.send_replace(phase);
        self.work.notify_one();
        self.look.notify_one();
    }

    /// Redis is away: everything that waits is answered at once.
    pub fn failed(&self, of: Phase, error: &str) {
        let is_news = lock(&self.health).failed(of, Instant::now(), error);
        if is_news {
            *lock(&self.server) = None;
            self.phase.send_replace(Phase::Away);
            for job in self.take(usize::MAX) {
                self.answer_away(job);
            }
        }
    }

    /// Keeps what went wrong with one command.
    pub fn note_error(&self, error: &str) {
        lock(&self.health).note(error);
    }

    /// Counts something.
    pub fn count(&self, count: impl FnOnce(&mut LedgerStatus)) {
        count(&mut lock(&self.health).status);
    }

    pub fn status(&self) -> LedgerStatus {
        let mut status = lock(&self.health).status.clone();
        status.policies_version = *self.version.borrow();
        let away = lock(&self.learnt).away;
        let parts = away.iter().flatten().filter(|at| at.elapsed() < PART_SHOWN);
        status.parts_away = u32::try_from(parts.count()).unwrap_or(u32::MAX);
        status
    }

    /// The largest cost of a limit that is known, at least `cost`.
    pub fn cost(&self, key: &LimitKey, cost: u32) -> u32 {
        let learnt = lock(&self.learnt);
        learnt.costs.get(key).copied().unwrap_or(1).max(cost)
    }

    /// A limit's largest cost is at least this.
    pub fn learn_cost(&self, key: &Arc<LimitKey>, cost: u32) {
        if cost <= 1 {
            return;
        }
        let mut learnt = lock(&self.learnt);
        if learnt.costs.len() >= COSTS_MAX {
            learnt.costs.clear();
        }
        let known = learnt.costs.entry(Arc::clone(key)).or_insert(cost);
        *known = cost.max(*known);
    }

    /// What the ledger's wall clock shows, as far as is known.
    pub fn ledger_wall(&self) -> Wall {
        let clock = lock(&self.learnt).clock;
        let micros = match clock {
            Some((micros, at)) => micros.saturating_add_unsigned(micros_of(at.elapsed())),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                0_i64.saturating_add_unsigned(micros_of(since.unwrap_or_default()))
            }
        };
        Wall(micros.saturating_mul(1_000))
    }

    /// Learns the time and the epoch of a tag.
    pub fn learn(&self, tag: Tag, answer: &Answer) {
        let mut learnt = lock(&self.learnt);
        learnt.clock = Some((answer.wall_micros, Instant::now()));
        let Some(epoch) = learnt.epochs.get_mut(usize::from(tag.0)) else {
            return;
        };
        let is_new = *epoch != answer.epoch && *epoch != 0;
        *epoch = answer.epoch;
        drop(learnt);
        if is_new {
            self.look.notify_one();
        }
    }

    /// The epoch of a limit's tag; none is 0.
    pub fn epoch_of(&self, key: &LimitKey) -> u64 {
        let (tag, _) = self.names.limit(key);
        let learnt = lock(&self.learnt);
        learnt
            .epochs
            .get(usize::from(tag.0))
            .copied()
            .unwrap_or_default()
    }

    /// A tag is in use here.
    pub fn use_tag(&self, tag: Tag) {
        self.tags.fetch_or(tag.bit(), Ordering::Relaxed);
    }

    /// The tags in use here.
    pub fn used_tags(&self) -> Vec<Tag> {
        let tags = self.tags.load(Ordering::Relaxed);
        (0..TAGS)
            .map(Tag)
            .filter(|tag| tags & tag.bit() != 0)
            .collect()
    }

    /// A part of a cluster failed; the others are there.
    pub fn part_failed(&self, tag: Tag, error: &str) {
        self.note_error(error);
        if let Some(away) = lock(&self.learnt).away.get_mut(usize::from(tag.0)) {
            *away = Some(Instant::now());
        }
    }

    /// Whether a part of a cluster failed a moment ago.
    pub fn is_part_away(&self, tag: Tag) -> bool {
        let away = lock(&self.learnt).away.get(usize::from(tag.0)).copied();
        away.flatten().is_some_and(|at| at.elapsed() < PART_AWAY)
    }

    /// A limit is paused, or no more if it is for no time: every link hears of
    /// it, once.
    pub fn paused(&self, key: &LimitKey, lasts: Nanos) {
        let now = Instant::now();
        let until = now + Duration::from_nanos(lasts.0);
        let mut learnt = lock(&self.learnt);
        let known = learnt.pauses.get(key);
        if lasts == Nanos::ZERO {
            learnt.pauses.remove(key);
        } else if known.is_some_and(|known| until <= *known + SAME_PAUSE) {
            return;
        } else {
            learnt.remember_pause(now, key, until);
        }
        drop(learnt);
        let key = Arc::new(key.clone());
        let links: Vec<_> = lock(&self.links).iter().filter_map(Weak::upgrade).collect();
        for outbox in links {
            let key = Arc::clone(&key);
            outbox.tell(Event::Paused { key, lasts });
        }
    }

    /// The fleet's policies have this version.
    pub fn learn_version(&self, version: u64) {
        self.version.send_if_modified(|known| {
            let is_new = version > *known;
            *known = version.max(*known);
            is_new
        });
    }

    /// The highest version that was seen.
    pub fn version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}

fn micros_of(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
