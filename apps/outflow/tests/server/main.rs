//! The real binary, spoken to over HTTP, killed and started again.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    missing_docs
)]

mod cli;
#[path = "../../src/demo/client.rs"]
mod client;
mod demo;
mod disk_full;
mod failing_disk;
mod first;
mod fuzz_corpus;
mod kills;
mod limits;
mod operators;
mod process;
mod stops;
mod tls;
