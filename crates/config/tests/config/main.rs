//! What people write, and what becomes of it.

#![allow(clippy::panic, reason = "helpers of tests say what they were given")]

mod accounts;
mod any_text;
mod file;
mod policies;
mod table;
