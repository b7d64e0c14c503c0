//! Stopping, asking with single messages, and windows that end with the hour.
//!
//! Several refusals in a row may mean "too fast" or "not at all for a while". A
//! pause of seconds and one message tell. If that is refused, it is a block:
//! hold, ask with one message, hold four times as long. Blocks often end with
//! the hour or the day, so the turn of the hour is asked once, and midnight is
//! never slept through.

use super::{At, Controller, HOUR, MINUTE, Mode, NEVER_REFUSED};
use crate::time::{NANOS_PER_SECOND, Wall};

const SECOND: u64 = NANOS_PER_SECOND;
/// The first hold: a little more than the five minutes that are customary.
const HOLD_FIRST: u64 = 330 * SECOND;
const HOLD_LONGEST: u64 = 4 * HOUR + 24 * MINUTE;
const HOLD_GROWS: u64 = 4;
/// A block so soon after another is worse than the last.
const SOON: u64 = 2 * HOUR;
/// A block of more than that is worth an alert.
const LONG: u64 = 2 * HOUR;
/// A block is remembered for so long.
const REMEMBERED: u64 = 24 * HOUR;
/// After the turn of the hour.
const PAST_THE_HOUR: u64 = 2 * SECOND;
/// So many hints make it likely that a block ends with the hour; twice as many,
/// or two that were asked for, make it certain.
const HOURLY: i8 = 2;
/// Below this many messages a second a pause is not worth it.
const SLOW: f64 = 0.2;
/// A probe without an answer is given up after.
const PROBE_LOST: u64 = 10 * MINUTE;

/// What is known of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    /// When it stopped.
    pub(super) since: u64,
    /// The next probe is due.
    pub(super) until: u64,
    /// The hold in progress.
    pub(super) hold: u64,
    /// When the probe under way was sent.
    pub(super) probe: Option<u64>,
    /// The probe that is due next stands at the turn of the hour.
    pub(super) at_the_hour: bool,
    /// The turn of an hour was asked already.
    pub(super) hour_asked: bool,
    /// The hold that last worked, and when.
    pub(super) worked: u64,
    pub(super) ended_at: u64,
    /// A second block outlasted the hold that had ended the first.
    pub(super) grows: bool,
    /// It stopped in a trial.
    pub(super) in_trial: bool,
    /// It stopped at a rate that had been borne for a quarter of an hour.
    pub(super) steady: bool,
    /// Blocks in a row without a proven rate between them.
    pub(super) blind: u8,
    /// Turns of the hour that ended a block, less those that did not.
    pub(super) hourly: i8,
    /// Accepted in this hour of the wall clock.
    pub(super) hour: i64,
    pub(super) accepted: u32,
    /// The far end said: not before.
    pub(super) told_until: u64,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            since: 0,
            until: 0,
            hold: 0,
            probe: None,
            at_the_hour: false,
            hour_asked: false,
            worked: 0,
            ended_at: 0,
            grows: false,
            in_trial: false,
            steady: false,
            blind: 0,
            hourly: 0,
            hour: i64::MIN,
            accepted: 0,
            told_until: 0,
        }
    }
}

impl Block {
    pub(super) fn told_to_wait(&mut self, until: u64) {
        self.told_until = self.told_until.max(until);
    }

    /// Until when the far end wants nothing, if it said so.
    pub(super) fn waits(&self, tick: u64) -> Option<u64> {
        (tick < self.told_until).then_some(self.told_until)
    }

    /// Forgets a wait that is over.
    pub(super) fn waited(&mut self, tick: u64) {
        if tick >= self.told_until {
            self.told_until = 0;
        }
    }

    /// When the wait that the far end asked for ends; 0 without one.
    pub(super) const fn wait_end(&self) -> u64 {
        self.told_until
    }

    pub(super) fn probe_sent(&mut self, tick: u64) {
        if self.probe.is_none() {
            self.probe = Some(tick);
        }
    }

    /// Whether a probe may be sent now; else when to look again.
    pub(super) fn probe_due(&self, tick: u64) -> Result<(), u64> {
        let due = self.wake();
        if tick >= due { Ok(()) } else { Err(due) }
    }

    /// When a probe may be sent.
    pub(super) fn wake(&self) -> u64 {
        match self.probe {
            Some(sent) => sent.saturating_add(PROBE_LOST),
            None => self.until,
        }
    }

    pub(super) fn is_probe(&self, sent: u64) -> bool {
        self.probe.is_some_and(|probe| sent >= probe)
    }

    /// Whether there was a block not too long ago.
    pub(super) fn is_remembered(&self, tick: u64) -> bool {
        self.worked > 0 && tick.saturating_sub(self.ended_at) < REMEMBERED
    }

    /// Whether the last block was so long that none must follow for a day.
    pub(super) const fn is_long(&self) -> bool {
        self.worked >= LONG
    }

    /// What another block would cost at `tick`, if one is to be feared.
    pub(super) fn cost(&self, tick: u64) -> Option<u64> {
        self.is_remembered(tick).then(|| self.next_hold(tick))
    }

    fn next_hold(&self, tick: u64) -> u64 {
        let again = tick.saturating_sub(self.ended_at);
        let hold = match self.worked {
            0 => HOLD_FIRST,
            worked if again < SOON && (worked < HOUR || self.grows) => worked / 10 * 22,
            worked => worked,
        };
        hold.clamp(HOLD_FIRST, HOLD_LONGEST)
    }

    pub(super) fn accepted(&mut self, wall: Wall) {
        let hour = hour_of(wall);
        if hour != self.hour {
            self.hour = hour;
            self.accepted = 0;
        }
        self.accepted = self.accepted.saturating_add(1);
    }

    /// Sets the time of the next probe.
    fn hold_for(&mut self, at: At, hold: u64) {
        self.hold = hold;
        self.probe = None;
        self.until = at.tick.saturating_add(hold);
        self.at_the_hour = false;
        let hour = at.tick.saturating_add(until_hour(at.wall, 1));
        let likely = self.hourly >= HOURLY || (self.hourly >= 0 && hold >= HOUR);
        if hour < self.until && !self.hour_asked && likely {
            self.until = hour;
            self.at_the_hour = true;
        }
        let midnight = at.tick.saturating_add(until_hour(at.wall, 24));
        if midnight <= self.until {
            self.until = midnight;
            self.at_the_hour = true;
        }
    }
}

fn hour_of(wall: Wall) -> i64 {
    wall.0.div_euclid(HOUR as i64)
}

/// The time until just after the next hour that `hours` divide.
fn until_hour(wall: Wall, hours: i64) -> u64 {
    let length = hours * HOUR as i64;
    let gone = wall.0.rem_euclid(length);
    length.abs_diff(gone).saturating_add(PAST_THE_HOUR)
}

impl Controller {
    /// Refused several times in a row.
    pub(super) fn stop(&mut self, at: At) {
        let seconds = (4.0 / self.rate).clamp(10.0, 600.0);
        self.block.since = at.tick;
        self.block.in_trial = self.mode == Mode::Trial;
        let flowed = at.tick.saturating_sub(self.changed_at);
        let again = at.tick.saturating_sub(self.block.ended_at) < SOON;
        self.block.steady = flowed >= 15 * MINUTE && !(again && self.block.worked > 0);
        self.block.hour_asked = false;
        self.block.probe = None;
        let judge = self.judge;
        if self.block.is_remembered(at.tick) || self.rate < SLOW {
            // It is one that blocks, and asking at once would make it worse; or
            // so little is sent that holding costs no more than asking.
            self.begin_block(at);
        } else {
            self.block.until = at.tick + (seconds * SECOND as f64) as u64;
            self.change(at, self.rate, Mode::Pause);
        }
        // What was seen before the stop decides about the cut after it.
        self.judge = judge;
    }

    fn begin_block(&mut self, at: At) {
        let hold = self.block.next_hold(at.tick);
        self.change(at, self.rate, Mode::Block);
        self.block.hold_for(at, hold);
    }

    /// The reply to the one message.
    pub(super) fn probe_answered(&mut self, at: At, refused: Option<bool>) {
        match refused {
            None => {
                self.block.probe = None;
                self.block.until = at.tick + 10 * SECOND;
            }
            Some(true) => self.probe_refused(at),
            Some(false) if self.mode == Mode::Pause => self.resume(at),
            Some(false) => self.block_over(at),
        }
    }

    fn probe_refused(&mut self, at: At) {
        if self.mode == Mode::Pause {
            let judge = self.judge;
            self.begin_block(at);
            self.judge = judge;
            return;
        }
        if self.block.at_the_hour {
            // A guess that failed says nothing about the hold.
            self.block.hour_asked = true;
            self.block.hourly = -1;
            let hold = self.block.hold;
            return self.block.hold_for(at, hold);
        }
        if self.block.worked > 0 && self.block.hold >= self.block.worked {
            self.block.grows = true;
        }
        let hold = self.block.hold.saturating_mul(HOLD_GROWS);
        self.block.hold_for(at, hold.min(HOLD_LONGEST));
    }

    /// It was too fast, no block.
    fn resume(&mut self, at: At) {
        if self.block.in_trial && self.good > 0.0 {
            self.mode = Mode::Trial;
            return self.back(at, 0.99);
        }
        self.mode = Mode::Cruise;
        self.cut(at);
    }

    fn block_over(&mut self, at: At) {
        let block = self.block;
        if block.at_the_hour {
            self.block.hourly = (block.hourly + 2).min(2 * HOURLY);
            return self.hour_over(at);
        }
        // The turn of an hour within the last hold may have been what ended it.
        let turned =
            hour_of(at.wall) != hour_of(Wall(at.wall.0.saturating_sub_unsigned(block.hold)));
        self.block.hourly = match block.hourly {
            hourly if turned && hourly >= 0 => (hourly + 1).min(HOURLY),
            hourly if turned => hourly,
            _ => -1,
        };
        self.block.worked = block.hold;
        self.block.ended_at = at.tick;
        self.bad = self.rate;
        self.step = super::climb::STEP_LEAST;
        self.wait_until = at.tick;
        if block.in_trial && self.good > 0.0 {
            self.block.blind = 0;
            let rate = 0.99 * self.good;
            return self.change(at, rate, Mode::Cruise);
        }
        let share = match block.blind {
            // Then it was not the rate: a quota, or a bad day over there.
            _ if self.good > 0.0 && block.steady => 0.97,
            _ if self.good > 0.0 => 0.85,
            // So short that it may just have been a slow bucket.
            _ if block.hold <= 15 * MINUTE => 0.5,
            // So long that the next must be far away.
            0 if self.block.is_long() => 1.0 / 16.0,
            0 => 0.25,
            _ => 0.125,
        };
        self.block.blind = if self.good > 0.0 {
            0
        } else {
            block.blind.saturating_add(1)
        };
        let rate = share * self.rate;
        self.good = 0.0;
        self.change(at, rate, Mode::Prove);
    }

    /// A block ended with the hour: a count that starts anew, not a punishment.
    fn hour_over(&mut self, at: At) {
        let accepted = f64::from(self.block.accepted);
        let short = at.tick.saturating_sub(self.block.since) < HOUR;
        if self.block.hourly >= 2 * HOURLY && short && accepted > 0.0 {
            let rate = (accepted / 3_600.0).min(self.rate);
            self.bad = NEVER_REFUSED;
            self.good = 0.985 * rate;
            self.best = self.good;
            self.step = 0.03;
            self.wait_until = at.tick + 2 * HOUR;
            let rate = self.good;
            return self.change(at, rate, Mode::Window);
        }
        let mode = if self.good > 0.0 {
            Mode::Cruise
        } else {
            Mode::Prove
        };
        let rate = if self.block.in_trial && self.good > 0.0 {
            self.good
        } else {
            self.rate
        };
        self.change(at, rate, mode);
    }
}
