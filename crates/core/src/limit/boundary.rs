//! The boundaries of the calendar: which window of a zone's calendar a time
//! lies in.
//!
//! The windows of a period follow each other without gap or overlap, whatever
//! the clocks of the zone do: a day has 23 or 25 hours when they change, and a
//! change inside a full hour or minute is a boundary of its own.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::spec::{Period, Zone};
use crate::time::{NANOS_PER_SECOND, Nanos, Wall};

impl Period {
    /// How long the period is on a day on which no clock changes.
    pub const fn length(self) -> Nanos {
        Nanos(
            NANOS_PER_SECOND
                * match self {
                    Self::Minute => 60,
                    Self::Hour => 3_600,
                    Self::Day => 86_400,
                },
        )
    }

    /// The start of the window of this period in which `wall` lies, and its
    /// end, which belongs to the next.
    pub fn around(self, wall: Wall, zone: &Zone) -> (Wall, Wall) {
        let around = match self {
            Self::Day => day_around(wall, &zone.rules),
            Self::Minute | Self::Hour => stretch_around(wall, self.length(), &zone.rules),
        };
        around.unwrap_or_else(|_| multiple_around(wall, self.length(), 0))
    }
}

fn day_around(wall: Wall, rules: &TimeZone) -> Result<(Wall, Wall), jiff::Error> {
    let local = timestamp(wall)?.to_zoned(rules.clone());
    let mut start = local.start_of_day()?;
    let mut end = start.tomorrow()?.start_of_day()?;
    // Where clocks go back across midnight, the date of the evening returns
    // after the next day has begun. It stays that next day.
    while wall_of(&end) <= wall {
        start = end;
        end = start.tomorrow()?.start_of_day()?;
    }
    Ok((wall_of(&start), wall_of(&end)))
}

fn stretch_around(
    wall: Wall,
    length: Nanos,
    rules: &TimeZone,
) -> Result<(Wall, Wall), jiff::Error> {
    let at = timestamp(wall)?;
    let offset = i64::from(rules.to_offset(at).seconds()) * NANOS_PER_SECOND as i64;
    let (mut start, mut end) = multiple_around(wall, length, offset);
    let just_after = Timestamp::from_nanosecond(at.as_nanosecond() + 1)?;
    if let Some(change) = rules.preceding(just_after).next() {
        start = start.max(wall_at(change.timestamp()));
    }
    if let Some(change) = rules.following(at).next() {
        end = end.min(wall_at(change.timestamp()));
    }
    Ok((start, end))
}

/// The multiple of `length` on clocks that are `offset` ahead.
fn multiple_around(wall: Wall, length: Nanos, offset: i64) -> (Wall, Wall) {
    let into = wall.0.saturating_add(offset).rem_euclid(length.0 as i64);
    let start = Wall(wall.0.saturating_sub(into));
    (start, start + length)
}

fn timestamp(wall: Wall) -> Result<Timestamp, jiff::Error> {
    Timestamp::from_nanosecond(i128::from(wall.0))
}

fn wall_of(zoned: &Zoned) -> Wall {
    wall_at(zoned.timestamp())
}

fn wall_at(timestamp: Timestamp) -> Wall {
    Wall(i64::try_from(timestamp.as_nanosecond()).unwrap_or(i64::MAX))
}
