//! How much there is room for: connections, and bytes of messages on their way
//! in. Whoever comes beyond it hears "later". When all places are taken, whoever
//! came first of those who have not logged in gives way to who comes.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outflow_connections::places::{self, Bell, Places};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Room {
    held_max: usize,
    /// How long it is busy after the node said so.
    busy: Duration,
    connections: Arc<Places>,
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
            held_max,
            busy,
            connections: Places::of(connections_max, per_address_max),
            held: AtomicUsize::new(0),
            began: Instant::now(),
            busy_until: AtomicU64::new(0),
        }
    }

    /// A place for a connection from this address, while it is kept and until
    /// `bell` is rung.
    pub fn enter(self: &Arc<Self>, address: IpAddr, bell: Bell) -> Option<Place> {
        Some(Place {
            room: Arc::clone(self),
            place: self.connections.enter(address, bell)?,
            held: 0,
        })
    }

    /// The places for connections.
    pub fn places(&self) -> Arc<Places> {
        Arc::clone(&self.connections)
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
    place: places::Place,
    held: usize,
}

impl Place {
    /// Whoever has it showed a token, and keeps it, if their party may have one
    /// more.
    pub fn known(&self, party: &str) -> bool {
        self.place.known(party, false)
    }

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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let room = Arc::new(Room::new(3, 2, 100, Duration::ZERO));
        let enter = |text: &str| room.enter(text.parse().unwrap(), Box::new(|| ()));
        let first = enter("192.0.2.1").unwrap();
        let mut second = enter("::ffff:192.0.2.1").unwrap();
        assert!(enter("192.0.2.1").is_none());
        let third = enter("2001:db8::1").unwrap();
        assert!(first.known("a") && second.known("b") && third.known("c"));
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
