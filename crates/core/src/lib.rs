//! Every delivery decision of Outflow, as a pure state machine.
pub mod class;
pub mod destination;
pub mod entropy;
pub mod flow;
pub mod handle;
pub mod limit;
pub mod message;
pub mod name;
pub mod pool;
pub mod reply;
pub mod time;
