//! Mail over real sockets: to a server that behaves, and to some that do not.
//!
//! Reading order: `server` (one that behaves), `certificates`, `world` (a
//! transport under test); `conformance`, `delivery`, `exchangers`, `hostile`, `probe`; `direct` (the
//! program's own way to servers), `dns` and `web`, `policies`; `peer`
//! and `programs` (what servers are asked that were not made for us): `postfix` with
//! `postfix_server`, `exim`, `sink` with `smtp_sink`.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod certificates;
mod conformance;
mod delivery;
#[path = "../../../../apps/outflow/src/serve/exchangers.rs"]
#[allow(unreachable_pub, reason = "the program uses it as well")]
mod direct;
#[path = "../../../resolver-dns/tests/dns/server.rs"]
#[allow(dead_code, unreachable_pub, reason = "others use it as well")]
mod dns;
mod exchangers;
mod exim;
mod hostile;
#[path = "../../../mail/src/tests/letters.rs"]
mod letters;
mod peer;
mod policies;
mod postfix;
#[allow(dead_code, reason = "the tests of the server use the rest")]
mod postfix_server;
mod probe;
mod programs;
mod server;
mod sink;
mod smtp_sink;
#[path = "../../../resolver-dns/tests/dns/web.rs"]
#[allow(dead_code, unreachable_pub, reason = "others use it as well")]
mod web;
mod world;
