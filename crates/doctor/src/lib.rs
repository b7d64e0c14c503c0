//! Judges whether a domain is ready to send, before anybody refuses its mail.
//!
//! Nothing here asks anybody: what DNS and servers said is an argument. A judge
//! that misses an answer names the question; whoever called asks it and calls
//! again, until nothing is missing ([`exam`]). So a chain of SPF includes is
//! followed without a line of I/O, and every finding can be reached by a test
//! without a socket.
//!
//! Reading order: [`finding`] (what comes out), [`subject`] (what settings say)
//! and [`known`] (what was asked and answered); `names`, [`address`],
//! `tags` and `der` (how texts and certificates are read); then one file for each check: [`spf`],
//! `dkim`, `dmarc`, `mx`, `reverse`, `tls`, `limits`, `warmup`, `registration`,
//! `bulk`; [`exam`] (all of them).

pub mod address;
mod bulk;
pub mod der;
mod dkim;
mod dmarc;
pub mod exam;
pub mod finding;
pub mod known;
mod limits;
mod mx;
pub mod names;
mod registration;
mod reverse;
pub mod spf;
pub mod subject;
mod tags;
mod tls;
mod warmup;

pub use exam::{Exam, QUESTIONS_MAX, ROUNDS_MAX, examine};
pub use finding::{Check, Finding, Record, Status};
pub use known::{Answer, Known, Question, ServerSeen};
pub use subject::Subject;
