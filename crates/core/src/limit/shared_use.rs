//! What this node used of a long window that a fleet shares.
//!
//! A ledger that loses its counts is told by all nodes what they used, also by
//! those that were restarted since: so each keeps an account on disk. It is
//! written as reservations are, ahead of use and in blocks: after a crash it
//! says too much by what was promised, never too little.
//!
//! A calendar window is that of the ledger's wall clock when the tokens were
//! debited: what the node's own clock shows does not matter.

use super::calendar_window::Span;
use super::saved::{Memory, SavedWindow, SharedSaved};
use super::sliding_window::SlidingWindow;
use super::spec::{LimitSpec, Period, Zone};
use crate::engine::action::Receipt;
use crate::ledger::debits;
use crate::limit::Fill;
use crate::time::{Mono, Nanos, Now, Wall};

/// Windows of the calendar that are remembered.
const SPANS_MAX: usize = 4;

/// What was used, and when.
#[derive(Clone, Debug)]
enum Uses {
    Sliding(SlidingWindow),
    Calendar {
        period: Period,
        zone: Zone,
        spans: Vec<Span>,
        /// What an earlier process may have used, in a window that is known as
        /// soon as the ledger's time is.
        unplaced: u64,
    },
}

/// What this node used of a long window that a fleet shares.
#[derive(Clone, Debug)]
pub struct SharedUse {
    uses: Uses,
    /// The epoch of the ledger that knows of it all.
    epoch: u64,
    /// The epoch that the disk names.
    epoch_saved: u64,
    /// Whether anything was ever granted.
    is_granted: bool,
    /// When something was last used, or read from the disk.
    used_at: Mono,
}

impl SharedUse {
    /// The account that a limit needs, if it needs one.
    pub fn of(spec: &LimitSpec) -> Option<Self> {
        let uses = match spec {
            _ if !debits::is_long(spec) => return None,
            LimitSpec::SlidingWindow { count, window } => {
                Uses::Sliding(SlidingWindow::new(*count, *window, Mono(0), Fill::Full))
            }
            LimitSpec::CalendarWindow { period, zone, .. } => Uses::Calendar {
                period: *period,
                zone: zone.clone(),
                spans: Vec::new(),
                unplaced: 0,
            },
            _ => return None,
        };
        Some(Self {
            uses,
            epoch: 0,
            epoch_saved: 0,
            is_granted: false,
            used_at: Mono(0),
        })
    }

    /// Goes on from what was saved `downtime` ago; `spent` more may be used.
    pub fn restore(
        spec: &LimitSpec,
        (memory, shared): (&Memory, &SharedSaved),
        spent: u64,
        now: &Now,
        downtime: Nanos,
    ) -> Option<Self> {
        let mut fresh = Self::of(spec)?;
        (fresh.epoch, fresh.epoch_saved) = (shared.epoch, shared.epoch);
        fresh.used_at = now.mono;
        let mut before = spent;
        match (&mut fresh.uses, memory, spec) {
            (
                Uses::Sliding(window),
                Memory::SlidingWindow { taken },
                LimitSpec::SlidingWindow {
                    count,
                    window: length,
                },
            ) => {
                let aged = taken.iter();
                let aged = aged.map(|(age, tokens)| (Nanos(*age) + downtime, *tokens));
                *window = SlidingWindow::restore(*count, *length, aged, spent, now.mono);
            }
            (
                Uses::Calendar {
                    spans, unplaced, ..
                },
                Memory::CalendarWindow { spans: known },
                _,
            ) => {
                let known = known.iter().map(|(start, end, used)| Span {
                    start: Wall(*start),
                    end: Wall(*end),
                    used: *used,
                });
                spans.extend(known);
                *unplaced = spent;
            }
            (uses, memory, _) => {
                before = before.saturating_add(memory.used());
                uses.take_before(now, before);
            }
        }
        Some(fresh)
    }

    /// Goes on under another spec.
    pub fn reconfigure(self, now: &Now, spec: &LimitSpec) -> Option<Self> {
        let mut fresh = Self::of(spec)?;
        (fresh.epoch, fresh.epoch_saved) = (self.epoch, self.epoch_saved);
        (fresh.is_granted, fresh.used_at) = (self.is_granted, self.used_at);
        match (self.uses, spec) {
            (Uses::Sliding(mut sliding), LimitSpec::SlidingWindow { count, window }) => {
                sliding.reconfigure(now.mono, *count, *window);
                fresh.uses = Uses::Sliding(sliding);
            }
            (old @ Uses::Calendar { .. }, LimitSpec::CalendarWindow { period, zone, .. })
                if old.is_of(*period, zone) =>
            {
                fresh.uses = old;
            }
            (old, _) => fresh.uses.take_before(now, old.total()),
        }
        Some(fresh)
    }

    /// Tokens were granted.
    pub fn granted(&mut self, receipt: Option<Receipt>) {
        self.is_granted = true;
        if let Some(receipt) = receipt {
            self.epoch = receipt.epoch;
        }
    }

    /// Tokens that were debited on this receipt are used.
    pub fn take(&mut self, now: &Now, receipt: Option<Receipt>, cost: u32) {
        self.used_at = now.mono;
        match &mut self.uses {
            Uses::Sliding(window) => window.take(now.mono, cost),
            Uses::Calendar {
                period,
                zone,
                spans,
                unplaced,
            } => {
                let wall = receipt.map_or(now.wall, |receipt| receipt.wall);
                let more = u32::try_from(std::mem::take(unplaced)).unwrap_or(u32::MAX);
                let used = cost.saturating_add(more);
                let around = period.around(wall, zone);
                let known = spans
                    .iter_mut()
                    .find(|span| (span.start, span.end) == around);
                if let Some(span) = known {
                    span.used = span.used.saturating_add(used);
                    return;
                }
                let (start, end) = around;
                spans.push(Span { start, end, used });
                spans.sort_by_key(|span| span.start);
                if spans.len() > SPANS_MAX {
                    spans.remove(0);
                }
            }
        }
    }

    /// Whether the disk must be told of the ledger's epoch.
    pub const fn is_unsaved(&self) -> bool {
        self.epoch != self.epoch_saved
    }

    /// Whether anything was ever granted, so that something may be used.
    pub const fn is_granted(&self) -> bool {
        self.is_granted
    }

    /// It is on its way to the disk.
    pub const fn note_saved(&mut self) {
        self.epoch_saved = self.epoch;
    }

    /// What outlives a restart, how long it can matter, and what may be used
    /// besides.
    pub fn save(&self, now: &Now) -> (Memory, SharedSaved, Nanos, u64) {
        let (memory, window, lasts_for, unplaced) = match &self.uses {
            Uses::Sliding(window) => {
                let aged = window.aged(now.mono).into_iter();
                let taken = aged.map(|(age, tokens)| (age.0, tokens)).collect();
                let length = window.window();
                let saved = SavedWindow::Sliding { window: length.0 };
                (Memory::SlidingWindow { taken }, saved, length, 0)
            }
            Uses::Calendar {
                period,
                zone,
                spans,
                unplaced,
            } => {
                let spans = spans.iter();
                let spans = spans.map(|span| (span.start.0, span.end.0, span.used));
                let memory = Memory::CalendarWindow {
                    spans: spans.collect(),
                };
                let saved = SavedWindow::calendar(*period, zone);
                (memory, saved, period.length().times(2), *unplaced)
            }
        };
        let epoch = self.epoch;
        (memory, SharedSaved { epoch, window }, lasts_for, unplaced)
    }

    /// Whether nothing is known that a ledger may have to be told.
    pub fn is_idle(&self, now: &Now) -> bool {
        match &self.uses {
            Uses::Sliding(window) => window.is_idle(now.mono),
            // The ledger's wall clock may be another one than this node's: two
            // whole periods after the last use the window is over by any clock.
            Uses::Calendar {
                period,
                spans,
                unplaced,
                ..
            } => {
                let is_over = now.mono.since(self.used_at) > period.length().times(2);
                *unplaced == 0 && (spans.is_empty() || is_over)
            }
        }
    }
}

impl Uses {
    fn is_of(&self, other: Period, of: &Zone) -> bool {
        matches!(self, Self::Calendar { period, zone, .. }
            if *period == other && zone.name == of.name)
    }

    /// All that is known to be used, whenever that was.
    fn total(&self) -> u64 {
        match self {
            Self::Sliding(window) => window.aged(Mono(0)).iter().map(|it| u64::from(it.1)).sum(),
            Self::Calendar {
                spans, unplaced, ..
            } => {
                let used = spans.iter().map(|span| u64::from(span.used));
                used.sum::<u64>().saturating_add(*unplaced)
            }
        }
    }

    /// Counts what was used under another algorithm as used as late as can be.
    fn take_before(&mut self, now: &Now, tokens: u64) {
        match self {
            Self::Sliding(window) => {
                let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
                if tokens > 0 {
                    window.take(now.mono, tokens);
                }
            }
            Self::Calendar { unplaced, .. } => *unplaced = unplaced.saturating_add(tokens),
        }
    }
}
