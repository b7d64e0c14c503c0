//! The one integration-test binary of `outflow-core`.
mod classify;
mod retry;
