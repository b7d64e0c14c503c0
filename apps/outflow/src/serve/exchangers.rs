//! The servers of domains, for mail that goes straight to them.

use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_resolver_dns::{Directory, NoServers, Server, Takes as Says};
use outflow_transport_smtp::{Exchanger, Exchangers, Found, Missing, Takes};

/// Servers as the directory knows them, at one port.
pub struct DirectExchangers {
    /// Who takes whose mail.
    pub directory: Arc<Directory>,
    /// Their port.
    pub port: u16,
}

impl Exchangers for DirectExchangers {
    fn of_destination<'a>(&'a self, destination: &'a Destination) -> Found<'a, Vec<Exchanger>> {
        Box::pin(async move {
            match self.directory.domain_of(destination) {
                Some(domain) => self.of_domain(&domain).await,
                // Since the start no domain of it was seen: a message will say.
                None => Ok(Vec::new()),
            }
        })
    }

    fn of_domain<'a>(&'a self, domain: &'a str) -> Found<'a, Vec<Exchanger>> {
        Box::pin(async move {
            let servers = self.directory.servers_of(domain).await.map_err(missing)?;
            let exchanger = |server: Server| Exchanger {
                host: server.host,
                port: self.port,
                addresses: server.addresses,
                messages_max: server.messages_max,
                must_verify: server.must_verify,
            };
            Ok(servers.into_iter().map(exchanger).collect())
        })
    }

    fn takes<'a>(&'a self, host: &'a str, domain: &'a str) -> Found<'a, Takes> {
        Box::pin(async move {
            let says = self.directory.takes(host, domain).await.map_err(missing)?;
            Ok(match says {
                Says::No => Takes::No,
                Says::Yes => Takes::Yes,
                Says::IfVerified => Takes::IfVerified,
            })
        })
    }
}

fn missing(why: NoServers) -> Missing {
    match why {
        NoServers::Never(reply) => Missing::Never(reply),
        NoServers::NotNow(text) => Missing::NotNow(text),
        NoServers::Policy(text) => Missing::Policy(text),
    }
}
