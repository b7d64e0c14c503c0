//! What is on its way from callers to the disk, in messages and bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outflow_ports::intake::Submission;

use super::State;
use crate::intake::PENDING_MAX;

/// Bytes that may be on their way to the disk at once. A batch that is larger
/// passes if nothing else is on its way.
const BYTES_MAX: usize = 256 << 20;

/// The sums over everything on its way.
#[derive(Debug, Default)]
pub(crate) struct Load {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

/// A batch's share of the load, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Share {
    state: Arc<State>,
    messages: usize,
    bytes: usize,
}

impl Load {
    /// Counts a batch in; none if there is no room for it.
    pub fn take(&self, state: &Arc<State>, batch: &[Submission]) -> Option<Share> {
        let (messages, bytes) = (batch.len(), size(batch));
        let share = Share {
            state: Arc::clone(state),
            messages,
            bytes,
        };
        let before = self.messages.fetch_add(messages, Ordering::AcqRel);
        let bytes_before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        // Its share ends with it, also if it is refused.
        let is_full = before + messages > PENDING_MAX;
        let is_heavy = bytes_before > 0 && bytes_before.saturating_add(bytes) > BYTES_MAX;
        (!is_full && !is_heavy).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let load = &self.state.load;
        load.messages.fetch_sub(self.messages, Ordering::AcqRel);
        load.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The bytes of a batch. A body that several messages in a row share counts
/// once.
fn size(batch: &[Submission]) -> usize {
    let mut bytes = 0_usize;
    let mut last: Option<&Arc<[u8]>> = None;
    for submission in batch {
        bytes = bytes.saturating_add(submission.envelope.len());
        if last.is_none_or(|last| !Arc::ptr_eq(last, &submission.body)) {
            bytes = bytes.saturating_add(submission.body.len());
        }
        last = Some(&submission.body);
    }
    bytes
}
