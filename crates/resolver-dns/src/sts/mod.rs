//! What domains demand of whoever sends to them: MTA-STS (RFC 8461).
//!
//! A domain can say that its mail goes only to servers with certain names, over
//! TLS, with a certificate that is valid for the name. It says so at a web
//! server, so that whoever can lie in DNS, or sits on the line to a mail server,
//! cannot take it back.
//!
//! Reading order: [`record`] (that there is a policy), [`pattern`] and
//! [`policy`] (what it says), `response` and `fetch` (how it is had), `kept`
//! (what is remembered), `policies` (all of it).

mod fetch;
mod kept;
pub mod pattern;
mod policies;
pub mod policy;
pub mod record;
mod response;

pub(crate) use policies::Policies;
pub use policies::StsSettings;
pub use policy::{Mode, Policy};
