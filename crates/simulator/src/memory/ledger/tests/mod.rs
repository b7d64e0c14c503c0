//! The ledger keeps the contract, over good connections and bad ones.

mod broken;
mod conformance;
mod nodes;
mod restarts;
