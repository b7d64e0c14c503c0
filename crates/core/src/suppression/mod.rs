//! Who is not sent to any more, and why.
//!
//! A recipient is suppressed for one tenant, for one or several reasons. Each
//! reason stands by itself, so that undoing the bounces of a bad hour leaves a
//! complaint in force. A complaint is about mail that people can do without:
//! it never holds a password reset back.
//!
//! Reading order: [`reason`], [`reasons`], [`surge`] (when bounces are not
//! believed).

pub mod reason;
pub mod reasons;
pub mod surge;

pub use reason::{Reason, UnknownReason};
pub use reasons::Reasons;
