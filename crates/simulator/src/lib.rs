//! Simulated networks, traffic, faults and checkers.
pub mod backlog;
pub mod checkers;
pub mod expect;
pub mod hash;
pub mod histogram;
pub mod in_flight;
pub mod meter;
pub mod network;
pub mod random;
pub mod scenario;
pub mod series;
pub mod trace;
pub mod traffic;
pub mod units;
pub mod utilisation;
