//! Which messages have their time when: coarse, so that millions cost little.
//!
//! Times are rounded up to a grain, so nothing is ever early. What is far off
//! stands in spokes of a minute and is sorted out when it comes near. Nothing
//! is taken out before its time: whoever takes a message off the wheel checks
//! that it is still meant, and when most are not, they are swept out.

use std::collections::BTreeMap;

use outflow_core::message::Seq;
use outflow_core::time::{Nanos, Wall};

use super::slots::Low;

const COARSE: i64 = Nanos::from_secs(60).0 as i64;
/// What is nearer than this stands in fine spokes.
const NEAR: Nanos = Nanos::from_secs(300);
/// No sweeping below this.
const SWEEP_MIN: usize = 1 << 16;

/// Messages by the time at which something happens to them.
#[derive(Debug)]
pub struct Wheel {
    grain: i64,
    fine: BTreeMap<i64, Vec<Low>>,
    coarse: BTreeMap<i64, Vec<Low>>,
    len: usize,
    swept_len: usize,
}

impl Wheel {
    pub fn new(grain: Nanos) -> Self {
        Self {
            grain: i64::try_from(grain.0.max(1)).unwrap_or(i64::MAX),
            fine: BTreeMap::new(),
            coarse: BTreeMap::new(),
            len: 0,
            swept_len: 0,
        }
    }

    pub fn insert(&mut self, now: Wall, at: Wall, seq: Seq) {
        if at == Wall::NEVER {
            return;
        }
        self.len += 1;
        // The spoke decides and not the time in it: one that has come near is
        // sorted into fine spokes as a whole. Else its last messages would come
        // back to it, and be looked at all the while until they are near.
        let coarse = at.0.div_euclid(COARSE);
        let spokes = if Wall(coarse.saturating_mul(COARSE)).since(now) > NEAR {
            self.coarse.entry(coarse)
        } else {
            let rest = i64::from(at.0.rem_euclid(self.grain) > 0);
            self.fine.entry(at.0.div_euclid(self.grain) + rest)
        };
        spokes.or_default().push(seq.0 as Low);
    }

    /// When to look again: something is ripe, or comes near.
    pub fn next(&self) -> Option<Wall> {
        let fine = self.fine.first_key_value();
        let fine = fine.map(|(spoke, _)| Wall(spoke.saturating_mul(self.grain)));
        let coarse = self.coarse.first_key_value();
        let near = NEAR.0 as i64;
        let coarse = coarse.map(|(spoke, _)| Wall(spoke.saturating_mul(COARSE) - near));
        fine.into_iter().chain(coarse).min()
    }

    /// Takes up to `max` messages off that are ripe, or have come near.
    pub fn take(&mut self, now: Wall, max: usize, taken: &mut Vec<Low>) {
        let ripe = now.0.div_euclid(self.grain);
        take_from(&mut self.fine, ripe, max, taken);
        let near = (now + NEAR).0.div_euclid(COARSE);
        take_from(&mut self.coarse, near, max, taken);
        self.len = self.len.saturating_sub(taken.len());
    }

    /// Sweeps out what is no longer meant, if that may be most.
    pub fn sweep(&mut self, living: usize, mut is_meant: impl FnMut(Low) -> bool) {
        if self.len < SWEEP_MIN + 2 * living.max(self.swept_len / 4) {
            return;
        }
        for spokes in [&mut self.fine, &mut self.coarse] {
            spokes.retain(|_, spoke| {
                spoke.retain(|low| is_meant(*low));
                spoke.shrink_to_fit();
                !spoke.is_empty()
            });
        }
        let spokes = self.fine.values().chain(self.coarse.values());
        self.len = spokes.map(Vec::len).sum();
        self.swept_len = self.len;
    }

    pub fn clear(&mut self) {
        self.fine.clear();
        self.coarse.clear();
        self.len = 0;
    }
}

fn take_from(spokes: &mut BTreeMap<i64, Vec<Low>>, through: i64, max: usize, taken: &mut Vec<Low>) {
    while taken.len() < max
        && let Some(mut spoke) = spokes.first_entry()
        && *spoke.key() <= through
    {
        let room = max - taken.len();
        let items = spoke.get_mut();
        if items.len() <= room {
            taken.append(items);
            spoke.remove();
        } else {
            taken.extend(items.drain(..room));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_near_is_looked_at_twice_and_no_more() {
        for ahead in [299, 301, 330, 359, 360, 361, 3_600] {
            let mut wheel = Wheel::new(Nanos::from_millis(1));
            let mut now = Wall(1_767_225_600_123_000_000);
            let at = now + Nanos::from_secs(ahead);
            wheel.insert(now, at, Seq(7));
            let mut looks = 0;
            while now < at {
                now = now.max(wheel.next().unwrap());
                let mut taken = Vec::new();
                wheel.take(now, 10, &mut taken);
                assert_eq!(taken, [7], "{ahead} s: nothing is looked for in vain");
                if now < at {
                    wheel.insert(now, at, Seq(7));
                }
                looks += 1;
                assert!(looks <= 2, "{ahead} s ahead: it is looked at all the while");
            }
        }
    }
}
