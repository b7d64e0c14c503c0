//! Body segments: which to rewrite, and with which bodies.

use std::collections::BTreeSet;

use outflow_core::message::Seq;
use outflow_core::time::{Nanos, Wall};

use super::{Job, SCAN_MAX};
use crate::index::Share;
use crate::journal::place::Place;
use crate::journal::task::Task;
use crate::keeper::Chore;
use crate::recovery::BodyFile;
use crate::store::EmbeddedStore;

/// How long a segment that could not be rewritten is left alone, at first and
/// at most.
const RETRY_MIN: Nanos = Nanos::from_secs(60);
const RETRY_MAX: Nanos = Nanos::from_secs(3_600);

/// How many bodies a segment has, dead ones too.
#[derive(Clone, Copy)]
enum Held {
    /// It was begun by this process: the index has seen all of them.
    Seen,
    /// It was rewritten with so many, which had so many bytes.
    Rewritten { count: u64, bytes: u64 },
    /// An earlier process wrote it. The messages of dead bodies may be gone
    /// from the journal, so it counts as having some.
    Unknown,
}

/// What is known of a body segment.
#[derive(Clone, Copy)]
pub(super) struct Bodies {
    bytes: u64,
    held: Held,
    /// Since when something in it is dead, at the earliest.
    dead_since: Option<Wall>,
    /// After a failure: when to try again, and how long to wait after the next.
    retry_at: Wall,
    retry_after: Nanos,
}

impl Bodies {
    /// A segment that this process has begun.
    pub(super) const fn begun(bytes: u64) -> Self {
        Self {
            bytes,
            held: Held::Seen,
            dead_since: None,
            retry_at: Wall(i64::MIN),
            retry_after: RETRY_MIN,
        }
    }

    /// A segment that an earlier process has left.
    pub(super) fn found(file: &BodyFile) -> Self {
        let bytes = file.bytes;
        Self {
            held: file
                .count
                .map_or(Held::Unknown, |count| Held::Rewritten { count, bytes }),
            dead_since: Some(file.since),
            ..Self::begun(bytes)
        }
    }

    /// How many of its bodies were alive once, in bytes; none if all still are.
    fn alive_before(&self, share: &Share) -> Option<u64> {
        let (count, bytes) = match self.held {
            Held::Seen => (share.total_count, share.total),
            Held::Rewritten { count, bytes } => (count, bytes),
            Held::Unknown => (u64::MAX, self.bytes),
        };
        (share.live_count < count).then_some(bytes)
    }

    fn is_dead_for(&self, long: Nanos, now: Wall) -> bool {
        self.dead_since.is_some_and(|since| now.since(since) > long)
    }
}

impl EmbeddedStore {
    pub(super) fn share_of(&self, number: u32) -> Share {
        let share = self.index.bodies.segments.get(&number);
        share.copied().unwrap_or_default()
    }

    /// Ends the newest body segment if something in it has been dead for long.
    /// It can be given up or rewritten when the writer has answered: until then
    /// it may hold bodies of messages that the index does not know.
    pub(super) fn turn_bodies(&mut self, newest: u32, now: Wall) {
        let Some(known) = self.reclaim.bodies.get(&newest).copied() else {
            return;
        };
        self.should_rewrite(newest, known, now);
        if self.reclaim.turned != newest
            && self.reclaim.turning.is_none()
            && known.is_dead_for(self.settings.dead_bodies_for, now)
        {
            self.reclaim.turning = Some(newest);
            self.order(Task::Turn);
        }
    }

    pub(super) fn should_rewrite(&mut self, number: u32, known: Bodies, now: Wall) -> bool {
        let share = self.share_of(number);
        let before = known.alive_before(&share);
        let since = before.map(|_| known.dead_since.unwrap_or(now));
        if let Some(known) = self.reclaim.bodies.get_mut(&number) {
            known.dead_since = since;
        }
        let Some(before) = before.filter(|_| known.retry_at <= now) else {
            return false;
        };
        let live = share.live;
        live * 4 < known.bytes && live * 4 < before * 3
            || known.is_dead_for(self.settings.dead_bodies_for, now)
    }

    pub(super) fn scan_bodies(
        &mut self,
        victim: u32,
        from: Seq,
        mut found: BTreeSet<Place>,
    ) -> Job {
        let mut slots = self.index.slots.iter(from);
        for (_, slot) in slots.by_ref().take(SCAN_MAX) {
            if slot.body.segment() == victim {
                found.insert(slot.body);
            }
        }
        if let Some((from, _)) = slots.next() {
            return Job::ScanBodies {
                victim,
                from,
                found,
            };
        }
        let count = found.len() as u64;
        let living = found.into_iter().collect();
        self.reclaim.chore(Chore::Rewrite(victim, living));
        Job::Rewriting { victim, count }
    }

    /// The keeper has rewritten a segment, or could not.
    pub(super) fn bodies_rewritten(&mut self, number: u32, bytes: Option<u64>) {
        let job = std::mem::replace(&mut self.reclaim.job, Job::None);
        let now = self.clocks.1;
        let live = self.share_of(number).live;
        let Some(known) = self.reclaim.bodies.get_mut(&number) else {
            return;
        };
        match (bytes, job) {
            (Some(bytes), Job::Rewriting { victim, count }) if victim == number => {
                known.bytes = bytes;
                known.held = Held::Rewritten { count, bytes: live };
                known.dead_since = None;
                known.retry_after = RETRY_MIN;
            }
            _ => {
                known.retry_at = now + known.retry_after;
                known.retry_after = Nanos(known.retry_after.0 * 2).min(RETRY_MAX);
            }
        }
    }
}
