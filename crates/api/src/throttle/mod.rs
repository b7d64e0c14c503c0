//! `/throttle`: limits for programs that send by themselves and ask first.
//!
//! In reading order: [`form`] (what is asked), [`acquire`], [`hold`] (release and
//! pause), [`headers`] (what the answer says of limits).

pub mod acquire;
pub mod form;
pub mod headers;
pub mod hold;
