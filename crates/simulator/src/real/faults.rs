//! What may go wrong with a store and its disk, as data.

use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos};
use outflow_store_embedded::disk::simulated::Shares;

use crate::memory::window::Window;

/// How a disk and the threads of a store behave. Windows are on the clock of the
/// store's node.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A commit takes at least this long ...
    pub commit_min: Nanos,
    /// ... and usually at most this long.
    pub commit_max: Nanos,
    /// So many of a thousand commits are slow ...
    pub slow_permille: u32,
    /// ... and take this long.
    pub slow_commit: Nanos,
    /// How many operations of the disk fail.
    pub shares: Shares,
    /// When they do not fail any more.
    pub heal_at: Option<Mono>,
    /// The disk is full.
    pub full: Vec<Window>,
    /// Of a thousand crashes, so many are a loss of power.
    pub power_permille: u32,
    /// Of a thousand starts, so many are cut short, by a kill or a loss of power.
    pub cut_short_permille: u32,
    /// Of a thousand crashes, so many come in the middle of a commit.
    pub torn_permille: u32,
    /// Of a thousand batches for the record, so many have to wait for seconds.
    pub record_permille: u32,
    /// Whether the boot clock starts anew when power was lost. If not, what the
    /// wall clock does meanwhile does not matter.
    pub reboots: bool,
}

impl Faults {
    /// Whether something that happens to so many of a thousand happens now.
    pub(super) fn strikes(permille: u32, entropy: &mut Entropy) -> bool {
        permille > 0 && entropy.between(0, 999) < u64::from(permille)
    }

    pub(super) fn commit_time(&self, entropy: &mut Entropy) -> Nanos {
        if Self::strikes(self.slow_permille, entropy) {
            return self.slow_commit;
        }
        if self.commit_min >= self.commit_max {
            return self.commit_min;
        }
        Nanos(entropy.between(self.commit_min.0, self.commit_max.0))
    }

    pub(super) fn is_healed(&self, now: Mono) -> bool {
        self.heal_at.is_some_and(|at| at <= now)
    }

    pub(super) fn is_full(&self, now: Mono) -> bool {
        !self.is_healed(now) && self.full.iter().any(|window| window.holds(now))
    }
}
