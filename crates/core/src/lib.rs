//! Every delivery decision of Outflow, as a pure state machine.
pub mod account;
pub mod class;
pub mod classify;
pub mod destination;
pub mod entropy;
pub mod flow;
pub mod handle;
pub mod limit;
pub mod message;
pub mod name;
pub mod outcome;
pub mod policy;
pub mod reply;
pub mod retry;
pub mod schedule;
pub mod time;
