//! What happens at the door, for whoever counts it.

use std::net::IpAddr;
use std::sync::Arc;

/// Something that happened to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It came.
    Connected,
    /// It left, or was sent away.
    Left,
    /// Its token was known.
    LoggedIn,
    /// Its token was not.
    LoginRefused,
    /// A message is durable, for so many recipients.
    Taken {
        /// How many.
        recipients: usize,
    },
    /// A report came to one of our return addresses.
    Reported,
    /// It was told no, or later.
    Refused {
        /// The code of the reply.
        code: u16,
        /// Its enhanced status.
        status: &'static str,
    },
}

/// Hears of everything. Called from the executor: it must not wait.
pub trait Observer: Send + Sync {
    /// Something happened to a client from this address.
    fn happened(&self, peer: IpAddr, what: Happened);
}

/// One client's stay. It is over when this is dropped.
pub(crate) struct Visit {
    peer: IpAddr,
    observer: Arc<dyn Observer>,
}

impl Visit {
    pub fn begin(peer: IpAddr, observer: Arc<dyn Observer>) -> Self {
        let visit = Self { peer, observer };
        visit.tell(Happened::Connected);
        visit
    }

    pub fn tell(&self, what: Happened) {
        self.observer.happened(self.peer, what);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.tell(Happened::Left);
    }
}
