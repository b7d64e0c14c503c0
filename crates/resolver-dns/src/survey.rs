//! Questions about a domain that somebody looks over: records as they are
//! written, and nothing remembered.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::timeout;

use crate::lookups::{AddressOrder, Failure, Lookups, SetupError};

/// How long one question may take, over all servers.
const QUESTION: Duration = Duration::from_secs(8);
/// How many are asked at once.
const AT_ONCE: usize = 32;

/// Asks DNS. A name that is not there, or has no such record, has none of them;
/// an error says why nobody knows.
pub struct Survey {
    lookups: Lookups,
}

impl Survey {
    /// Asks these servers, or those of the system if there are none.
    pub fn new(servers: &[SocketAddr]) -> Result<Self, SetupError> {
        let lookups = Lookups::new(servers, AT_ONCE, AT_ONCE, AddressOrder::Ipv4First)?;
        Ok(Self { lookups })
    }

    /// The texts of a name, each in one piece.
    pub async fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let (texts, _) = in_time(self.lookups.texts(name)).await?;
        let texts = texts.iter().map(|text| String::from_utf8_lossy(text));
        Ok(texts.map(std::borrow::Cow::into_owned).collect())
    }

    /// The mail servers of a name, each with its preference; "" is the root.
    pub async fn exchangers(&self, name: &str) -> Result<Vec<(u16, String)>, String> {
        in_time(self.lookups.exchangers(name)).await
    }

    /// The addresses of a name.
    pub async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        in_time(self.lookups.addresses(name)).await
    }

    /// The names of an address.
    pub async fn names(&self, address: IpAddr) -> Result<Vec<String>, String> {
        in_time(self.lookups.names(address)).await
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, Failure>>) -> Result<T, String> {
    match timeout(QUESTION, asked).await {
        Ok(answer) => answer.map_err(|failure| failure.text),
        Err(_) => Err("DNS does not answer in time".to_owned()),
    }
}
