//! How many connections there may be, in all and from one address.
//!
//! Whoever finds no place is not left waiting: as long as one of a few spare
//! places is free, a connection is served once and shortly, and hears whether
//! the server lives, or that it is busy. So a machine that watches the server
//! is answered also while somebody holds every place.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// In all.
    pub all: usize,
    /// From one address, or one network of IPv6 (/64).
    pub each: usize,
    /// For those who find no place.
    pub spare: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            all: 4_096,
            each: 1_024,
            spare: 64,
        }
    }
}

/// Who is inside.
#[derive(Debug)]
pub struct Doors {
    caps: Caps,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    by_address: BTreeMap<IpAddr, usize>,
    spare: usize,
}

/// A place of one connection, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    doors: Arc<Doors>,
    /// Whose it is; none for a spare place.
    address: Option<IpAddr>,
}

impl Place {
    /// Whether it is one of the few for those who found no other.
    pub const fn is_spare(&self) -> bool {
        self.address.is_none()
    }
}

/// Whom an address counts as: a network of IPv6 belongs to one party.
fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

impl Doors {
    /// Nobody is inside.
    pub fn new(caps: Caps) -> Arc<Self> {
        let inside = Mutex::default();
        Arc::new(Self { caps, inside })
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from this address.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = party(address);
        let mut inside = self.lock();
        let own = inside.by_address.get(&address).copied().unwrap_or(0);
        let address = if inside.all < self.caps.all && own < self.caps.each {
            inside.all += 1;
            inside.by_address.insert(address, own + 1);
            Some(address)
        } else if inside.spare < self.caps.spare {
            inside.spare += 1;
            None
        } else {
            return None;
        };
        let doors = Arc::clone(self);
        Some(Place { doors, address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.doors.lock();
        let Some(address) = self.address else {
            inside.spare = inside.spare.saturating_sub(1);
            return;
        };
        inside.all = inside.all.saturating_sub(1);
        if let Some(own) = inside.by_address.get_mut(&address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                inside.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_places_to_others() {
        let caps = Caps {
            all: 3,
            each: 2,
            spare: 1,
        };
        let doors = Doors::new(caps);
        let admit = |address: &str| doors.admit(address.parse().unwrap());
        let spare = |place: &Option<Place>| place.as_ref().map(Place::is_spare);
        let first = admit("2001:db8::1");
        let second = admit("2001:db8::2");
        let third = admit("2001:db8::3");
        assert_eq!((spare(&second), spare(&third)), (Some(false), Some(true)));
        assert!(admit("2001:db8::4").is_none());
        let other = admit("192.0.2.1");
        assert_eq!(spare(&other), Some(false));
        assert!(admit("192.0.2.2").is_none(), "all places are taken");
        drop(third);
        assert_eq!(spare(&admit("::ffff:192.0.2.2")), Some(true));
        drop((first, second));
        assert_eq!(spare(&admit("192.0.2.1")), Some(false));
        drop(other);
        let inside = doors.lock();
        assert_eq!((inside.all, inside.spare), (0, 0));
        assert!(inside.by_address.is_empty());
    }
}
