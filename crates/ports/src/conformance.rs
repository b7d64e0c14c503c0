//! What every implementation of a port must do, one suite per trait.
//!
//! A suite is a list of named cases over a *harness*, which says how to make
//! time pass and how to break things. Time may be virtual or real: a case waits
//! for answers, never for a fixed time, and says what must not be before when.
//!
//! Reading order: [`store`], [`ledger`] (with [`guarantee`]), [`transport`].

pub mod guarantee;
pub mod ledger;
pub mod store;
pub mod transport;
