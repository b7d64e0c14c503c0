//! The node on its thread, with real time: the one integration-test binary of
//! `outflow-pipeline`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod changes;
mod crowding;
mod ends;
mod load;
mod screening;
mod seat;
