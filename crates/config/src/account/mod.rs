//! Accounts: as they are written, and as they are used.
//!
//! In reading order: [`raw`] has the fields that people write, [`valid`] checks
//! them and says what an account is, [`limits`] gathers its caps, [`transport`]
//! and [`sandbox`] say how it reaches the far end.

pub mod limits;
pub mod raw;
pub mod sandbox;
pub mod transport;
pub mod valid;

pub use raw::{RawAccount, RawDkim};
pub use sandbox::{Failure, HiddenRate, Latency, RawFailure, RawLatency, RawSandbox, Sandbox};
pub use transport::{Dkim, Login, Mx, Smtp, Tls, TransportSettings};
pub use valid::Account;
