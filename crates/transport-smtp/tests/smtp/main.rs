//! Mail over real sockets: to a server that behaves, and to some that do not.
//!
//! Reading order: `server` (one that behaves), `certificates`, `world` (a
//! transport under test); `conformance`, `delivery`, `hostile`.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod certificates;
mod conformance;
mod delivery;
mod hostile;
#[path = "../../../mail/src/tests/letters.rs"]
mod letters;
mod server;
mod world;
