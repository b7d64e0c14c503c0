//! Post-mortems: what happened at a destination, drawn and told, from the
//! history and the audit of a server.
//!
//! All of it is pure: what the server answered comes in, texts come out, and
//! the time is an argument. What far ends and callers wrote is escaped wherever
//! it is put.
//!
//! Reading order: [`material`] (what the server answered), [`series`] (counts
//! and limits of one destination over time), [`change`] (who changed what),
//! [`case`](mod@case) (what happened there), [`phase`], [`story`] (all of it,
//! and the headline); [`figures`] and [`escape`] (how things are written);
//! [`markdown`], [`table`], [`chart`] with [`scale`] and [`marks`] (the report).

pub mod case;
pub mod change;
pub mod chart;
pub mod escape;
pub mod figures;
pub mod markdown;
pub mod marks;
pub mod material;
pub mod phase;
pub mod scale;
pub mod series;
pub mod story;
pub mod table;
#[cfg(test)]
mod tests;
