//! The clock that goes on while a process is away.
//!
//! Downtime is measured by the boot clock, which counts through suspends and
//! which nobody sets, as long as the machine has not booted meanwhile; else by
//! the wall clock. It is never negative.

use std::fs;

use outflow_core::time::{Mono, Nanos, Now, Wall};
use xxhash_rust::xxh3::xxh3_64;

/// A reading of the boot clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootTime {
    /// Which boot; 0 if unknown.
    pub id: u64,
    /// Time since it.
    pub time: Nanos,
}

/// A clock that goes on over restarts of the process.
pub trait BootClock: Send + Sync {
    /// Which boot this is; 0 if unknown.
    fn id(&self) -> u64;

    /// The time since it.
    fn time(&self) -> Nanos;

    /// The wall clock.
    fn wall(&self) -> Wall;

    /// The clock by which this process waits: nobody sets it, and it stands
    /// still while the machine sleeps.
    fn mono(&self) -> Mono;
}

/// The machine's own.
#[derive(Clone, Copy, Debug)]
pub struct SystemBoot;

impl BootClock for SystemBoot {
    fn id(&self) -> u64 {
        fs::read("/proc/sys/kernel/random/boot_id").map_or(0, |id| xxh3_64(&id))
    }

    fn time(&self) -> Nanos {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (secs, nanos) = (time.tv_sec.max(0), time.tv_nsec.max(0));
        Nanos::from_secs(secs as u64) + Nanos(nanos as u64)
    }

    fn wall(&self) -> Wall {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        let nanos = since.map_or(0, |since| since.as_nanos());
        Wall(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    fn mono(&self) -> Mono {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let (secs, nanos) = (time.tv_sec.max(0), time.tv_nsec.max(0));
        Mono(Nanos::from_secs(secs as u64).0 + nanos as u64)
    }
}

/// When the last record was written, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRecord {
    /// The wall clock.
    pub wall: Wall,
    /// The boot clock.
    pub boot: BootTime,
}

impl LastRecord {
    /// How long the process was away, at least.
    pub fn downtime(&self, now: &Now, boot: BootTime) -> Nanos {
        if boot.id != 0 && boot.id == self.boot.id {
            boot.time.minus(self.boot.time)
        } else {
            now.wall.since(self.wall)
        }
    }
}
