//! How shared limits are leased: the arithmetic that every ledger has in common.
//!
//! A ledger debits tokens before it grants them, and pays the life of a lease in
//! advance. What that costs follows from the numbers of a limit, its largest cost
//! and a few settings. A ledger in memory counts on it directly, one behind a
//! network feeds its scripts with the numbers that come out.
//!
//! Reading order: [`Settings`], [`Terms`]; `bucket`, [`spaced`], `window`,
//! [`calendar`] (how each algorithm is leased), [`slots`] (who holds them); [`owed`]
//! (what lower classes get); [`debits`] (what a ledger that
//! lost its counts is told).

pub mod bucket;
pub mod calendar;
pub mod debits;
pub mod owed;
pub mod settings;
pub mod slots;
pub mod spaced;
pub mod terms;
mod window;

pub use self::settings::{Settings, paid, paid_with};
pub use self::spaced::Spacing;
pub use self::terms::{Leasing, NEVER_PAUSE, QUEUE_MAX, Terms};
