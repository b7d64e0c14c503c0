//! Messages: submitted, asked about, withdrawn.
//!
//! In reading order: [`form`] (as somebody writes one),
//! [`headers`], [`check`], [`digest`], [`naming`], [`plan`], [`submit`]; [`view`]
//! (as it is shown), [`get`], [`explain`], [`list`], [`raw`]; [`cancel`],
//! [`bulk`].

pub mod bulk;
pub mod cancel;
pub mod check;
pub mod digest;
pub mod explain;
pub mod form;
pub mod get;
pub mod headers;
pub mod list;
pub mod naming;
pub mod plan;
pub mod raw;
pub mod submit;
pub mod view;
