//! What comes back: bounces, delays and complaints, read and acted upon; and the
//! list of those who are not sent to any more.
//!
//! Anybody can send us a report, so everything here is bounded: how much of a
//! mail is looked at, how many recipients and fields it may speak of, how long
//! each of them may be. Nothing that is read is believed, except a return
//! address that carries our signature. This crate fences the library that takes
//! mail apart; disks and the node are reached through ports.
//!
//! Reading order: [`feedback`] (what was learnt), [`mod@read`] (which form a
//! mail has) with `fields` (blocks of fields), `original` (the message that is
//! spoken of), `dsn` (RFC 3464), `arf` (RFC 5965) and `plain` (what programs
//! wrote before, and some still do); [`return_path`] (addresses that say which
//! message a report is about) with `base32`; [`set`] and [`list`] (who is
//! suppressed), [`learner`] (what is learnt) with `doubts` (when it is not
//! believed) and `notes` (what the audit hears of it), `lookup` (which message is
//! meant), [`once`] (what was told before), [`desk`] (what follows from what was
//! told).

mod arf;
mod base32;
pub mod desk;
mod doubts;
mod dsn;
pub mod feedback;
mod fields;
pub mod learner;
pub mod list;
mod lookup;
mod notes;
pub mod once;
mod original;
mod plain;
pub mod read;
pub mod return_path;
pub mod set;

pub use desk::Desk;
pub use feedback::{Feedback, Kind, Report};
pub use learner::Learner;
pub use list::SuppressionList;
pub use once::Once;
pub use read::read;
pub use return_path::{ReturnPathError, ReturnPaths};
