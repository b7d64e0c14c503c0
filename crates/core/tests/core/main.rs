//! What the decisions of Outflow must hold to: the one integration-test binary
//! of `outflow-core`.
mod classify;
mod limits;
mod policy;
mod pool;
mod retry;
