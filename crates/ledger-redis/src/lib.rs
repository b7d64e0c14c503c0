//! Keeps the limits that a fleet shares, in Redis (7 or later, also Valkey, also
//! Redis Cluster).
//!
//! On which terms a limit is leased is decided in [`outflow_core::ledger`]; this
//! crate feeds the numbers to one small atomic script per algorithm, which counts
//! on Redis' own clock. A key and the epoch of its counts share a slot, and a
//! permit over several limits is taken from tokens that a node has, so no script
//! ever needs two limits, and a cluster works.
//!
//! Losses of state are noticed by the scripts themselves: the epoch of a count
//! carries the id of the server that keeps it. After a restart, a failover or a
//! `FLUSHALL` a limit begins empty, never full. A server that evicts keys forgets
//! counts without anybody noticing: set `maxmemory-policy noeviction`.
//!
//! Reading order: [`RedisSettings`], `name` (keys), `script` and `lua/`; `ask`,
//! `answer` (a request and its reply);
//! `server` (the connection), `health` (the breaker), `desk` (what is shared),
//! `courier` (work on its way), `watch` (what others did), `policies`;
//! [`RedisLedger`] and [`RedisLink`].

mod answer;
mod ask;
mod courier;
mod desk;
mod health;
mod ledger;
mod name;
mod outbox;
mod policies;
mod script;
mod server;
mod settings;
mod watch;

#[cfg(test)]
mod virtual_time;

pub use self::health::LedgerStatus;
pub use self::ledger::{RedisLedger, RedisLink};
pub use self::outbox::Wake;
pub use self::policies::{PoliciesError, SharedPolicy};
pub use self::settings::{RedisSettings, SettingsError};
