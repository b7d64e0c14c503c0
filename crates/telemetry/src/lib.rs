//! What a node tells of itself. Everything that is worth a metric or a line in
//! a log is one entry of one catalogue; metrics, logs and the reference follow
//! from it.
//!
//! In reading order: [`catalogue`] (all that happens), [`sink`] (where it goes);
//! [`declarations`] (every metric, with its documentation), [`metrics`] (what is
//! counted), `destinations`, `requests`, `submissions` and `histogram` (where), [`snapshot`]
//! (what is so now), `render` and `exposition` (the page), [`mod@reference`] (the
//! documentation); [`logs`] (what people read), [`attempts`] (a line for every
//! attempt), [`history`] (what was sent where lately), `line` and `address` (how a line is written), [`writer`] (who
//! writes it) and `log_file` (where to).

mod address;
pub mod attempts;
pub mod catalogue;
pub mod declarations;
mod destinations;
mod exposition;
mod histogram;
pub mod history;
mod ledger;
mod line;
mod log_file;
pub mod logs;
pub mod metrics;
pub mod reference;
mod render;
mod requests;
pub mod sink;
pub mod snapshot;
mod submissions;
pub mod writer;

pub use address::hidden as without_addresses;
pub use attempts::AttemptLog;
pub use catalogue::Event;
pub use history::Lately;
pub use logs::{LogSettings, Logs};
pub use metrics::Metrics;
pub use sink::{Silent, Sink, Sinks};
pub use snapshot::Snapshot;
