//! Calendar window: at most `count` tokens between two boundaries of a zone's
//! calendar.
//!
//! Boundaries are worked out once per window that is used. The wall clock may
//! step: the last few windows that were used are remembered with their counts,
//! and every window before those is closed, so a step back never opens a
//! quota that was already spent. A clock that leaps far ahead and returns
//! finds its window as it left it, instead of waiting for the day it leapt to.

use super::algorithm::{Fill, Until};
use super::need::Need;
use super::spec::{Period, Zone};
use crate::time::{Mono, Nanos, Now, Wall};

/// How many windows are remembered.
const REMEMBERED_MAX: usize = 4;

/// A window of the calendar and what was used in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first nanosecond.
    pub start: Wall,
    /// The first nanosecond of the next.
    pub end: Wall,
    /// Tokens taken between them.
    pub used: u32,
}

impl Span {
    fn holds(&self, wall: Wall) -> bool {
        self.start <= wall && wall < self.end
    }
}

/// What is kept of a quota for others: a share, which sinks to nothing by the
/// end of each window, and never more than a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// At the beginning of a window.
    pub share: Need,
    /// The bound.
    pub most: Need,
}

impl Kept {
    /// When, from `wall` on and before the window ends, no more than `spare` is
    /// kept any more.
    fn sinks_below(&self, spare: Need, wall: Wall, (start, end): (Wall, Wall)) -> Option<Wall> {
        if self.share.min(self.most) <= spare {
            return Some(wall);
        }
        // What is kept is `share * time left / length`, rounded down.
        let length = u128::from(end.since(start).0);
        let below = (u128::from(spare.0) + 1) * length;
        let left = (below - 1) / u128::from(self.share.0);
        let left = u64::try_from(left)
            .unwrap_or(u64::MAX)
            .min(end.since(wall).0);
        (left > 0).then(|| Wall(end.0.saturating_sub_unsigned(left)))
    }
}

/// The quota of a minute, an hour or a day.
#[derive(Clone, Debug)]
pub struct CalendarWindow {
    count: u32,
    period: Period,
    zone: Zone,
    /// Windows that were used, earliest first.
    spans: Vec<Span>,
    closed_before: Wall,
}

impl CalendarWindow {
    /// A quota of which nothing was used, or all of the current window.
    pub fn new(count: u32, period: Period, zone: Zone, now: Wall, fill: Fill) -> Self {
        let mut calendar = Self {
            count,
            period,
            zone,
            spans: Vec::new(),
            closed_before: Wall(i64::MIN),
        };
        if fill == Fill::Empty {
            calendar.take(now, count);
        }
        calendar
    }

    /// A quota with windows that were used before, and `spent` tokens that may
    /// have been taken since: they count in every window that is not over.
    pub fn restore(
        (count, period, zone): (u32, Period, Zone),
        spans: impl Iterator<Item = Span>,
        spent: u64,
        now: Wall,
    ) -> Self {
        let mut calendar = Self::new(count, period, zone, now, Fill::Full);
        let current = calendar.period.around(now, &calendar.zone);
        calendar.closed_before = current.0;
        calendar.spans = spans
            .filter(|span| span.end > now)
            .take(REMEMBERED_MAX)
            .collect();
        calendar.take(now, 0);
        let spent = u32::try_from(spent).unwrap_or(u32::MAX);
        for span in &mut calendar.spans {
            span.used = span.used.saturating_add(spent);
        }
        calendar
    }

    /// What is left at `wall`, and when that may change.
    fn left(&self, wall: Wall) -> (u32, Wall) {
        match self.spans.iter().rev().find(|span| span.holds(wall)) {
            Some(span) => (self.count.saturating_sub(span.used), span.end),
            None if wall < self.closed_before => (0, self.closed_before),
            None => (self.count, Wall::NEVER),
        }
    }

    /// Whether `need` is left in the window of now.
    pub fn fits(&self, wall: Wall, need: Need) -> bool {
        need <= Need::whole(self.left(wall).0)
    }

    /// When `need` will be left above what is `kept`: as soon as that has sunk
    /// far enough, or at a boundary.
    pub fn until(&self, now: &Now, need: Need, kept: Kept) -> Until {
        self.until_behind(now, 0, need, kept)
    }

    /// The same behind others, who are about to take `ahead` tokens now.
    pub fn until_behind(&self, now: &Now, ahead: u32, need: Need, kept: Kept) -> Until {
        if need > Need::whole(self.count) {
            return Until::Never;
        }
        let (mut wall, mut ahead) = (now.wall, ahead);
        // Each look goes to the end of a window. Those that are known may all
        // be used up, the one behind them is not; if even there the floor has
        // not sunk by its last nanosecond, nobody can say when.
        for _ in 0..REMEMBERED_MAX + 3 {
            let (left, changes_at) = self.left(wall);
            let (start, end) = match changes_at {
                Wall::NEVER => self.period.around(wall, &self.zone),
                _ => self.span_at(wall).unwrap_or((wall, changes_at)),
            };
            let left = Need::whole(left.saturating_sub(std::mem::take(&mut ahead)));
            if need <= left {
                let spare = left.minus(need);
                if let Some(at) = kept.sinks_below(spare, wall, (start, end)) {
                    return if at > now.wall {
                        Until::At(now.mono_at(at))
                    } else {
                        Until::Now
                    };
                }
            }
            wall = end;
        }
        Until::At(Mono::NEVER)
    }

    fn span_at(&self, wall: Wall) -> Option<(Wall, Wall)> {
        let mut spans = self.spans.iter().rev();
        let span = spans.find(|span| span.holds(wall))?;
        Some((span.start, span.end))
    }

    /// The window of the calendar that holds a time.
    pub fn around(&self, wall: Wall) -> (Wall, Wall) {
        self.period.around(wall, &self.zone)
    }

    /// Takes `cost` tokens from the window of now.
    pub fn take(&mut self, wall: Wall, cost: u32) {
        if let Some(span) = self.spans.iter_mut().rev().find(|span| span.holds(wall)) {
            span.used = span.used.saturating_add(cost);
            return;
        }
        let (start, end) = self.period.around(wall, &self.zone);
        if self.spans.len() >= REMEMBERED_MAX {
            self.forget_one(start);
        }
        let place = self.spans.partition_point(|span| span.start < start);
        let used = cost;
        self.spans.insert(place, Span { start, end, used });
    }

    /// Takes tokens back that were taken at `since` and not used.
    pub fn give_back(&mut self, tokens: u32, since: Wall) {
        let mut spans = self.spans.iter_mut().rev();
        if let Some(span) = spans.find(|span| span.holds(since)) {
            span.used = span.used.saturating_sub(tokens);
        }
    }

    /// Makes room: forgets the earliest window and closes it, if it is over by
    /// `start`. Else all are ahead of the clock, and the two that stand
    /// closest become one that is used up.
    fn forget_one(&mut self, start: Wall) {
        if let Some(earliest) = self.spans.first()
            && earliest.end <= start
        {
            self.closed_before = self.closed_before.max(earliest.end);
            self.spans.remove(0);
            return;
        }
        let gaps = self.spans.iter().zip(self.spans.iter().skip(1));
        let gaps = gaps.map(|(span, next)| next.start.since(span.end));
        if let Some((place, _)) = gaps.enumerate().min_by_key(|(_, gap)| *gap) {
            let later = self.spans.remove(place + 1);
            if let Some(span) = self.spans.get_mut(place) {
                span.end = later.end;
                span.used = u32::MAX;
            }
        }
    }

    /// Goes on with another count. With another period or zone the boundaries
    /// move: the window of now then begins with all that was used in the old
    /// windows that overlap it, and those before it are closed.
    pub fn reconfigure(&mut self, wall: Wall, count: u32, period: Period, zone: Zone) {
        self.count = count;
        if period == self.period && zone.name == self.zone.name {
            return;
        }
        let (start, end) = period.around(wall, &zone);
        let overlaps = |span: &&Span| span.start < end && start < span.end;
        let used = self.spans.iter().filter(overlaps);
        let used = used.fold(0, |sum: u32, span| sum.saturating_add(span.used));
        self.spans = vec![Span { start, end, used }];
        self.closed_before = start;
        self.period = period;
        self.zone = zone;
    }

    /// Tokens taken in the window of now.
    pub fn used(&self, wall: Wall) -> u32 {
        self.count - self.left(wall).0
    }

    /// What is kept for others at `wall`: the share of the window that is still
    /// to come.
    pub fn floor(&self, wall: Wall, kept: Kept) -> Need {
        if kept.share == Need::ZERO {
            return Need::ZERO;
        }
        let span = self.span_at(wall);
        let (start, end) = span.unwrap_or_else(|| self.period.around(wall, &self.zone));
        let left = u128::from(end.since(wall).0) * u128::from(kept.share.0);
        let length = u128::from(end.since(start).0.max(1));
        Need(u64::try_from(left / length).unwrap_or(u64::MAX)).min(kept.most)
    }

    /// How long what is known of windows can matter at most. The window of a
    /// restart counts too, and may be an hour longer than most.
    pub fn lasts_for(&self, wall: Wall) -> Nanos {
        let known = self.spans.iter().map(|span| span.end.since(wall)).max();
        let next = self.period.length() + Period::Hour.length();
        known.unwrap_or_default().max(next)
    }

    /// The windows that are remembered, earliest first.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether a fresh quota would know as much, unless the clock steps back.
    pub fn is_idle(&self, wall: Wall) -> bool {
        wall >= self.closed_before && self.spans.iter().all(|span| span.end <= wall)
    }
}
