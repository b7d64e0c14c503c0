//! What comes back, read and acted upon.

#![allow(clippy::indexing_slicing)]

mod acting;
mod any_bytes;
mod arf;
mod doubts;
mod dsn;
mod memory;
mod once;
mod plain;
mod return_path;
mod world;

use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use outflow_core::time::Wall;
use outflow_feedback::{Report, ReturnPaths, read};

const KEY: &[u8] = b"a key that nobody else knows";

fn paths() -> ReturnPaths {
    ReturnPaths::new("mail.example.com", &[KEY]).expect("a domain and a key")
}

fn id() -> MessageId {
    MessageId::new(Wall(1_800_000_000_123_000_000), Seq(4_711))
}

/// A sample, with the return address of a message of ours in it.
fn sample(text: &str) -> String {
    text.replace("bounce+TAG@mail.example.com", &paths().address(id()))
}

#[track_caller]
fn report(text: &str) -> Report {
    read(sample(text).as_bytes()).expect("a report")
}
