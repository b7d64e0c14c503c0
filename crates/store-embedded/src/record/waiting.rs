//! What was handed over and is not in SQLite yet.
//!
//! Work is applied in the order in which it came; until then questions are
//! answered from here. Whoever hands work over waits at most for a lock that
//! nobody holds for long: long looks are taken in slices.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outflow_core::message::Seq;
use outflow_core::time::{Mono, Nanos, Wall};
use outflow_ports::receipts::{Happening, Receipt};

use crate::boot::BootClock;

/// How many entries are looked at before others may have the lock.
const SLICE: usize = 1_000;

/// The most feedback that waits. It comes from outside and counts in no backlog,
/// so what comes beyond, while the disk refuses, is dropped.
const FEEDBACK_MAX: usize = 100_000;

/// An idempotency key and the message it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The hash of the key.
    pub hash: u64,
    /// The message.
    pub seq: Seq,
    /// When the message was accepted.
    pub accepted_at: Wall,
    /// When to forget the key.
    pub forget_at: Wall,
}

/// Something to be written.
#[derive(Debug)]
pub enum Job {
    /// Receipts, after which the record covers the journal up to a position.
    Receipts(Vec<Arc<Receipt>>, Option<u64>),
    /// Something more that happened to a settled message.
    Feedback(Seq, Happening),
    /// Idempotency keys.
    Keys(Vec<Key>),
}

impl Job {
    /// How many rows it touches.
    fn rows(&self) -> usize {
        match self {
            Self::Receipts(receipts, _) => receipts.len(),
            Self::Feedback(..) => 1,
            Self::Keys(keys) => keys.len(),
        }
    }
}

/// A job, its number, and when it came.
#[derive(Debug)]
pub struct Numbered {
    no: u64,
    since: Mono,
    /// What is to be done.
    pub job: Job,
}

/// What is to be done now.
#[derive(Debug)]
pub enum Next {
    /// Apply these, in order.
    Apply(Vec<Numbered>),
    /// Nothing yet.
    Wait,
    /// End.
    Stop,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ending {
    #[default]
    No,
    Flush,
    Abandon,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Numbered>,
    /// Rows in `queue`.
    rows: usize,
    next_no: u64,
    /// With the number of the job that brought it last.
    receipts: BTreeMap<Seq, (u64, Arc<Receipt>)>,
    feedback: BTreeMap<Seq, Vec<(u64, Happening)>>,
    /// Entries in `feedback`.
    feedbacks: usize,
    keys: BTreeMap<u64, (u64, Key)>,
    /// Receipts handed over and not applied.
    backlog: usize,
    applied: u64,
    /// Somebody waits for what is in the queue.
    is_urgent: bool,
    ending: Ending,
    error: Option<String>,
}

/// What was handed over and is not in SQLite yet.
pub struct Waiting {
    inner: Mutex<Inner>,
    /// There is more to do.
    work: Condvar,
    /// Something was applied.
    done: Condvar,
    clock: Arc<dyn BootClock>,
}

impl Waiting {
    /// Nothing waits; the record covers the journal up to `applied`.
    pub fn new(applied: u64, clock: Arc<dyn BootClock>) -> Self {
        let inner = Inner {
            applied,
            ..Inner::default()
        };
        Self {
            inner: Mutex::new(inner),
            work: Condvar::new(),
            done: Condvar::new(),
            clock,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a job; `rows_max` rows in the queue wake the thread at once.
    pub fn add(&self, job: Job, rows_max: usize) {
        let mut inner = self.inner();
        if matches!(job, Job::Feedback(..)) && inner.feedbacks >= FEEDBACK_MAX {
            return;
        }
        let no = inner.next_no;
        inner.next_no += 1;
        inner.rows += job.rows();
        match &job {
            Job::Receipts(receipts, _) => {
                inner.backlog += receipts.len();
                for receipt in receipts {
                    inner
                        .receipts
                        .insert(receipt.seq, (no, Arc::clone(receipt)));
                }
            }
            Job::Feedback(seq, happening) => {
                let entry = (no, happening.clone());
                inner.feedback.entry(*seq).or_default().push(entry);
                inner.feedbacks += 1;
            }
            Job::Keys(keys) => {
                inner
                    .keys
                    .extend(keys.iter().map(|key| (key.hash, (no, *key))));
            }
        }
        let since = self.clock.mono();
        inner.queue.push_back(Numbered { no, since, job });
        if inner.queue.len() == 1 || inner.rows >= rows_max {
            self.work.notify_one();
        }
    }

    /// Has what waits applied soon, however little it is.
    pub fn hasten(&self) {
        let mut inner = self.inner();
        inner.is_urgent = !inner.queue.is_empty();
        if inner.is_urgent {
            self.work.notify_one();
        }
    }

    /// What is to be done now: a batch, once it is full or old enough.
    pub fn next(&self, rows_max: usize, batch_time: Nanos) -> Next {
        let now = self.clock.mono();
        let mut inner = self.inner();
        match inner.left(now, rows_max, batch_time) {
            None => Next::Stop,
            Some(Nanos::ZERO) => Next::Apply(inner.take(rows_max)),
            Some(_) => Next::Wait,
        }
    }

    /// When there is a batch to apply, if no more comes.
    pub fn due(&self, rows_max: usize, batch_time: Nanos) -> Mono {
        let now = self.clock.mono();
        let left = self.inner().left(now, rows_max, batch_time);
        left.filter(|left| *left != Nanos::MAX)
            .map_or(Mono::NEVER, |left| now + left)
    }

    /// Waits until there is something to be done, at most so long.
    pub fn wait(&self, rows_max: usize, batch_time: Nanos, rest: Nanos) {
        let begun = self.clock.mono();
        let mut inner = self.inner();
        loop {
            let now = self.clock.mono();
            let left = inner.left(now, rows_max, batch_time);
            let left = left.map_or(Nanos::ZERO, |left| left.min(rest.minus(now.since(begun))));
            if left == Nanos::ZERO {
                return;
            }
            inner = self.wait_for(&self.work, inner, Duration::from_nanos(left.0));
        }
    }

    /// Waits before another try; false if it would be in vain since all ends.
    pub fn pause(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut inner = self.inner();
        while inner.ending == Ending::No {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            inner = self.wait_for(&self.work, inner, left);
        }
        false
    }

    /// Forgets what is in SQLite now.
    pub fn applied(&self, batch: Vec<Numbered>) {
        let Some(last) = batch.last().map(|job| job.no) else {
            return;
        };
        for Numbered { job, .. } in batch {
            match job {
                Job::Receipts(receipts, through) => {
                    for slice in receipts.chunks(SLICE) {
                        self.inner().forget_receipts(slice, last);
                    }
                    if let Some(through) = through {
                        let mut inner = self.inner();
                        inner.applied = inner.applied.max(through);
                    }
                }
                Job::Feedback(seq, _) => self.inner().forget_feedback(seq, last),
                Job::Keys(keys) => {
                    for slice in keys.chunks(SLICE) {
                        self.inner().forget_keys(slice, last);
                    }
                }
            }
        }
        self.succeeded();
    }

    /// Notes that all is well.
    pub fn succeeded(&self) {
        self.inner().error = None;
        self.done.notify_all();
    }

    /// Notes what went wrong.
    pub fn failed(&self, error: String) {
        self.inner().error = Some(error);
        self.done.notify_all();
    }

    /// What went wrong last, if nothing succeeded since.
    pub fn error(&self) -> Option<String> {
        self.inner().error.clone()
    }

    /// Asks the thread to end, after it has applied what waits if `flush`.
    pub fn end(&self, flush: bool) {
        let mut inner = self.inner();
        if inner.ending == Ending::No || !flush {
            inner.ending = if flush {
                Ending::Flush
            } else {
                Ending::Abandon
            };
        }
        self.work.notify_all();
    }

    /// How many receipts wait.
    pub fn backlog(&self) -> usize {
        self.inner().backlog
    }

    /// The journal position up to which everything is applied.
    pub fn position(&self) -> u64 {
        self.inner().applied
    }

    /// Waits until `is_so` holds of the applied position and the last error;
    /// whether it does in time.
    pub fn wait_until(&self, within: Duration, is_so: impl Fn(u64, Option<&str>) -> bool) -> bool {
        let until = Instant::now() + within;
        let mut inner = self.inner();
        loop {
            if is_so(inner.applied, inner.error.as_deref()) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = self.wait_for(&self.done, inner, left);
        }
    }

    /// The receipt of a message, if it waits.
    pub fn receipt(&self, seq: Seq) -> Option<Arc<Receipt>> {
        let inner = self.inner();
        inner
            .receipts
            .get(&seq)
            .map(|(_, receipt)| Arc::clone(receipt))
    }

    /// What happened to a message after it was settled, and waits.
    pub fn feedback(&self, seq: Seq) -> Vec<Happening> {
        let inner = self.inner();
        let waiting = inner.feedback.get(&seq).into_iter().flatten();
        waiting.map(|(_, happening)| happening.clone()).collect()
    }

    /// A key, if it waits.
    pub fn key(&self, hash: u64) -> Option<Key> {
        self.inner().keys.get(&hash).map(|(_, key)| *key)
    }

    /// Up to `max` waiting receipts with numbers below `before` that match,
    /// newest first.
    pub fn matching(
        &self,
        before: Option<Seq>,
        max: usize,
        matches: impl Fn(&Receipt) -> bool,
    ) -> Vec<Arc<Receipt>> {
        let mut found = Vec::new();
        let mut end = before.map_or(Bound::Unbounded, Bound::Excluded);
        while found.len() < max {
            let slice: Vec<Arc<Receipt>> = {
                let inner = self.inner();
                let range = inner.receipts.range((Bound::Unbounded, end)).rev();
                range
                    .take(SLICE)
                    .map(|(_, (_, receipt))| Arc::clone(receipt))
                    .collect()
            };
            let Some(last) = slice.last().map(|receipt| receipt.seq) else {
                break;
            };
            found.extend(slice.into_iter().filter(|receipt| matches(receipt)));
            end = Bound::Excluded(last);
        }
        found.truncate(max);
        found
    }

    fn wait_for<'a>(
        &self,
        signal: &Condvar,
        inner: MutexGuard<'a, Inner>,
        span: Duration,
    ) -> MutexGuard<'a, Inner> {
        let waited = signal.wait_timeout(inner, span);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Inner {
    /// How long until something is to be done; none if all is at its end.
    fn left(&self, now: Mono, rows_max: usize, batch_time: Nanos) -> Option<Nanos> {
        let oldest = self.queue.front().map(|first| now.since(first.since));
        match (self.ending, oldest) {
            (Ending::Abandon, _) | (Ending::Flush, None) => None,
            (Ending::Flush, Some(_)) => Some(Nanos::ZERO),
            (Ending::No, Some(_)) if self.rows >= rows_max || self.is_urgent => Some(Nanos::ZERO),
            (Ending::No, Some(age)) => Some(batch_time.minus(age)),
            (Ending::No, None) => Some(Nanos::MAX),
        }
    }

    fn take(&mut self, rows_max: usize) -> Vec<Numbered> {
        let mut batch = Vec::new();
        let mut rows = 0;
        while let Some(first) = self.queue.front() {
            let more = first.job.rows();
            if !batch.is_empty() && rows + more > rows_max {
                break;
            }
            rows += more;
            batch.extend(self.queue.pop_front());
        }
        self.rows -= rows;
        self.is_urgent = false;
        batch
    }

    fn forget_receipts(&mut self, receipts: &[Arc<Receipt>], last: u64) {
        self.backlog -= receipts.len();
        for receipt in receipts {
            let entry = self.receipts.get(&receipt.seq);
            if entry.is_some_and(|(no, _)| *no <= last) {
                self.receipts.remove(&receipt.seq);
            }
        }
    }

    fn forget_feedback(&mut self, seq: Seq, last: u64) {
        if let Some(entries) = self.feedback.get_mut(&seq) {
            let before = entries.len();
            entries.retain(|(no, _)| *no > last);
            self.feedbacks -= before - entries.len();
            if entries.is_empty() {
                self.feedback.remove(&seq);
            }
        }
    }

    fn forget_keys(&mut self, keys: &[Key], last: u64) {
        for key in keys {
            let entry = self.keys.get(&key.hash);
            if entry.is_some_and(|(no, _)| *no <= last) {
                self.keys.remove(&key.hash);
            }
        }
    }
}
