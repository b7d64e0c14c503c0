//! Who may be connected, and who gives way.
//!
//! Places are few, and anybody can take one and say nothing. So one address has
//! only some of them, and whoever has shown no token gives way, the longest
//! first, when somebody new comes and all places are taken: who says who they
//! are at once is served however many do not. And whoever shows a token has no
//! more than [`fair`](crate::fair) allows, so that some are left for others.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;

use crate::fair::Shares;

/// Those who are to go need a moment: so many more there may be meanwhile.
const LEAVING_MAX: usize = 64;

/// Who is connected. `B` is a bell that tells somebody to go.
#[derive(Debug)]
pub struct Crowd<B> {
    max: usize,
    each: usize,
    all: usize,
    by_address: BTreeMap<IpAddr, usize>,
    /// Those who have shown no token, in the order in which they came.
    strangers: BTreeMap<u64, B>,
    /// For whom those count who have.
    known: BTreeMap<u64, Box<str>>,
    shares: Shares,
    next: u64,
}

/// One who is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    address: IpAddr,
    number: u64,
}

/// Whom an address counts as: in IPv6 one host has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

impl<B> Crowd<B> {
    /// Nobody is connected; `max` may be, `each` of them from one address, or
    /// one network of IPv6 (/64).
    pub fn of(max: usize, each: usize) -> Self {
        Self {
            max,
            each,
            all: 0,
            by_address: BTreeMap::new(),
            strangers: BTreeMap::new(),
            known: BTreeMap::new(),
            shares: Shares::of(max as u64),
            next: 0,
        }
    }

    /// Somebody comes, and has shown no token yet: who they are, and the bell of
    /// whoever has to go for them. None if there is no place.
    pub fn enter(&mut self, address: IpAddr, bell: B) -> Option<(Guest, Option<B>)> {
        let address = network(address);
        let own = self.by_address.get(&address).copied().unwrap_or(0);
        if own >= self.each || self.all >= self.max + LEAVING_MAX {
            return None;
        }
        let mut leaving = None;
        if self.all >= self.max {
            leaving = Some(self.strangers.pop_first()?.1);
        }
        let number = self.next;
        self.next += 1;
        self.all += 1;
        self.by_address.insert(address, own + 1);
        self.strangers.insert(number, bell);
        Some((Guest { address, number }, leaving))
    }

    /// Somebody showed a token: they count for this party from now on, and give
    /// way no more. False if the party has as many connections as it may have;
    /// `is_free` has no bound.
    pub fn known(&mut self, guest: Guest, party: &str, is_free: bool) -> bool {
        if self
            .known
            .get(&guest.number)
            .is_some_and(|own| **own == *party)
        {
            return true;
        }
        if is_free {
            self.shares.force(party, 1);
        } else if !self.shares.take(party, 1) {
            return false;
        }
        self.strangers.remove(&guest.number);
        if let Some(before) = self.known.insert(guest.number, party.into()) {
            self.shares.give_back(&before, 1);
        }
        true
    }

    /// Somebody left.
    pub fn leave(&mut self, guest: Guest) {
        self.strangers.remove(&guest.number);
        if let Some(party) = self.known.remove(&guest.number) {
            self.shares.give_back(&party, 1);
        }
        self.all = self.all.saturating_sub(1);
        if let Some(own) = self.by_address.get_mut(&guest.address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.by_address.remove(&guest.address);
            }
        }
    }

    /// How many a party has, and how many more it may have now.
    pub fn of_party(&self, party: &str) -> (u64, u64) {
        self.shares.standing(party)
    }

    /// How many are connected.
    pub const fn count(&self) -> usize {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(
        crowd: &mut Crowd<&'static str>,
        address: &str,
        bell: &'static str,
    ) -> Option<(Guest, Option<&'static str>)> {
        crowd.enter(address.parse().unwrap(), bell)
    }

    #[test]
    fn one_address_leaves_places_to_others() {
        let mut crowd = Crowd::of(3, 2);
        let first = enter(&mut crowd, "2001:db8::1", "a").unwrap().0;
        let second = enter(&mut crowd, "2001:db8::2", "b").unwrap().0;
        assert!(enter(&mut crowd, "2001:db8::3", "c").is_none());
        let third = enter(&mut crowd, "192.0.2.1", "d").unwrap().0;
        for guest in [first, second, third] {
            assert!(crowd.known(guest, "root", true));
        }
        assert!(enter(&mut crowd, "192.0.2.2", "e").is_none());
        crowd.leave(second);
        let other = enter(&mut crowd, "::ffff:192.0.2.1", "f").unwrap();
        assert_eq!(other.1, None);
        assert!(enter(&mut crowd, "192.0.2.1", "g").is_none());
        for guest in [first, third, other.0] {
            crowd.leave(guest);
        }
        assert!(crowd.by_address.is_empty() && crowd.strangers.is_empty());
        assert!(crowd.known.is_empty() && crowd.shares.all() == 0);
        assert_eq!(crowd.count(), 0);
    }

    #[test]
    fn who_came_first_and_showed_no_token_goes_first() {
        let mut crowd = Crowd::of(3, 9);
        let known = enter(&mut crowd, "192.0.2.1", "a").unwrap().0;
        assert!(crowd.known(known, "acme", false));
        enter(&mut crowd, "192.0.2.1", "b").unwrap();
        enter(&mut crowd, "192.0.2.1", "c").unwrap();
        let rung = ["d", "e"].map(|it| enter(&mut crowd, "192.0.2.2", it).unwrap().1);
        assert_eq!(rung, [Some("b"), Some("c")]);
        // Whoever goes has a moment, in which there are only some more.
        let more = (0..100).filter(|_| enter(&mut crowd, "192.0.2.3", "f").is_some());
        assert_eq!(more.count(), 9, "of one address");
        for no in 0..100 {
            let _ = enter(&mut crowd, &format!("192.0.3.{no}"), "g");
        }
        assert_eq!(crowd.count(), 3 + LEAVING_MAX);
    }

    #[test]
    fn no_party_has_all_places() {
        let mut crowd = Crowd::of(9, 9);
        let guests = (0..9).map(|_| enter(&mut crowd, "192.0.2.1", "a").unwrap().0);
        let guests: Vec<Guest> = guests.collect();
        for guest in &guests[..8] {
            assert!(crowd.known(*guest, "acme", false));
        }
        assert!(crowd.known(guests[0], "acme", false), "it has it already");
        assert_eq!(crowd.of_party("acme"), (8, 0));
        assert!(!crowd.known(guests[8], "acme", false));
        assert!(crowd.known(guests[8], "globex", false));
        assert!(crowd.known(guests[8], "root", true), "another token");
        assert_eq!(crowd.of_party("globex").0, 0);
        crowd.leave(guests[0]);
        assert_eq!(crowd.of_party("acme").0, 7);
    }
}
