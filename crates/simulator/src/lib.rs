//! A world in virtual time: networks, clocks, faults and checkers around the
//! real node.

pub mod memory;
