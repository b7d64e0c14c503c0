//! At most `count` between two boundaries of a calendar.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, Zoned};
use outflow_core::limit::spec::Period;
use outflow_core::time::{Nanos, Wall};

use super::Tolerance;

/// A calendar window, counted independently.
#[derive(Clone, Debug)]
pub struct Calendar {
    count: u32,
    period: Period,
    zone: TimeZone,
    tolerance: Tolerance,
    starts: i128,
    ends: i128,
    used: u64,
}

impl Calendar {
    /// Nothing was used yet.
    pub fn new(count: u32, period: Period, zone: TimeZone, tolerance: Tolerance) -> Self {
        Self {
            count,
            period,
            zone,
            tolerance,
            starts: i128::MIN,
            ends: i128::MIN,
            used: 0,
        }
    }

    /// Which boundaries it goes by.
    pub fn period(&self) -> Period {
        self.period
    }

    fn turn(&mut self, wall: Wall) {
        let now = i128::from(wall.0);
        if now >= self.starts && now < self.ends {
            return;
        }
        (self.starts, self.ends) = self.boundaries(wall).unwrap_or((now, i128::MAX));
        self.used = 0;
    }

    fn boundaries(&self, wall: Wall) -> Option<(i128, i128)> {
        let now = Timestamp::from_nanosecond(i128::from(wall.0)).ok()?;
        let now: Zoned = now.to_zoned(self.zone.clone());
        let (start, span) = match self.period {
            Period::Minute => (floor(&now, Unit::Minute)?, 1.minute()),
            Period::Hour => (floor(&now, Unit::Hour)?, 1.hour()),
            Period::Day => (now.start_of_day().ok()?, 1.day()),
        };
        let end = start.checked_add(span).ok()?;
        let nanos = |at: &Zoned| at.timestamp().as_nanosecond();
        Some((nanos(&start), nanos(&end)))
    }

    /// Takes `cost`; how many too many since the last boundary, if there are.
    /// What is sent so close to a boundary that a wrong clock may see it on the
    /// other side counts on neither.
    pub fn take(&mut self, at: Nanos, cost: u32) -> Result<(), String> {
        let wall = self.tolerance.wall_at_zero + at;
        self.turn(wall);
        let (now, error) = (i128::from(wall.0), i128::from(self.tolerance.wall_error.0));
        if now < self.starts + error || now >= self.ends - error {
            return Ok(());
        }
        self.used += u64::from(cost);
        if self.used <= u64::from(self.count) {
            return Ok(());
        }
        Err(format!(
            "{} in one {:?}, at most {}",
            self.used, self.period, self.count
        ))
    }

    /// Whether `cost` is left.
    pub fn allows(&mut self, at: Nanos, cost: u32) -> bool {
        self.turn(self.tolerance.wall_at_zero + at);
        self.used + u64::from(cost) <= u64::from(self.count)
    }

    /// Another count from now on; a lower one binds what is sent from now on.
    pub fn change(&mut self, count: u32) {
        self.used = self.used.min(u64::from(count));
        self.count = count;
    }
}

fn floor(now: &Zoned, unit: Unit) -> Option<Zoned> {
    let round = jiff::ZonedRound::new()
        .smallest(unit)
        .mode(jiff::RoundMode::Trunc);
    now.round(round).ok()
}
