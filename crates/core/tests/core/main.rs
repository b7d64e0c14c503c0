//! Tests of the decisions through their public faces.
mod pool;
