//! A durable queue on one machine.
//!
//! The journal holds the truth about live messages; the record (SQLite) what
//! people ask for later and what operators set.

pub mod record;
