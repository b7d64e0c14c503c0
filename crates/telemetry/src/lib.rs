//! What a node tells of itself. Everything that is worth a metric or a line in
//! a log is one entry of one catalogue; metrics, logs and the reference follow
//! from it.
//!
//! In reading order: [`catalogue`] (all that happens), [`sink`] (where it goes).

pub mod catalogue;
pub mod sink;

pub use catalogue::Event;
pub use sink::{Silent, Sink};
