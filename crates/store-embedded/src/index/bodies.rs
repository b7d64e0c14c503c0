//! How much of each body segment is alive. Shared bodies are counted.

use std::collections::{BTreeMap, HashMap};

use crate::journal::place::Place;

/// How much of one segment is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes that are alive, and that ever were, as far as is known here.
    pub live: u64,
    pub total: u64,
    /// The same, counted in bodies.
    pub live_count: u64,
    pub total_count: u64,
}

/// All body segments.
#[derive(Debug, Default)]
pub struct Bodies {
    pub segments: BTreeMap<u32, Share>,
    /// Bodies that more than one message has, and how many others.
    shared: HashMap<Place, u32>,
    /// The one that stands last.
    end: Place,
    /// The last one added, by which sharing is noticed.
    last: Option<Place>,
}

impl Bodies {
    /// A message has this body. Those that share one follow one another.
    pub fn add(&mut self, body: Place) {
        self.end = self.end.max(body);
        if self.last.replace(body) == Some(body) || self.shared.contains_key(&body) {
            *self.shared.entry(body).or_default() += 1;
            return;
        }
        let share = self.segments.entry(body.segment()).or_default();
        share.live += body.size();
        share.total += body.size();
        share.live_count += 1;
        share.total_count += 1;
    }

    /// The last body of a segment, if that is the last one.
    pub fn last_in(&self, segment: u32) -> Option<Place> {
        Some(self.end).filter(|end| end.segment() == segment)
    }

    /// The number behind those of all segments that any message spoke of.
    pub fn next_segment(&self) -> u32 {
        self.end.segment() + 1
    }

    /// A message that had this body is gone.
    pub fn remove(&mut self, body: Place) {
        if self.last == Some(body) {
            self.last = None;
        }
        if let Some(others) = self.shared.get_mut(&body) {
            *others -= 1;
            if *others == 0 {
                self.shared.remove(&body);
            }
            return;
        }
        if let Some(share) = self.segments.get_mut(&body.segment()) {
            share.live = share.live.saturating_sub(body.size());
            share.live_count = share.live_count.saturating_sub(1);
        }
    }
}
