//! A transport whose far ends the world plays.
//!
//! What a node submits is put down for the world, which asks the network and
//! puts the answers back with the time at which they arrive.

use std::collections::BTreeMap;

use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::handle::SessionRef;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Now};
use outflow_ports::parcel::ParcelRef;
use outflow_ports::transport::{Transport, TransportWork};

/// Work that a node handed over.
#[derive(Debug)]
pub enum Handed {
    /// Open a session.
    Open {
        /// Which.
        session: SessionRef,
        /// With whose credentials.
        account: Name,
        /// To whom.
        destination: Destination,
    },
    /// Close a session.
    Close {
        /// Which.
        session: SessionRef,
    },
    /// Deliver a message.
    Deliver {
        /// Which, over which session.
        delivery: Delivery,
        /// What is delivered.
        parcel: Option<ParcelRef>,
        /// With whose credentials.
        account: Name,
        /// To whom.
        destination: Destination,
    },
}

/// A node's end of the simulated networks.
#[derive(Debug, Default)]
pub struct SimTransport {
    handed: Vec<Handed>,
    arriving: BTreeMap<(Mono, u64), Event>,
    count: u64,
}

impl SimTransport {
    /// What the node handed over since this was last asked.
    pub fn take_handed(&mut self) -> Vec<Handed> {
        std::mem::take(&mut self.handed)
    }

    /// An answer arrives at `at` on the node's clock.
    pub fn arrive(&mut self, at: Mono, event: Event) {
        self.count += 1;
        self.arriving.insert((at, self.count), event);
    }
}

impl Transport for SimTransport {
    fn submit(&mut self, _: &Now, work: TransportWork<'_>) {
        self.handed.push(match work {
            TransportWork::Open {
                session,
                account,
                destination,
            } => Handed::Open {
                session,
                account: account.id.clone(),
                destination: destination.clone(),
            },
            TransportWork::Close { session } => Handed::Close { session },
            TransportWork::Deliver {
                delivery,
                parcel,
                account,
                destination,
            } => Handed::Deliver {
                delivery,
                parcel,
                account: account.id.clone(),
                destination: destination.clone(),
            },
        });
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        while let Some(entry) = self.arriving.first_entry() {
            if entry.key().0 > now.mono {
                break;
            }
            done.push(entry.remove());
        }
    }

    fn next_completion(&self) -> Mono {
        self.arriving
            .first_key_value()
            .map_or(Mono::NEVER, |(&(at, _), _)| at)
    }
}
