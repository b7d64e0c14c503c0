//! Memory that is free goes back to the system.
//!
//! The C library keeps what a start or a large request needed for a moment, in
//! an arena for each thread: 70 of 600 MB with 5 million messages queued. Other
//! allocators were no better (ADR 10).
//!
//! It never gives the free end of such an arena back when asked to, only when
//! something large is freed there, and it asks for ever more (up to 64 MB for
//! each of 16 arenas) the larger the pieces were that it saw. So it is told what
//! is large.
//!
//! What a crowd of flows needed becomes free bit by bit after it is gone, when
//! the process does not grow any more: so it is looked again while it rests.

use std::future::Future;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::MissedTickBehavior;

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Growth since the last time that makes it worth while. Giving back stops who
/// needs memory at that moment for some milliseconds.
const WORTH_KB: u64 = 32 * 1024;

/// Pieces of memory from this size on are large. Those of single messages and of
/// most requests are not.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 1024 * 1024;
/// Less time at work than this between two looks is rest.
const REST: Duration = Duration::from_millis(250);
/// After how many looks at rest, one after the other, memory is given back. Then
/// nothing is left of a crowd, and the next work is waited for.
const AT_REST: [u32; 4] = [1, 2, 4, 8];

/// When memory is given back.
#[derive(Debug)]
struct Plan {
    /// The least that was in use since.
    smallest_kb: u64,
    /// The time at work so far, as of the last look.
    worked: Duration,
    /// Looks at rest, one after the other.
    rested: u32,
}

impl Plan {
    /// Nothing was looked at so far.
    const fn new() -> Self {
        Self {
            smallest_kb: 0,
            worked: Duration::ZERO,
            rested: 0,
        }
    }

    /// Whether memory is to be given back now.
    fn look(&mut self, resident_kb: u64, worked: Duration) -> bool {
        let rests = worked.saturating_sub(self.worked) < REST;
        self.worked = worked;
        self.rested = match rests {
            true => self.rested.saturating_add(1),
            false => 0,
        };
        self.smallest_kb = resident_kb.min(self.smallest_kb);
        resident_kb > self.smallest_kb + WORTH_KB || AT_REST.contains(&self.rested)
    }

    /// It was given back, and this is left.
    const fn given_back(&mut self, resident_kb: u64) {
        self.smallest_kb = resident_kb;
    }
}

/// Gives memory back each time the process has grown or came to rest, until
/// `stop`.
pub async fn keep_small(stop: impl Future<Output = ()>) {
    let give_back = async {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut plan = Plan::new();
        loop {
            ticks.tick().await;
            let Some(now) = resident_kb() else {
                return;
            };
            if plan.look(now, worked()) {
                // Whether it was done in time is of no consequence.
                let _ = tokio::task::spawn_blocking(trim).await;
                plan.given_back(resident_kb().unwrap_or(now));
            }
        }
    };
    tokio::select! {
        () = give_back => {}
        () = stop => {}
    }
}

/// Memory of this process that is in use, as the system counts it.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim_end().parse().ok()
}

/// The time that this process was at work, on all its threads.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "nothing else asks the C library to give memory back"
)]
fn trim() {
    // SAFETY: it takes no pointer, touches only memory that is free, and may be
    // called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Says from what size on memory goes back at once. To be called once, before
/// there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "nothing else tells the C library")]
pub fn set_large() {
    // SAFETY: it takes no pointer; it changes when memory is given back, and
    // nothing of what is in use.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn set_large() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn growth_and_rest_give_memory_back_and_work_alone_does_not() {
        let mut plan = Plan::new();
        let (mb, second) = (1_024, Duration::from_secs(1));
        assert!(plan.look(100 * mb, second), "it grew");
        plan.given_back(90 * mb);
        assert!(!plan.look(100 * mb, second * 3));
        assert!(plan.look(200 * mb, second * 5), "it grew again");
        plan.given_back(190 * mb);
        let asked: Vec<_> = (0..20).map(|_| plan.look(190 * mb, second * 5)).collect();
        let at = |look: usize| asked.get(look - 1).copied().unwrap_or_default();
        assert_eq!((at(1), at(2), at(3), at(4)), (true, true, false, true));
        assert_eq!(asked.iter().filter(|asked| **asked).count(), AT_REST.len());
        assert!(!plan.look(190 * mb, second * 8), "it works again");
        assert!(plan.look(190 * mb, second * 8), "and rests again");
    }

    #[test]
    fn what_is_free_goes_back() {
        // Small pieces, with one that stays at the end, so that freeing alone
        // does not give them back.
        let mut pieces: Vec<Box<[u8; 4096]>> =
            (0..16_384).map(|_| Box::new([1_u8; 4096])).collect();
        let last = pieces.pop();
        let full = resident_kb().expect("the system tells");
        drop(pieces);
        trim();
        let after = resident_kb().expect("the system tells");
        assert!(last.is_some());
        assert!(
            after + 48 * 1024 < full,
            "{after} KB of {full} KB are still held"
        );
    }
}
