//! The judge, held against facts: every finding can be reached, and no record
//! that anybody may publish makes it panic or ask without end.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs
)]

mod any_record;
mod certificates;
mod findings;
mod hosts;
mod records;
mod settings;
mod world;
