//! Dead letters: listed, grouped by cause, reviewed, replayed or discarded.
//!
//! In reading order: [`list`], [`review`] (what is stored and shown),
//! [`preview`] (what it would decide on), [`decide`] (made, approved, discarded),
//! [`replay`] (carried out at a pace).

pub mod decide;
pub mod list;
pub mod preview;
pub mod replay;
pub mod review;
