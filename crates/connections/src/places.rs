//! Places for connections, as every listener hands them out.
//!
//! How many there are, and who gives way when all are taken, is decided by
//! [`strangers`](outflow_core::strangers); here it is behind a lock, and places
//! come back by themselves.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outflow_core::strangers::{Crowd, Guest};

/// Tells a connection that its place must be given to somebody else.
pub type Bell = Box<dyn FnOnce() + Send>;

/// The places of one listener.
pub struct Places(Mutex<Crowd<Bell>>);

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Places({} taken)", self.lock().count())
    }
}

/// The place of one connection, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    guest: Guest,
}

impl Places {
    /// So many, `each` of them for one address, or one network of IPv6 (/64).
    pub fn of(max: usize, each: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Crowd::of(max, each))))
    }

    fn lock(&self) -> MutexGuard<'_, Crowd<Bell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from this address, until `bell` is rung.
    pub fn enter(self: &Arc<Self>, address: IpAddr, bell: Bell) -> Option<Place> {
        let (guest, leaving) = self.lock().enter(address, bell)?;
        if let Some(leaving) = leaving {
            leaving();
        }
        Some(Place {
            places: Arc::clone(self),
            guest,
        })
    }

    /// How many connections a party has, and how many more it may have now.
    pub fn of_party(&self, party: &str) -> (u64, u64) {
        self.lock().of_party(party)
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.lock().count()
    }
}

impl Place {
    /// A token was shown: the connection counts for this party, and keeps its
    /// place. False if the party has as many as it may have.
    #[must_use]
    pub fn known(&self, party: &str, is_free: bool) -> bool {
        self.places.lock().known(self.guest, party, is_free)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().leave(self.guest);
    }
}
