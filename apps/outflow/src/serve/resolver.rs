//! Who hosts a domain: the directory as settings want it, and intake by it.
//!
//! A domain that is well known or was asked for before has its destination at
//! once, and its messages are stored under it. Others wait in a lane of their
//! own while the node has them resolved. Acceptance never waits for DNS.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outflow_api::detours::Detours;
use outflow_config::Settings;
use outflow_config::valid::dns::{Addresses, Lookups};
use outflow_pipeline::Handle;
use outflow_ports::intake::{Intake, Refused, Submission, Taken, Then};
use outflow_resolver_dns::{
    AddressOrder, Directory, Network, Reach, Settings as DnsSettings, SetupError, StsSettings,
    Table, TableError,
};
use tokio::runtime;

/// Why it cannot be said who hosts a domain.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("destinations.file: {path}: {error}", path = .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("destinations.file: {path}: {error}", path = .path.display())]
    Table { path: PathBuf, error: TableError },
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Who takes whose mail, as settings want it.
pub fn directory(
    settings: &Settings,
    runtime: runtime::Handle,
) -> Result<Arc<Directory>, DirectoryError> {
    let mut table = Table::built_in();
    if let Some(path) = &settings.destinations.file {
        let path = path.clone();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Err(DirectoryError::Unreadable { path, error }),
        };
        let extended = table.with(&text);
        table = extended.map_err(|error| DirectoryError::Table { path, error })?;
    }
    let dns = &settings.dns;
    let is_asked = dns.lookups != Lookups::Never;
    let asked = is_asked.then(|| DnsSettings {
        servers: dns.servers.clone(),
        lookups_max: dns.lookups_max,
        patience: Duration::from_nanos(dns.patience.0),
        cache_max: dns.cache_max,
        order: match dns.addresses {
            Addresses::Ipv4First => AddressOrder::Ipv4First,
            Addresses::Ipv6First => AddressOrder::Ipv6First,
            Addresses::Ipv4Only => AddressOrder::Ipv4Only,
            Addresses::Ipv6Only => AddressOrder::Ipv6Only,
        },
        sts: dns.mta_sts.then(StsSettings::default),
        reach: Reach::new(
            dns.allowed_networks
                .iter()
                .map(|(address, bits)| Network::new(*address, *bits))
                .collect(),
        ),
    });
    let directory = Directory::new(table, asked.as_ref(), runtime)?;
    if dns.lookups == Lookups::Always {
        directory.begin_to_ask();
    }
    Ok(directory)
}

/// Takes messages in under the destination of their domain, where it is known.
#[derive(Debug)]
pub struct ResolvedIntake {
    /// Who takes them.
    pub node: Handle,
    /// Who hosts whom.
    pub directory: Arc<Directory>,
    /// Which messages go through another pool for a while.
    pub detours: Arc<Detours>,
}

impl Intake for ResolvedIntake {
    fn submit(&self, mut batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>) {
        self.steer(&mut batch);
        self.node.submit(batch, then);
    }

    fn submit_whole(&self, mut batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>) {
        self.steer(&mut batch);
        self.node.submit_whole(batch, then);
    }
}

impl ResolvedIntake {
    /// Gives messages the destination of their domain and the pool that they go
    /// through now.
    fn steer(&self, batch: &mut [Submission]) {
        for submission in batch.iter_mut() {
            let destination = &mut submission.key.destination;
            if !destination.is_resolved()
                && let Some(known) = self.directory.known(destination.name.as_str())
            {
                *destination = known;
            }
        }
        self.detours.divert(batch);
    }
}
