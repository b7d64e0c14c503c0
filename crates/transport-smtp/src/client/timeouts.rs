//! How long each step may take (RFC 5321, 4.5.3.2).

use std::time::Duration;

/// The most time for each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// All that it takes to open a session, over however many servers.
    pub open: Duration,
    /// Finding the host and connecting to one address.
    pub connect: Duration,
    /// The server's first words.
    pub greeting: Duration,
    /// EHLO or HELO.
    pub hello: Duration,
    /// STARTTLS and the handshake.
    pub starttls: Duration,
    /// Each step of a login.
    pub login: Duration,
    /// MAIL.
    pub sender: Duration,
    /// RCPT.
    pub recipient: Duration,
    /// DATA, up to the permission to go on.
    pub data: Duration,
    /// Each block of the message.
    pub block: Duration,
    /// From the final dot to the verdict. RFC 5321 asks for ten minutes, since
    /// giving up early makes duplicates.
    pub verdict: Duration,
    /// QUIT.
    pub quit: Duration,
    /// A whole delivery. Less than the engine's own deadline, so that it hears
    /// what is known.
    pub delivery: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            open: Duration::from_secs(600),
            connect: Duration::from_secs(30),
            greeting: Duration::from_secs(300),
            hello: Duration::from_secs(300),
            starttls: Duration::from_secs(120),
            login: Duration::from_secs(120),
            sender: Duration::from_secs(300),
            recipient: Duration::from_secs(300),
            data: Duration::from_secs(120),
            block: Duration::from_secs(180),
            verdict: Duration::from_secs(600),
            quit: Duration::from_secs(5),
            delivery: Duration::from_secs(590),
        }
    }
}

impl Timeouts {
    /// The same time for every step.
    pub const fn all(time: Duration) -> Self {
        Self {
            open: time,
            connect: time,
            greeting: time,
            hello: time,
            starttls: time,
            login: time,
            sender: time,
            recipient: time,
            data: time,
            block: time,
            verdict: time,
            quit: time,
            delivery: time,
        }
    }
}
