//! Rolling counts: what happened in the last minutes, hours and days.
//!
//! Per key (an account, a destination, a sending domain and so on) a fixed
//! number of slots counts what became of messages; how many keys there are is
//! bounded too. Rules judge shares of these counts, each over its own window
//! and only from a least volume on.
//!
//! In reading order: [`counter`] and [`window`] are the words; `ring` counts
//! one window, [`key`] all windows of one key, [`tallies`] all keys; [`teller`]
//! says for whom something counts; [`rule`] judges.

pub mod counter;
pub mod key;
mod ring;
pub mod rule;
pub mod tallies;
pub mod teller;
pub mod window;

pub use counter::Counter;
pub use key::Tally;
pub use rule::{Finding, Judged, Rule};
pub use tallies::{Tallies, TallyRef};
pub use teller::Teller;
pub use window::Window;
