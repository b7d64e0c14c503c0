//! Policies: as they are written, and as they are enforced.
//!
//! In reading order: [`raw`] has the fields that people write, [`valid`] checks
//! them, [`text`] writes rates and limits as people do, [`path`] is what a
//! policy is called in a URL, [`built_in`] are those that come with the program.

pub mod built_in;
pub mod path;
pub mod raw;
pub mod text;
pub mod valid;

pub use path::{match_of_path, path_of_match};
pub use raw::RawPolicy;
pub use valid::{Mitigation, ValidPolicy};
