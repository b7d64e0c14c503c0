//! Lines of the log that somebody else could cause without end: one in a while,
//! with how many were left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets one through in a while.
#[derive(Debug)]
pub struct Paced {
    every: Duration,
    /// When the last went through, and how many were left out since.
    last: Mutex<Option<(Instant, u64)>>,
}

impl Paced {
    /// One in this time.
    pub const fn every(every: Duration) -> Self {
        Self {
            every,
            last: Mutex::new(None),
        }
    }

    /// Whether one may go through now: how many were left out before it.
    pub fn pass(&self, now: Instant) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some((at, left_out)) if now.saturating_duration_since(*at) < self.every => {
                *left_out += 1;
                None
            }
            last => {
                let left_out = last.map_or(0, |(_, left_out)| left_out);
                *last = Some((now, 0));
                Some(left_out)
            }
        }
    }
}

/// Says how many were left out, if any were.
pub fn and_more(left_out: u64) -> String {
    match left_out {
        0 => String::new(),
        _ => format!(" ({left_out} more since the last such line)"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Paced;

    #[test]
    fn one_in_a_while_goes_through_and_knows_of_the_others() {
        let (paced, start) = (Paced::every(Duration::from_secs(10)), Instant::now());
        let at = |seconds| paced.pass(start + Duration::from_secs(seconds));
        assert_eq!([at(0), at(1), at(9)], [Some(0), None, None]);
        assert_eq!([at(10), at(11), at(30)], [Some(2), None, Some(1)]);
    }
}
