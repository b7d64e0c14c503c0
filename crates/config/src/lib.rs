//! The settings of Outflow: as they are written, checked, and in force.
//!
//! Nothing here talks to the network, and nothing reads the environment by
//! itself. The same fields are read from the file and over the API, and held
//! against the same table of keys.
//!
//! In reading order: [`problem`] (what is wrong and where), [`nearest`] (what
//! was probably meant), [`figure`] and [`written`] (times, sizes, shares as
//! people write them), [`secret`]; [`key`], [`form`] and [`check`] (what a key
//! is and how a value is held against it), [`keys`] (the one table of them) and
//! [`json_schema`] (what it says to programs);
//! [`account`], [`policy`], [`merge`](mod@merge) (what the API changes as well);
//! [`document`], [`environment`], [`raw`], [`raw_runbook`], [`valid`] and [`load`] (the whole
//! file and what goes over it), [`show`] and [`reference`](mod@reference).

pub mod account;
pub mod check;
pub mod document;
pub mod environment;
pub mod figure;
pub mod form;
pub mod json_schema;
pub mod key;
pub mod keys;
pub mod load;
pub mod merge;
pub mod nearest;
pub mod policy;
pub mod problem;
pub mod raw;
pub mod raw_runbook;
pub mod reference;
pub mod secret;
pub mod show;
pub mod valid;
pub mod written;

pub use account::{Account, RawAccount, TransportSettings};
pub use json_schema::{account_schema, policy_schema};
pub use load::{LoadError, Origin};
pub use merge::merge;
pub use policy::{Mitigation, RawPolicy, ValidPolicy, match_of_path, path_of_match};
pub use problem::{Invalid, Problem};
pub use reference::{default_toml, reference_markdown};
pub use secret::{Secret, SecretSource};
pub use valid::Settings;
