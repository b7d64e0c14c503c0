//! Mail as it goes over the wire: composed, brought into shape, signed.
//!
//! What a sender wrote becomes bytes here, and nowhere else. Nothing that comes
//! from outside reaches a header or an SMTP command as plain text: it is an
//! [`Address`], a [`HeaderName`] or a [`HeaderValue`], whose constructors refuse
//! line breaks, so injection is not checked for but impossible. The bytes have
//! CRLF line ends and no line over 998 octets; dots are not stuffed, that is the
//! transport's. This crate fences the MIME and DKIM libraries.
//!
//! Reading order: [`address`], [`header`], [`unsubscribe`] (the types);
//! [`mod@compose`] (from a letter to a [`Mail`]) with `mime` (its parts) and `raw`
//! (messages that came whole), and [`mod@receive`] (as they come in);
//! [`structure`] (the parts of a mail); `lines` (what a line may be); [`dkim`] (keys and
//! signatures).

pub mod address;
pub mod compose;
pub mod dkim;
pub mod header;
mod lines;
mod mime;
mod raw;
pub mod receive;
pub mod structure;
#[cfg(test)]
mod tests;
pub mod unsubscribe;

pub use address::{Address, Mailbox};
pub use compose::{Can, ComposeError, Mail, Utf8, compose};
pub use dkim::{DkimKey, Keyring};
pub use header::{HeaderName, HeaderValue};
pub use mime::content_id;
pub use receive::{ReceiveError, Received, Reception, named_senders, receive};
pub use unsubscribe::Unsubscribe;
