//! Properties of the decisions in `outflow-core`.

// A test that indexes out of range fails, as it should.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod limits;
