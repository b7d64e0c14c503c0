//! Mail over real sockets: to a server that behaves, and to some that do not.
//!
//! Reading order: `server` (one that behaves), `certificates`, `world` (a
//! transport under test); `conformance`, `delivery`, `exchangers`, `hostile`; `postfix` and
//! `real_server` (a server that was not made for us).
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod certificates;
mod conformance;
mod delivery;
mod exchangers;
mod hostile;
#[path = "../../../mail/src/tests/letters.rs"]
mod letters;
mod postfix;
mod real_server;
mod server;
mod world;
