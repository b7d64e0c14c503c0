//! Mail over real sockets: to a server that behaves, and to some that do not.
//!
//! Reading order: `server` (one that behaves), `certificates`, `world` (a
//! transport under test); `conformance`, `delivery`, `exchangers`, `hostile`; `peer`
//! and `programs` (what servers are asked that were not made for us): `postfix` with
//! `postfix_server`, `exim`, `sink` with `smtp_sink`.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod certificates;
mod conformance;
mod delivery;
mod exchangers;
mod exim;
mod hostile;
#[path = "../../../mail/src/tests/letters.rs"]
mod letters;
mod peer;
mod postfix;
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod postfix_server;
mod programs;
mod server;
mod sink;
mod smtp_sink;
mod world;
