//! A durable queue on one machine.
//!
//! The journal holds the truth about live messages: append-only segments, group
//! commit, `fdatasync` before any acknowledgement. An index in memory says where
//! each message waits. The record (SQLite) holds what people ask for later and
//! what operators set.
//!
//! Reading order: [`settings`], [`store`] (the queue) with `intake` (what goes
//! in), `opening` (names of flows) and `answers` (what comes back), [`open`] with `pair`; `index` (what
//! is alive and where it waits); `journal` (how it gets to the disk) over
//! [`disk`]; `library` and `timeline` (how it is read back), `recovery` (what a
//! start finds) with `read_ahead` and `resync`, `reclaim` and `keeper` (how space is given back); `clerk`,
//! [`live`] and [`record`] (what is kept of messages that are done with);
//! [`check`] and [`salvage`] over `shown`, [`boot`], [`lock`]; [`stepped`] (the same
//! without threads).

mod answers;
pub mod boot;
pub mod check;
mod clerk;
pub mod disk;
mod index;
mod intake;
mod journal;
mod keeper;
mod library;
pub mod live;
pub mod lock;
pub mod open;
mod opening;
mod pair;
mod private;
mod read_ahead;
mod reclaim;
pub mod record;
mod recovery;
mod resync;
pub mod salvage;
pub mod settings;
mod shown;
pub mod stepped;
pub mod store;
mod timeline;

#[cfg(test)]
mod tests;

pub use journal::segment::{
    Header, HeaderError, Kind, SegmentReport, read_segment, reseal_segment,
};
pub use open::{OpenError, Opened};
pub use pair::PairError;
pub use recovery::JournalError;
pub use settings::Settings;
pub use store::EmbeddedStore;
