//! Finds who takes a domain's mail: by a table of mailbox providers, and by DNS.
//!
//! Limits belong to whoever hosts a domain, so domains roll up to their host:
//! well-known ones by the table, without a question; others by the names of
//! their mail servers. What a domain rolls up to decides only whose limits its
//! messages count against. Where a message is *sent* is asked of its own domain
//! when it goes out.
//!
//! A DNS that does not answer delays and never refuses: a domain that cannot be
//! resolved for a while becomes a destination of its own, and is asked for
//! again later. Only an answer, that a domain does not exist or takes no mail,
//! refuses a message.
//!
//! Reading order: [`domain`] (names in one form), [`table`] (who is known),
//! [`answer`] (what DNS says of a domain), `cache`, `seen` and `health` (what is
//! remembered), `lookups` (questions to DNS), [`reach`] (which addresses may be
//! connected to), [`sts`] (what domains demand of
//! whoever sends to them), [`directory`] (all of it, for whoever accepts or
//! delivers), [`resolver`] (the port), [`survey`] (for whoever looks a domain
//! over).

pub mod answer;
mod cache;
pub mod directory;
pub mod domain;
mod health;
mod lookups;
pub mod reach;
pub mod resolver;
mod seen;
pub mod sts;
pub mod survey;
pub mod table;

pub use answer::Answer;
pub use directory::{Directory, NoServers, Server, Settings, Takes};
pub use lookups::{AddressOrder, SetupError};
pub use reach::{Network, Reach};
pub use resolver::DnsResolver;
pub use sts::StsSettings;
pub use survey::Survey;
pub use table::{Table, TableError};
