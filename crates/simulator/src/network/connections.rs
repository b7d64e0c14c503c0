//! How many connections a sender may hold, and how many messages each carries.

use serde::Deserialize;

/// The caps of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionCap {
    /// Connections at the same time.
    pub max: Option<u32>,
    /// Messages on one connection.
    pub messages: Option<u32>,
}

impl ConnectionCap {
    /// Messages on one connection.
    pub fn messages_max(&self) -> u32 {
        self.messages.unwrap_or(u32::MAX)
    }
}

/// The connections of one sender.
#[derive(Clone, Debug)]
pub struct Connections {
    max: u32,
    open: u32,
}

impl Connections {
    /// None open yet.
    pub fn new(cap: Option<ConnectionCap>) -> Self {
        Self {
            max: cap.and_then(|cap| cap.max).unwrap_or(u32::MAX),
            open: 0,
        }
    }

    /// One more, if it is allowed.
    pub fn open(&mut self) -> bool {
        let fits = self.open < self.max;
        self.open += u32::from(fits);
        fits
    }

    /// One less.
    pub fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
    }
}
