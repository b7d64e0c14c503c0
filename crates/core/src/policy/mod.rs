//! Policies: what operators write, and the limits that follow from it.
//!
//! In reading order: [`scope`] and [`scope_set`] name what can be limited,
//! [`aliases`] and [`text`] how it is written, [`facet`] and [`key`] what a
//! limit is called, `facts` and [`matcher`] what a policy governs, [`policy`],
//! [`patch`] and [`error`] what it says and what is refused, [`role`] who can
//! honour it, `rule` how several are folded into one, [`applied`] what they
//! yield, [`set`] keeps them all, and [`ramp`] says how a rate comes back after
//! a mitigation.
pub mod aliases;
pub mod applied;
pub mod error;
pub mod facet;
mod facts;
pub mod key;
pub mod matcher;
pub mod patch;
#[expect(clippy::module_inception, reason = "one noun per file")]
pub mod policy;
pub mod ramp;
pub mod role;
mod rule;
pub mod scope;
pub mod scope_set;
pub mod set;
pub mod text;
