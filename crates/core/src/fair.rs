//! How much of something that all share one party may occupy.
//!
//! Nobody is given a fixed part, which would be too small for who is alone and
//! too large for who has many neighbours. A party may have eight times as much
//! as is free: alone, eight ninths of all. Who comes next has eight ninths of
//! what is left, and as much as the first once that one needs less.

/// How many times what is free one party may have.
const TIMES: u64 = 8;

/// How much more one party may take that has `own` of the `all` that are taken
/// of at most `max`.
pub const fn room(own: u64, all: u64, max: u64) -> u64 {
    let free = max.saturating_sub(all);
    let above = free.saturating_mul(TIMES).saturating_sub(own);
    let room = above.div_ceil(TIMES + 1);
    if room < free { room } else { free }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_greedy_leaves_room_for_others() {
        let max = 10_000;
        let (mut all, mut owns) = (0, Vec::new());
        for _ in 0..4 {
            let own = room(0, all, max);
            assert!(own > 0, "after {owns:?}");
            all += own;
            owns.push(own);
        }
        assert_eq!(owns, [8_889, 988, 110, 12]);
        assert!(all < max);
    }

    #[test]
    fn one_at_a_time_is_as_much_as_all_at_once() {
        for max in [1, 2, 9, 64, 1_000] {
            let at_once = room(0, 0, max);
            let mut own = 0;
            while room(own, own, max) > 0 {
                own += 1;
            }
            assert_eq!(own, at_once, "of {max}");
        }
    }
}
