//! Simulated networks, traffic, faults and checkers.
pub mod expect;
pub mod network;
pub mod random;
pub mod scenario;
pub mod traffic;
pub mod units;
