//! The ledger against real servers, each started by the test that needs it, on a
//! free port of the loopback and in a directory of its own.

mod conformance;
mod node;
mod server;
