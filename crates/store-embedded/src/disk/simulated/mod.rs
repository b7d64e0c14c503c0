//! A disk that goes wrong on purpose: one half holds the bytes and loses power,
//! the other fails as it is told or as chance has it.
//!
//! What it does to a journal is what a real disk may do: what was not synced is
//! lost in blocks and in any order, a write that fails has written a part, a sync
//! that fails leaves in memory what the disk will never have, names come back as
//! they were. The same seeds and the same steps give the same bytes.
//!
//! Reading order: [`platter`], [`faulty`].

pub mod faulty;
pub mod platter;

pub use faulty::{Faulty, Mood, Shares};
pub use platter::Platter;
