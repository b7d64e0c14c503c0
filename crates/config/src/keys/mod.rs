//! The one table of all keys, in the order of the reference.

mod account;
mod policy;

pub use account::ACCOUNT;
pub use policy::POLICY;
