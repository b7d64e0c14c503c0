//! What Outflow needs of the outside.
//!
//! Every port has the same shape: *submit* hands work over and returns at once,
//! *complete* brings what is done by now, *next_completion* says when to look
//! again. Nothing waits in between, so production, tests and the simulator run
//! the same node. One conformance suite per trait says what every
//! implementation must do.
//!
//! Reading order: [`store`], [`transport`], [`ledger`], [`resolver`]; what comes
//! in: [`bounded`], [`naming`], [`draft`], [`intake`], [`query`], [`control`]; who asks before they
//! act: [`throttle`], [`lender`]; what is kept for people: [`receipts`],
//! [`registry`], [`history`], [`suppression`]; what is told later: [`hearing`]; what is carried: [`parcel`], [`letter`]; then [`conformance`].

pub mod bounded;
pub mod conformance;
pub mod control;
pub mod draft;
pub mod fleet;
pub mod hearing;
pub mod history;
pub mod intake;
pub mod ledger;
pub mod lender;
pub mod letter;
pub mod naming;
pub mod parcel;
pub mod query;
pub mod receipts;
pub mod registry;
pub mod resolver;
pub mod store;
pub mod suppression;
pub mod throttle;
pub mod transport;
