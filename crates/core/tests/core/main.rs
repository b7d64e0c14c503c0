//! What the decisions of Outflow must hold to.
mod policy;
