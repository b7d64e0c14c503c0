//! The store keeps the contract; stores that break it are found out.

mod broken;
mod conformance;
mod volume;
