//! Memory that is free goes back to the system.
//!
//! The C library keeps what a start or a large request needed for a moment, in
//! an arena for each thread: 70 of 600 MB with 5 million messages queued. Other
//! allocators were no better (ADR 10).

use std::future::Future;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Growth since the last time that makes it worth while. Giving back stops who
/// needs memory at that moment for some milliseconds.
const WORTH_KB: u64 = 32 * 1024;

/// Gives memory back each time the process has grown, until `stop`.
pub async fn keep_small(stop: impl Future<Output = ()>) {
    let give_back = async {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut smallest = 0;
        loop {
            ticks.tick().await;
            let Some(now) = resident_kb() else {
                return;
            };
            smallest = now.min(smallest);
            if now > smallest + WORTH_KB {
                // Whether it was done in time is of no consequence.
                let _ = tokio::task::spawn_blocking(trim).await;
                smallest = resident_kb().unwrap_or(now);
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

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

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
