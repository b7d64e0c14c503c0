//! Body segments: which to rewrite, and with which bodies.

use std::collections::BTreeSet;

use outflow_core::message::Seq;
use outflow_core::time::{Nanos, Wall};

use super::{Bodies, Job, SCAN_MAX};
use crate::journal::place::Place;
use crate::journal::task::Task;
use crate::keeper::Chore;
use crate::store::EmbeddedStore;

/// A body that is not needed leaves the disk within a day: some time before
/// that its segment is rewritten.
const DEAD_BODIES_MAX: Nanos = Nanos::from_secs(20 * 3_600);

impl EmbeddedStore {
    pub(super) fn live_bodies(&self, number: u32) -> u64 {
        let share = self.index.bodies.segments.get(&number);
        share.map_or(0, |share| share.live)
    }

    /// Ends the newest body segment if something in it has been dead for long.
    pub(super) fn turn_bodies(&mut self, newest: u32, now: Wall) {
        let Some(known) = self.reclaim.bodies.get(&newest).copied() else {
            return;
        };
        let live = self.live_bodies(newest);
        self.should_rewrite(newest, known, live, now);
        let since = known.dead_since;
        if self.reclaim.turned != newest
            && since.is_some_and(|since| now.since(since) > DEAD_BODIES_MAX)
        {
            self.reclaim.turned = newest;
            self.order(Task::Turn);
        }
    }

    pub(super) fn should_rewrite(
        &mut self,
        number: u32,
        known: Bodies,
        live: u64,
        now: Wall,
    ) -> bool {
        let total = self
            .index
            .bodies
            .segments
            .get(&number)
            .map_or(0, |it| it.total);
        let before = known.rewritten_live.unwrap_or(total);
        if live >= before {
            return false;
        }
        let since = known.dead_since.unwrap_or(now);
        if let Some(known) = self.reclaim.bodies.get_mut(&number) {
            known.dead_since = Some(since);
        }
        live * 4 < known.bytes && live * 4 < before * 3 || now.since(since) > DEAD_BODIES_MAX
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
        let living = found.into_iter().collect();
        self.reclaim.chore(Chore::Rewrite(victim, living));
        Job::Rewriting
    }
}
