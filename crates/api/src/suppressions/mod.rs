//! `/suppressions`: who is not sent to any more, and why.
//!
//! Reading order: [`view`] (an entry as it is shown, read and chosen), [`list`],
//! [`edit`] (one entry), [`import`] and [`export`] (many) with [`csv`],
//! [`review`] (many at once, by time and destination).

pub mod csv;
pub mod edit;
pub mod export;
pub mod import;
pub mod list;
pub mod review;
pub mod view;
