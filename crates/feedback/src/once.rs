//! What was told of a message counts once.
//!
//! Whoever has a return address of ours can send the same report again and
//! again. What was told stands in the message's receipt; until it is written
//! there, and of what is not written (opens, clicks), the latest are remembered
//! here.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_core::message::Seq;
use outflow_ports::receipts::{Happening, Receipt};

/// What is remembered of reports that will stand in receipts.
const REPORTS_MAX: usize = 16_384;
/// And of opens and clicks.
const LOOKS_MAX: usize = 100_000;
/// What a receipt says of an opt-out begins so; of a complaint it does not.
pub(crate) const OPT_OUT: &str = "opt_out";

/// What was told of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    Bounce = 0,
    Complaint = 1,
    OptOut = 2,
    Open = 3,
    Click = 4,
}

impl What {
    /// What a receipt says that was told.
    fn of(happening: &Happening) -> Option<Self> {
        let error = happening.error.as_ref();
        let error = error.filter(|_| happening.what == "feedback")?;
        Some(match error.code {
            Some(200..300) if error.text.starts_with(OPT_OUT) => Self::OptOut,
            Some(200..300) => Self::Complaint,
            _ => Self::Bounce,
        })
    }

    const fn is_written(self) -> bool {
        matches!(self, Self::Bounce | Self::Complaint | Self::OptOut)
    }
}

/// The latest of what was told.
#[derive(Debug, Default)]
struct Recent {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Recent {
    fn insert(&mut self, one: u64, most: usize) -> bool {
        if !self.known.insert(one) {
            return false;
        }
        self.order.push_back(one);
        if self.order.len() > most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    fn remove(&mut self, one: u64) {
        if self.known.remove(&one) {
            self.order.retain(|other| *other != one);
        }
    }
}

/// What was told before.
#[derive(Debug, Default)]
pub struct Once {
    reports: Mutex<Recent>,
    looks: Mutex<Recent>,
}

impl Once {
    /// Whether this is told for the first time; from now on it is not.
    pub(crate) fn claim(&self, receipt: &Receipt, what: What) -> bool {
        if receipt
            .events
            .iter()
            .filter_map(What::of)
            .any(|it| it == what)
        {
            return false;
        }
        let (recent, most) = self.part(what);
        locked(recent).insert(packed(receipt.seq, what), most)
    }

    /// Nothing came of it: it may be told again.
    pub(crate) fn release(&self, seq: Seq, what: What) {
        let (recent, _) = self.part(what);
        locked(recent).remove(packed(seq, what));
    }

    fn part(&self, what: What) -> (&Mutex<Recent>, usize) {
        match what.is_written() {
            true => (&self.reports, REPORTS_MAX),
            false => (&self.looks, LOOKS_MAX),
        }
    }
}

fn locked(recent: &Mutex<Recent>) -> MutexGuard<'_, Recent> {
    recent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both in one number: no message has a number beyond 48 bits.
fn packed(seq: Seq, what: What) -> u64 {
    seq.0 << 3 | what as u64
}
