//! The counts of one key, over all windows.

use super::counter::Counter;
use super::ring::Ring;
use super::window::Window;
use crate::time::{Mono, Nanos};

const ALL: usize = Counter::ALL.len();
const LONG: usize = Counter::LONG;
/// The shortest slots: what falls into one of them falls into one slot of each
/// longer window, since their lengths are multiples of it.
const SLOT: Nanos = Window::Minute.slot();

/// The counts of one key. Its size is bounded: about 5 KB, and 80 bytes of a key
/// that was heard of once.
///
/// What happens now is counted in one place only; when a slot of the shortest
/// window ends, its counts are added to all windows at once.
#[derive(Clone, Debug)]
pub struct Tally {
    current: [u32; ALL],
    /// The number of the slot that `current` counts.
    number: u64,
    /// When it was first counted after a minute of silence.
    woke_at: Mono,
    /// What earlier slots counted; none if there is none.
    past: Option<Box<Past>>,
}

/// The counts of the slots that are over.
#[derive(Clone, Debug)]
struct Past {
    minute: Ring<12, ALL>,
    quarter: Ring<30, ALL>,
    hour: Ring<30, LONG>,
    day: Ring<48, LONG>,
    week: Ring<28, LONG>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            current: [0; ALL],
            number: 0,
            woke_at: Mono::NEVER,
            past: None,
        }
    }
}

impl Default for Past {
    fn default() -> Self {
        Self {
            minute: Ring::new(Window::Minute.slot()),
            quarter: Ring::new(Window::QuarterHour.slot()),
            hour: Ring::new(Window::Hour.slot()),
            day: Ring::new(Window::Day.slot()),
            week: Ring::new(Window::Week.slot()),
        }
    }
}

impl Past {
    fn sum(&self, now: Mono, window: Window, place: usize, slots: u64) -> u64 {
        match window {
            Window::Minute => self.minute.sum(now, place, slots),
            Window::FiveMinutes | Window::QuarterHour => self.quarter.sum(now, place, slots),
            Window::Hour => self.hour.sum(now, place, slots),
            Window::Day => self.day.sum(now, place, slots),
            Window::Week => self.week.sum(now, place, slots),
        }
    }

    fn add(&mut self, at: Mono, place: usize, count: u32) {
        self.minute.add(at, place, count);
        self.quarter.add(at, place, count);
        if place < LONG {
            self.hour.add(at, place, count);
            self.day.add(at, place, count);
            self.week.add(at, place, count);
        }
    }
}

impl Tally {
    /// So many more of `counter`.
    pub fn add(&mut self, now: Mono, counter: Counter, count: u32) {
        self.turn_to(now);
        if let Some(current) = self.current.get_mut(counter.place()) {
            *current = current.saturating_add(count);
        }
    }

    /// One more of each of these.
    pub fn add_each(&mut self, now: Mono, counters: &[Counter]) {
        self.turn_to(now);
        for counter in counters {
            if let Some(current) = self.current.get_mut(counter.place()) {
                *current = current.saturating_add(1);
            }
        }
    }

    /// How many there were in `window`. Nothing if that counter is not counted
    /// for so long, see [`Counter::is_long`].
    pub fn count(&self, now: Mono, window: Window, counter: Counter) -> u64 {
        if window.is_long() && !counter.is_long() {
            return 0;
        }
        let place = counter.place();
        let slots = window.length().0 / window.slot().0;
        let past = self.past.as_ref();
        let before = past.map_or(0, |past| past.sum(now, window, place, slots));
        // What is not yet added counts as long as its slot would.
        let width = window.slot().0;
        let own = self.number * SLOT.0 / width;
        let is_within = (now.0 / width).saturating_sub(own) < slots;
        let current = self.current.get(place).copied().unwrap_or(0);
        before + u64::from(if is_within { current } else { 0 })
    }

    /// How many there were a second, over the last minute or since it was first
    /// counted in it; over the last slots if there were more.
    pub fn lately(&self, now: Mono, counter: Counter) -> f64 {
        let minute = self.count(now, Window::Minute, counter) as f64;
        let awake = now.since(self.woke_at).as_secs_f64().clamp(1.0, 60.0);
        let before = Mono(now.0.saturating_sub(SLOT.0));
        let past = self.past.as_ref();
        let last = past.map_or(0, |past| past.minute.sum_of(before, counter.place())) as f64;
        (minute / awake).max(last / SLOT.as_secs_f64())
    }

    /// Another slot of the shortest window begins: what the last one counted
    /// joins all windows. A clock that stands a little behind goes on counting
    /// where it was.
    #[inline]
    fn turn_to(&mut self, now: Mono) {
        let number = now.0 / SLOT.0;
        if self.woke_at == Mono::NEVER {
            self.woke_at = now;
        }
        if number > self.number {
            self.begin_slot(now, number);
        }
    }

    fn begin_slot(&mut self, now: Mono, number: u64) {
        if (number - self.number) * SLOT.0 > Window::Minute.length().0 {
            self.woke_at = now;
        }
        let at = Mono(self.number * SLOT.0);
        let counts = std::mem::replace(&mut self.current, [0; ALL]);
        self.number = number;
        for (place, count) in counts.into_iter().enumerate() {
            if count > 0 {
                self.past.get_or_insert_default().add(at, place, count);
            }
        }
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        let past = self.past.as_ref();
        size_of::<Self>() + past.map_or(0, |_| size_of::<Past>())
    }
}
