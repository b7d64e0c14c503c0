//! The throttle over the Redis protocol.
//!
//! It decides nothing: it reads commands, asks the throttle, and writes what it
//! answers. Clients of redis-cell work unchanged (`CL.THROTTLE`); `ACQUIRE`,
//! `RELEASE` and `PAUSE` speak of our own model. Nothing is answered without a
//! token but `PING` and the way to show one.
//!
//! A whole buffer of commands is answered by one write. A command that waits
//! holds back only the later answers of its own connection.
//!
//! Reading order: [`codec`] (bytes to commands), [`reply`] (answers to bytes),
//! [`session`] with [`cell`] and [`acquire`] (commands to answers), all without
//! input and output; [`doorkeeper`], [`settings`], `connection` (one task each),
//! [`intake`] (the port).

pub mod acquire;
pub mod cell;
pub mod codec;
mod connection;
pub mod doorkeeper;
pub mod intake;
pub mod reply;
pub mod session;
pub mod settings;
#[cfg(test)]
mod tests;

pub use doorkeeper::{Doorkeeper, Pass};
pub use intake::{Parts, RespIntake, TlsWatch};
pub use settings::Settings;
