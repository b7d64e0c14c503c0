//! Domains asked of a real DNS server, over real sockets.
//!
//! Reading order: `server` (the DNS), `directory`, `port`, `survey`; `web` (a web server),
//! `policies`.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod directory;
mod policies;
mod port;
mod reach;
#[allow(dead_code, unreachable_pub, reason = "others use it as well")]
mod server;
mod survey;
#[allow(dead_code, unreachable_pub, reason = "others use it as well")]
mod web;

use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_resolver_dns::{AddressOrder, Directory, Network, Reach, Settings, Table};
use server::DnsServer;
use tokio::runtime::Runtime;

/// No wait is longer; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    runtime: Runtime,
    dns: DnsServer,
    directory: Arc<Directory>,
}

fn world(change: impl FnOnce(&mut Settings)) -> World {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let dns = DnsServer::start();
    let mut settings = Settings {
        servers: vec![dns.address],
        lookups_max: 64,
        patience: PATIENCE,
        cache_max: 10_000,
        order: AddressOrder::Ipv4First,
        sts: None,
        reach: everywhere(),
    };
    change(&mut settings);
    let table = Table::built_in();
    let directory = Directory::new(table, Some(&settings), runtime.handle().clone()).unwrap();
    directory.begin_to_ask();
    World {
        runtime,
        dns,
        directory,
    }
}

/// Addresses of documentation and of this machine too.
fn everywhere() -> Reach {
    let all = ["0.0.0.0", "::"].map(|address| Network::new(address.parse().unwrap(), 0));
    Reach::new(all.to_vec())
}

impl World {
    fn resolve(&self, domain: &str) -> String {
        let resolved = self.runtime.block_on(self.directory.resolve(domain));
        resolved.to_string()
    }
}

/// Waits until `look` finds something.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what}: not in time");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
