//! Far ends with hidden limits, and senders that must find them.
//!
//! One sender, one provider, as many messages as the sender cares to send, a
//! day of virtual time. What is measured is how well a rule for the rate, or the
//! whole engine, finds a limit that nobody tells it, beside a
//! sender that knows everything. Runs go from event to event, so a day at 100
//! a second takes about a second.
//!
//! In reading order: [`spec`] is a provider as data, [`library`] those that
//! ship; [`provider`] (with [`standing`]) answers; [`oracle`] is the all-knowing
//! sender; [`sender`] are the rules to compare; [`retries`] and [`links`] are
//! what a sender needs besides; [`run`] is one run without a queue and an engine,
//! [`whole`] one with them, [`table`] many side by side.

pub mod library;
pub mod links;
pub mod oracle;
pub mod provider;
pub mod retries;
pub mod run;
pub mod sender;
pub mod spec;
pub mod standing;
pub mod table;
pub mod whole;
