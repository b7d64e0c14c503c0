//! Simulated networks, traffic, faults and checkers, for runs in virtual time.
//!
//! A scenario is data: what is sent, by whom, under which policies, to whom,
//! what goes wrong, and what must come out. The world runs nodes over it and
//! tells observers what happened; checkers judge that, the recorder counts it.
//! A seed reproduces a run exactly.
//!
//! In reading order:
//! - [`scenario`]: a simulation as data, those that ship, and random ones.
//! - [`units`], [`expect`]: times and rates as people write them; expected ranges.
//! - [`random`]: seeded streams, one per part of a run.
//! - [`network`]: far ends, one behaviour per file.
//! - [`traffic`]: arrivals, merged in order of time.
//! - [`trace`], [`hash`]: what happened, in true time, and a hash over it.
//! - [`backlog`], [`in_flight`]: which messages wait, which are under way.
//! - [`meter`]: what each limit allows, counted independently.
//! - [`checkers`]: what must never happen, one file each.
//! - [`pressure`]: accounts that were asked to wait, and the others meanwhile.
//! - [`recorder`], [`tally`], [`histogram`], [`utilisation`], [`series`],
//!   [`summary`]: a run in numbers.
//! - [`real`]: the store that production has, on a simulated disk.
//! - [`memory`]: a ledger in memory, and a store that the real one is compared
//!   with, with faults.
//! - [`world`]: nodes over all that, in virtual time; [`simulate`]: one run,
//!   judged.
//! - [`hidden`]: providers with hidden limits against rules for the rate, by
//!   themselves.
//! - [`report`], [`chart`]: for people.

pub mod backlog;
pub mod chart;
pub mod checkers;
pub mod connections;
pub mod expect;
pub mod hash;
pub mod hidden;
pub mod histogram;
pub mod in_flight;
pub mod memory;
pub mod meter;
pub mod network;
pub mod pressure;
pub mod random;
pub mod real;
pub mod recorder;
pub mod report;
pub mod scenario;
pub mod series;
pub mod simulate;
pub mod summary;
pub mod tally;
pub mod trace;
pub mod traffic;
pub mod units;
pub mod utilisation;
pub mod world;
