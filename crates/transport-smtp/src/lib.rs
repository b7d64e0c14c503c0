//! Delivers mail by SMTP: to a provider's server, to a relay, or to the servers
//! of a destination.
//!
//! It decides nothing about messages. It opens the sessions that the engine asks
//! for, carries one message at a time over each, and tells what the far end said
//! and at which stage; what that means is core's to say. Each delivery gets
//! exactly one reply. A connection that is lost after the last byte of a message
//! was written is *uncertain*; before that the message was not sent.
//!
//! Reading order: [`client`] (the protocol, without input and output), [`relay`]
//! (how an account reaches its server), [`exchangers`] (who takes a
//! destination's mail), `tls`, `connect`, `wire` (a connection), `prepare` (from
//! a parcel to a mail), `line` (a connection in use), `berths` (how many there
//! are), `session` (one task each), `outbox` (what goes back to the node),
//! [`transport`] (the port); [`mod@probe`]
//! (one look at a server, without mail).
//!
//! The application makes one [`SmtpTransport`], gives it a [`Relay`] for each
//! account by its [`SmtpHandle`], and hands the transport to the node.

mod berths;
pub mod client;
mod connect;
pub mod exchangers;
mod line;
mod outbox;
mod prepare;
pub mod probe;
pub mod relay;
mod session;
mod tls;
pub mod transport;
mod wire;

pub use client::Tls;
pub use client::login::Login;
pub use client::timeouts::Timeouts;
pub use exchangers::{Exchanger, Exchangers, Found, Missing, Takes};
pub use probe::{Probed, probe};
pub use relay::{Relay, RelayError, Target};
pub use tls::TlsError;
pub use transport::{Opened, ReturnTo, Returning, SmtpHandle, SmtpTransport};
