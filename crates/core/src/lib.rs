//! Every delivery decision of Outflow, as a pure state machine: no I/O, no
//! clock, no randomness. Time and entropy are arguments.
//!
//! In reading order: [`time`], [`entropy`], [`name`], [`handle`]; [`class`],
//! [`destination`], [`message`], [`message_id`], [`flow`], [`account`] (the words); [`limit`],
//! [`policy`] (what may be sent when), [`ledger`] (how a fleet shares it), [`adapt`]
//! (how much of it the far end bears);
//! [`schedule`] (who goes next), [`pool`] (through which account), [`pressure`] (what the others do while one is blocked); [`reply`], [`allowance`], [`classify`], [`outcome`], [`retry`]
//! (what became of it), [`tally`] (how often), [`runbook`] (what to do when it is too often), [`warmup`] (how a new sender begins), [`suppression`] (who is not sent to any more), [`breaker`] (when to leave it alone); [`fair`], [`strangers`] (how much of what all share somebody has); [`engine`] ties them together; [`throttle`]
//! lends the same limits to others.

pub mod account;
pub mod adapt;
pub mod allowance;
pub mod breaker;
pub mod class;
pub mod classify;
pub mod destination;
pub mod engine;
pub mod entropy;
pub mod fair;
pub mod flow;
mod free_numbers;
pub mod handle;
pub mod ledger;
pub mod limit;
pub mod message;
pub mod message_id;
pub mod name;
pub mod outcome;
pub mod policy;
pub mod pool;
pub mod pressure;
pub mod reply;
pub mod retry;
pub mod runbook;
pub mod schedule;
pub mod strangers;
pub mod suppression;
pub mod tally;
pub mod throttle;
pub mod time;
pub mod warmup;
