//! How many connections there may be, in all, from one address and of one party.
//!
//! When all places are taken, whoever came first of those who have shown no
//! token gives way to who comes. Whoever finds no place even so is not left
//! waiting: as long as one of a few spare places is free, a connection is served
//! once and shortly, and hears whether the server lives, or that it is busy. So
//! a machine that watches the server is answered also while somebody holds every
//! place.
//!
//! A connection that showed a token counts for its tenant, or for the token
//! where there is none: nobody has more than [`fair`](outflow_core::fair) allows,
//! so that some are left for others. Administrators are not bounded.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outflow_connections::places::{self, Places};
use tokio::sync::Notify;

/// More than so many that have to leave are given a moment to do it.
const LEAVING: usize = 32;

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
    places: Arc<Places>,
    places_max: usize,
    spare: Arc<AtomicUsize>,
    spare_max: usize,
}

/// A place of one connection, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    kind: Kind,
    bell: Arc<Notify>,
}

#[derive(Debug)]
enum Kind {
    Usual(places::Place),
    Spare(Arc<AtomicUsize>),
}

impl Place {
    /// Whether it is one of the few for those who found no other.
    pub const fn is_spare(&self) -> bool {
        matches!(self.kind, Kind::Spare(_))
    }

    /// Waits until it must be given to somebody else.
    pub async fn turned_out(&self) {
        self.bell.notified().await;
    }

    /// A token was shown on it: it counts for this party from now on, and is
    /// not given to others. False if the party has as many as it may have.
    #[must_use]
    pub fn known(&self, party: &str, is_free: bool) -> bool {
        match &self.kind {
            Kind::Usual(place) => place.known(party, is_free),
            Kind::Spare(_) => true,
        }
    }
}

impl Doors {
    /// Nobody is inside.
    pub fn new(caps: Caps) -> Arc<Self> {
        Arc::new(Self {
            places: Places::of(caps.all, caps.each),
            places_max: caps.all,
            spare: Arc::default(),
            spare_max: caps.spare,
        })
    }

    /// How many connections a party has, and how many more it may have now.
    pub fn connections_of(&self, party: &str) -> (u64, u64) {
        self.places.of_party(party)
    }

    /// Whether so many are about to leave for others that who comes now might
    /// find no place because of them.
    pub fn is_crowded(&self) -> bool {
        self.places.taken() >= self.places_max + LEAVING
    }

    /// A place for a connection from this address.
    pub fn admit(&self, address: IpAddr) -> Option<Place> {
        let bell = Arc::new(Notify::new());
        let rung = Arc::clone(&bell);
        let usual = self
            .places
            .enter(address, Box::new(move || rung.notify_one()));
        let kind = match usual {
            Some(place) => Kind::Usual(place),
            None => {
                // One who comes too late takes back what it added.
                let spare = Kind::Spare(Arc::clone(&self.spare));
                if self.spare.fetch_add(1, Ordering::Relaxed) >= self.spare_max {
                    return None;
                }
                spare
            }
        };
        Some(Place { kind, bell })
    }
}

impl Drop for Kind {
    fn drop(&mut self) {
        if let Self::Spare(spare) = self {
            spare.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

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
        for place in [&first, &second, &other] {
            assert!(place.as_ref().unwrap().known("root", true));
        }
        assert!(admit("192.0.2.2").is_none(), "all places are taken");
        drop(third);
        assert_eq!(spare(&admit("::ffff:192.0.2.2")), Some(true));
        drop((first, second));
        assert_eq!(spare(&admit("192.0.2.1")), Some(false));
        drop(other);
        assert_eq!(doors.places.taken(), 0);
        assert_eq!(doors.spare.load(Ordering::Relaxed), 0);
    }

    fn is_turned_out(place: &Place) -> bool {
        let going = std::pin::pin!(place.turned_out());
        let mut context = Context::from_waker(Waker::noop());
        going.poll(&mut context).is_ready()
    }

    #[test]
    fn who_showed_no_token_gives_way_and_who_did_does_not() {
        let caps = Caps {
            all: 9,
            each: 9,
            spare: 1,
        };
        let doors = Doors::new(caps);
        let admit = |address: &str| doors.admit(address.parse().unwrap());
        let many: Vec<Place> = (0..9).filter_map(|_| admit("192.0.2.1")).collect();
        assert!(many[0].known("acme", false));
        let new = admit("192.0.2.2").unwrap();
        assert!(!new.is_spare());
        let out: Vec<bool> = many.iter().map(is_turned_out).collect();
        let wanted = [false, true, false, false, false, false, false, false, false];
        assert_eq!(out, wanted, "the first who showed no token");
        // One party has eight ninths at most, and what it has comes back.
        for place in many.iter().skip(2) {
            assert!(place.known("acme", false));
        }
        assert_eq!(doors.connections_of("acme"), (8, 0));
        assert!(!new.known("acme", false));
        assert!(new.known("globex", false));
        drop((many, new));
        assert_eq!(doors.connections_of("acme").0, 0);
    }
}
