//! The port: domains from the node go to DNS, and what they roll up to goes
//! back.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use outflow_core::engine::event::Event;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Now};
use outflow_ports::resolver::Resolver;
use tokio::runtime::Handle;

use crate::directory::Directory;

/// While nobody answers, so many domains find out when that ends.
const PROBES: usize = 4;

/// Has the node look at its ports.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Resolves domains for a node. Every domain is answered, sooner or later.
pub struct DnsResolver {
    directory: Arc<Directory>,
    runtime: Handle,
    wake: Wake,
    /// Those that are not asked for yet: names only, however many there are.
    waiting: VecDeque<Name>,
    asking: usize,
    found: Arc<Mutex<Vec<Event>>>,
    ready: Vec<Event>,
}

impl fmt::Debug for DnsResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DnsResolver")
            .field("waiting", &self.waiting.len())
            .field("asking", &self.asking)
            .finish_non_exhaustive()
    }
}

impl DnsResolver {
    /// A resolver that asks on `runtime`.
    pub fn new(directory: Arc<Directory>, runtime: Handle, wake: Wake) -> Self {
        Self {
            directory,
            runtime,
            wake,
            waiting: VecDeque::new(),
            asking: 0,
            found: Arc::default(),
            ready: Vec::new(),
        }
    }

    fn ask(&mut self) {
        let is_away = !self.waiting.is_empty() && self.directory.is_away();
        while let Some(domain) = self.waiting.pop_front() {
            if is_away && self.asking >= PROBES {
                let destination = self.directory.give_up_on(domain.as_str());
                self.ready.push(Event::Resolved {
                    domain,
                    destination,
                });
                continue;
            }
            if self.asking >= self.directory.lookups_max() {
                self.waiting.push_front(domain);
                return;
            }
            self.asking += 1;
            let (directory, found) = (Arc::clone(&self.directory), Arc::clone(&self.found));
            let wake = Arc::clone(&self.wake);
            self.runtime.spawn(async move {
                let destination = directory.resolve(domain.as_str()).await;
                let event = Event::Resolved {
                    domain,
                    destination,
                };
                found
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(event);
                wake();
            });
        }
    }
}

impl Resolver for DnsResolver {
    fn submit(&mut self, _: &Now, domain: Name) {
        match self.directory.known(domain.as_str()) {
            Some(destination) => self.ready.push(Event::Resolved {
                domain,
                destination,
            }),
            None => {
                self.waiting.push_back(domain);
                self.ask();
            }
        }
    }

    fn complete(&mut self, _: &Now, done: &mut Vec<Event>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        self.asking = self.asking.saturating_sub(found.len());
        done.append(&mut found);
        drop(found);
        self.ask();
        done.append(&mut self.ready);
    }

    fn next_completion(&self) -> Mono {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match self.ready.is_empty() && found.is_empty() {
            true => Mono::NEVER,
            false => Mono(0),
        }
    }
}
