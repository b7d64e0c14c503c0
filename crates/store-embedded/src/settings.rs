//! What a store is told once.

use std::sync::Arc;

use outflow_core::time::Nanos;

use crate::boot::{BootClock, SystemBoot};
use crate::record::RecordSettings;

/// What a store is told once.
#[derive(Clone)]
pub struct Settings {
    /// Bytes of an envelope segment.
    pub envelope_segment_bytes: u64,
    /// Bytes of a body segment.
    pub body_segment_bytes: u64,
    /// Free bytes below which no messages are taken: room for settlements.
    pub reserve_bytes: u64,
    /// Bytes of envelope segments that are kept whatever is alive in them;
    /// beyond that at most half as much again as is alive. A start reads no
    /// more than that.
    pub slack_bytes: u64,
    /// How long the key of a settled message is remembered.
    pub key_life: Nanos,
    /// Keys of settled messages held in memory; older ones go to the record.
    pub keys_max: usize,
    /// Settled messages that may wait for their receipt; beyond that no new
    /// ones are taken.
    pub unrecorded_max: usize,
    /// How long a given-up segment can still be read.
    pub reading_grace: Nanos,
    /// How long a body that nothing needs stays in its segment, about: then the
    /// segment is rewritten without it.
    pub dead_bodies_for: Nanos,
    /// What is kept of settled messages.
    pub record: RecordSettings,
    /// The clock that goes on while the process is away.
    pub boot: Arc<dyn BootClock>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            envelope_segment_bytes: 16 << 20,
            body_segment_bytes: 64 << 20,
            reserve_bytes: 256 << 20,
            slack_bytes: 48 << 20,
            key_life: Nanos::from_secs(24 * 3_600),
            keys_max: 1 << 20,
            unrecorded_max: 1 << 20,
            reading_grace: Nanos::from_secs(15 * 60),
            // A body that is not needed leaves the disk within a day.
            dead_bodies_for: Nanos::from_secs(20 * 3_600),
            record: RecordSettings::default(),
            boot: Arc::new(SystemBoot),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}
