//! Simulated networks, traffic, faults and checkers.
