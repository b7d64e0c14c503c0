//! Takes messages in over SMTP, the way mail programs and frameworks submit.
//!
//! It decides nothing about delivery: it reads what a client says, makes one
//! submission for each recipient and answers `250` only when they are durable.
//! The user is anybody, the password is a submit token, and nothing is taken
//! without one, except reports that come to a return address of ours. What goes into a message's header as `X-Outflow-Class` and its
//! like is read and removed.
//!
//! Reading order: [`server`] (the protocol, without input and output);
//! [`doorkeeper`] (who may submit what), [`marks`] (the `X-Outflow-` fields),
//! [`accept`](mod@accept) (from a message to submissions); [`settings`],
//! [`observer`] (who counts), `room` (how much at once), `wire` and `connection` (one
//! task each), [`intake`] (the port).
//!
//! The application makes one [`SmtpIntake`]:
//!
//! ```ignore
//! let (tls, watch) = tokio::sync::watch::channel(Some(config));
//! let naming = Naming::of(random);
//! let parts = Parts { intake, doorkeeper, clock, naming, observer, tls: watch, hearing: None };
//! let smtp = SmtpIntake::bind(Settings::at(listen), parts).await?;
//! tokio::spawn(smtp.serve(async move { shutdown.cancelled().await }));
//! tls.send(Some(renewed)); // on SIGHUP
//! ```

pub mod accept;
mod connection;
pub mod doorkeeper;
pub mod intake;
pub mod marks;
pub mod observer;
mod room;
pub mod server;
pub mod settings;
mod wire;

pub use accept::accept;
pub use doorkeeper::{Doorkeeper, Pass};
pub use intake::{Clock, Parts, SmtpIntake, TlsWatch};
pub use observer::{Happened, Observer};
pub use server::Returns;
pub use settings::Settings;
