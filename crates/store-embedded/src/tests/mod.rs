//! The store on real and on faulty disks.

mod conformance;
mod harness;
mod memory_disk;
mod moody;
mod scratch;
