//! What comes back as mail: bounces, delays and complaints, read.
//!
//! Anybody can send us a report, so everything here is bounded: how much of a
//! mail is looked at, how many recipients and fields it may speak of, how long
//! each of them may be. Nothing that is read is believed, except a return
//! address that carries our signature. This crate fences the library that takes
//! mail apart, and does no I/O.
//!
//! Reading order: [`feedback`] (what was learnt), [`mod@read`] (which form a
//! mail has) with `fields` (blocks of fields), `original` (the message that is
//! spoken of), `dsn` (RFC 3464), `arf` (RFC 5965) and `plain` (what programs
//! wrote before, and some still do); [`return_path`] (addresses that say which
//! message a report is about) with `base32`.

mod arf;
mod base32;
mod dsn;
pub mod feedback;
mod fields;
mod original;
mod plain;
pub mod read;
pub mod return_path;

pub use feedback::{Feedback, Kind, Report};
pub use read::read;
pub use return_path::{ReturnPathError, ReturnPaths};
