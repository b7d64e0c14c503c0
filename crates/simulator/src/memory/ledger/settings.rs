//! What a ledger in memory is told once.

use outflow_core::ledger::Settings as Leasing;
use outflow_core::time::Wall;

/// What a ledger in memory is told once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// How it leases.
    pub leasing: Leasing,
    /// What the ledger's clock shows when the world begins.
    pub wall: Wall,
}
