//! The counts of one key, over all windows.

use super::counter::Counter;
use super::ring::Ring;
use super::window::Window;
use crate::time::Mono;

const ALL: usize = Counter::ALL.len();
const LONG: usize = Counter::LONG;

/// The counts of one key. Its size is fixed, about 5 KB.
#[derive(Clone, Debug)]
pub struct Tally {
    minute: Ring<12, ALL>,
    quarter: Ring<30, ALL>,
    hour: Ring<30, LONG>,
    day: Ring<48, LONG>,
    week: Ring<28, LONG>,
}

impl Default for Tally {
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

impl Tally {
    /// So many more of `counter`.
    pub fn add(&mut self, now: Mono, counter: Counter, count: u32) {
        let place = counter.place();
        self.minute.add(now, place, count);
        self.quarter.add(now, place, count);
        if counter.is_long() {
            self.hour.add(now, place, count);
            self.day.add(now, place, count);
            self.week.add(now, place, count);
        }
    }

    /// How many there were in `window`. Nothing if that counter is not counted
    /// for so long, see [`Counter::is_long`].
    pub fn count(&self, now: Mono, window: Window, counter: Counter) -> u64 {
        let place = counter.place();
        let slots = window.length().0 / window.slot().0;
        match window {
            Window::Minute => self.minute.sum(now, place, slots),
            Window::FiveMinutes | Window::QuarterHour => self.quarter.sum(now, place, slots),
            Window::Hour => self.hour.sum(now, place, slots),
            Window::Day => self.day.sum(now, place, slots),
            Window::Week => self.week.sum(now, place, slots),
        }
    }
}
