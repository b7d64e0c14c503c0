//! What a controller writes down so that it goes on after a restart.
//!
//! Its own clock is saved with it and goes on where it stopped, so a wait, a
//! hold or a trial in progress ends when it would have ended. Every figure is
//! saved bit by bit, so that a restored controller decides exactly as the other
//! would have; in words of 64 bits that survives any format.

use serde::{Deserialize, Serialize};

use super::block::Block;
use super::incident::Incident;
use super::judge::Judge;
use super::noise::Noise;
use super::surge::Surge;
use super::{Cause, Controller, Mode, Settings};
use crate::time::{Nanos, Now, Wall};

/// The order of the words below. A new order gets a new number.
const VERSION: u8 = 2;
/// What is read as well: without how much is used, and when it was saved.
const VERSION_BEFORE: u8 = 1;
/// No controller has run for longer: a century.
const TICK_MAX: u64 = 100 * 366 * 24 * super::HOUR;

/// A controller at the moment of saving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// What it was doing.
    pub mode: Mode,
    /// How its words are to be read.
    pub version: u8,
    /// All that it knew.
    pub words: Vec<i64>,
}

impl Saved {
    /// When that was, if it is known.
    pub fn saved_at(&self) -> Option<Wall> {
        let last = self.words.last().filter(|_| self.version == VERSION);
        last.copied().map(Wall)
    }
}

/// Why a saved controller was not restored. It starts anew instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Saved by another version.
    #[error("what was learnt was saved in form {0}, this version reads form {VERSION}")]
    Version(u8),
    /// Damaged, or not ours.
    #[error("what was learnt is damaged: {0}")]
    Damaged(&'static str),
}

impl Controller {
    /// All that it knows.
    pub fn save(&self, now: &Now) -> Saved {
        let (pin, pin_until) = self.pinned.unwrap_or((0.0, 0));
        let words = vec![
            self.at(now).tick,
            self.rate.to_bits(),
            self.good.to_bits(),
            self.bad.to_bits(),
            self.best.to_bits(),
            self.step.to_bits(),
            u64::from(self.failed),
            self.changed_at,
            u64::from(self.epoch),
            self.wait_until,
            self.jump_at,
            self.jump_wait,
            self.judge.weight.to_bits(),
            pair(self.judge.replies, self.judge.refused),
            pair(self.judge.lately, self.judge.lately_refused),
            u64::from(self.judge.row),
            self.block.since,
            self.block.until,
            self.block.hold,
            self.block.probe.map_or(0, |sent| sent.saturating_add(1)),
            flags(&[
                self.block.at_the_hour,
                self.block.hour_asked,
                self.block.grows,
                self.block.in_trial,
                self.pinned.is_some(),
                self.last_cause == Cause::Reputation,
                self.block.steady,
            ]),
            self.block.worked,
            self.block.ended_at,
            u64::from(self.block.blind),
            i64::from(self.block.hourly).cast_unsigned(),
            self.block.hour.cast_unsigned(),
            u64::from(self.block.accepted),
            self.block.told_until,
            self.noise.base.to_bits(),
            self.noise.share.to_bits(),
            self.noise.rate.to_bits(),
            u64::from(self.noise.cuts),
            pair(self.noise.replies, self.noise.refused),
            self.noise.checked_at,
            self.surge.recent.to_bits(),
            u64::from(self.surge.count),
            self.surge.since,
            self.incident.raise_at,
            pin.to_bits(),
            pin_until,
            self.told.to_bits(),
            u64::from(self.last_code),
            self.used_from,
            u64::from(self.used),
            now.wall.0.cast_unsigned(),
        ];
        Saved {
            mode: self.mode,
            version: VERSION,
            words: words.into_iter().map(u64::cast_signed).collect(),
        }
    }

    /// A controller as it was saved, at least `downtime` later. The cap of
    /// `settings` holds at once.
    pub fn restore(
        now: &Now,
        settings: Settings,
        saved: &Saved,
        downtime: Nanos,
    ) -> Result<Self, Unreadable> {
        if saved.version != VERSION && saved.version != VERSION_BEFORE {
            return Err(Unreadable::Version(saved.version));
        }
        let mut words = Words(saved.words.iter());
        let mut new = Self::new(now, settings);
        // It was saved when it last changed, which may be long before the end.
        let saved_at = saved.saved_at();
        let passed = saved_at.map_or(Nanos::ZERO, |at| now.wall.since(at));
        let passed = downtime.max(passed);
        let tick = words.tick()?.saturating_add(passed.0).min(TICK_MAX);
        let origin = i128::from(now.mono.0) - i128::from(tick);
        new.origin = i64::try_from(origin).map_err(|_| Unreadable::Damaged("clock"))?;
        new.mode = saved.mode;
        new.rate = words.rate()?;
        new.good = words.rate()?;
        new.bad = words.rate()?;
        new.best = words.rate()?;
        new.step = words.rate()?;
        new.failed = words.small()?;
        new.changed_at = words.tick()?;
        new.epoch = words.small()?;
        new.wait_until = words.tick()?;
        new.jump_at = words.tick()?;
        new.jump_wait = words.tick()?;
        new.judge = words.judge()?;
        new.block = Block {
            since: words.tick()?,
            until: words.tick()?,
            hold: words.tick()?,
            probe: words.tick()?.checked_sub(1),
            ..Block::default()
        };
        let flags = words.next()?;
        let flag = |at: u32| flags >> at & 1 == 1;
        new.block.at_the_hour = flag(0);
        new.block.hour_asked = flag(1);
        new.block.grows = flag(2);
        new.block.in_trial = flag(3);
        new.block.steady = flag(6);
        new.last_cause = if flag(5) {
            Cause::Reputation
        } else {
            Cause::Rate
        };
        new.block.worked = words.tick()?;
        new.block.ended_at = words.tick()?;
        new.block.blind = words.small()?;
        new.block.hourly = i8::try_from(words.next()?.cast_signed())
            .map_err(|_| Unreadable::Damaged("a count is out of range"))?;
        new.block.hour = words.next()?.cast_signed();
        new.block.accepted = words.small()?;
        new.block.told_until = words.tick()?;
        new.noise = words.noise()?;
        new.surge = Surge {
            recent: words.rate()?,
            count: words.small()?,
            since: words.tick()?,
        };
        new.incident = Incident {
            raise_at: words.next()?,
        };
        let (pin, pin_until) = (words.rate()?, words.next()?);
        new.pinned = flag(4).then_some((pin.min(settings.cap()), pin_until));
        new.told = words.rate()?;
        new.last_code = words.small()?;
        if saved.version == VERSION {
            (new.used_from, new.used) = (words.tick()?, words.small()?);
            // When it was saved: read above.
            words.next()?;
        } else {
            (new.used_from, new.used) = (new.changed_at, new.judge.replies);
        }
        let most = settings.cap().min(new.told);
        new.rate = new.rate.min(most).max(settings.floor().min(most));
        Ok(new)
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn flags(set: &[bool]) -> u64 {
    set.iter()
        .rev()
        .fold(0, |flags, set| flags << 1 | u64::from(*set))
}

/// Words, read one after the other.
struct Words<'a>(std::slice::Iter<'a, i64>);

impl Words<'_> {
    fn next(&mut self) -> Result<u64, Unreadable> {
        let word = self.0.next().copied().map(i64::cast_unsigned);
        word.ok_or(Unreadable::Damaged("it ends too early"))
    }

    fn tick(&mut self) -> Result<u64, Unreadable> {
        self.next().map(|tick| tick.min(TICK_MAX))
    }

    fn rate(&mut self) -> Result<f64, Unreadable> {
        let rate = f64::from_bits(self.next()?);
        if rate.is_nan() || rate < 0.0 {
            return Err(Unreadable::Damaged("a rate is not a number"));
        }
        Ok(rate)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Unreadable> {
        let word = self.next()?;
        T::try_from(word).map_err(|_| Unreadable::Damaged("a count is out of range"))
    }

    fn pair(&mut self) -> Result<(u32, u32), Unreadable> {
        let word = self.next()?;
        Ok(((word >> 32) as u32, word as u32))
    }

    fn judge(&mut self) -> Result<Judge, Unreadable> {
        let weight = self.rate()?;
        let (replies, refused) = self.pair()?;
        let (lately, lately_refused) = self.pair()?;
        Ok(Judge {
            weight,
            replies,
            refused,
            lately,
            lately_refused,
            row: self.small()?,
        })
    }

    fn noise(&mut self) -> Result<Noise, Unreadable> {
        let (base, share, rate) = (self.rate()?, self.rate()?, self.rate()?);
        let cuts = self.small()?;
        let (replies, refused) = self.pair()?;
        Ok(Noise {
            base: base.min(super::noise::NOISE_MOST),
            share,
            rate,
            cuts,
            replies,
            refused,
            checked_at: self.tick()?,
        })
    }
}
