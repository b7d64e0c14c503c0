//! The ledger against real servers, each started by the test that needs it, on a
//! free port of the loopback and in a directory of its own.

mod ask;
mod cluster;
mod conformance;
mod dropped;
mod fleet;
mod losses;
mod node;
mod outages;
mod proxy;
mod server;
mod tls;
