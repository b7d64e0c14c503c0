//! How much there is room for: connections, and bytes of messages on their way
//! in. Whoever comes beyond it hears "later".

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Room {
    connections_max: usize,
    per_address_max: usize,
    held_max: usize,
    /// How long it is busy after the node said so.
    busy: Duration,
    connections: Mutex<HashMap<IpAddr, usize>>,
    total: AtomicUsize,
    held: AtomicUsize,
    began: Instant,
    /// In milliseconds since it began.
    busy_until: AtomicU64,
}

impl Room {
    pub fn new(
        connections_max: usize,
        per_address_max: usize,
        held_max: usize,
        busy: Duration,
    ) -> Self {
        Self {
            connections_max,
            per_address_max,
            held_max,
            busy,
            connections: Mutex::default(),
            total: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            began: Instant::now(),
            busy_until: AtomicU64::new(0),
        }
    }

    /// A place for a connection from this address, while it is kept.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = network(address);
        let connections = self.connections.lock();
        let mut connections = connections.unwrap_or_else(PoisonError::into_inner);
        let from_there = connections.get(&address).copied().unwrap_or(0);
        let total = self.total.load(Ordering::Relaxed);
        if from_there >= self.per_address_max || total >= self.connections_max {
            return None;
        }
        connections.insert(address, from_there + 1);
        self.total.fetch_add(1, Ordering::Relaxed);
        Some(Place {
            room: Arc::clone(self),
            address,
            held: 0,
        })
    }

    /// The node takes no messages for now.
    pub fn note_busy(&self) {
        let until = self.began.elapsed() + self.busy;
        self.busy_until
            .store(until.as_millis() as u64, Ordering::Relaxed);
    }

    /// Whether new messages must wait.
    pub fn is_full(&self) -> bool {
        let busy_until = self.busy_until.load(Ordering::Relaxed);
        let is_busy = busy_until > 0 && busy_until > self.began.elapsed().as_millis() as u64;
        is_busy || self.held.load(Ordering::Relaxed) > self.held_max
    }

    /// Whether even messages that are coming in must be let go.
    pub fn overflows(&self) -> bool {
        self.held.load(Ordering::Relaxed) / 2 > self.held_max
    }
}

/// The place of one connection.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    address: IpAddr,
    held: usize,
}

impl Place {
    /// It holds so many bytes now.
    pub fn hold(&mut self, bytes: usize) {
        if bytes != self.held {
            // Wraps around to what it should be when it becomes less.
            let more = bytes.wrapping_sub(self.held);
            self.room.held.fetch_add(more, Ordering::Relaxed);
            self.held = bytes;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hold(0);
        let connections = self.room.connections.lock();
        let mut connections = connections.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = connections.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.address);
            }
        }
        self.room.total.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whose address it is: in IPv6 one host has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let host = u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !host))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let room = Arc::new(Room::new(3, 2, 100, Duration::ZERO));
        let enter = |text: &str| room.enter(text.parse().unwrap());
        let first = enter("192.0.2.1").unwrap();
        let mut second = enter("::ffff:192.0.2.1").unwrap();
        assert!(enter("192.0.2.1").is_none());
        let third = enter("2001:db8::1").unwrap();
        assert!(enter("192.0.2.2").is_none());
        second.hold(150);
        assert!(room.is_full() && !room.overflows());
        second.hold(300);
        assert!(room.overflows());
        second.hold(50);
        assert!(!room.is_full());
        drop((first, second, third));
        assert_eq!(room.held.load(Ordering::Relaxed), 0);
        let six = [enter("2001:db8::1"), enter("2001:db8::2")];
        assert!(six.iter().all(Option::is_some) && enter("2001:db8::3").is_none());
    }
}
