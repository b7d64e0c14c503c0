//! Submission over real sockets: a Python client that knows nothing of us, and
//! plain ones that try the edges.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod clients;
mod edges;
mod python;
mod world;
