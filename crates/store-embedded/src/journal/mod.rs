//! The journal: the truth about live messages, in append-only segments.
//!
//! Reading order: `place`, `frame`, `codec`, `words`, `kinds`, `entry` (what is
//! written); `segment` (where) and `list` (which there are); `task` (what is to be written), `encode`,
//! `files` (new segments and spare ones), `writer` (group commit); `error`.

pub(crate) mod codec;
pub(crate) mod encode;
pub(crate) mod entry;
pub mod error;
pub(crate) mod files;
pub(crate) mod frame;
pub(crate) mod kinds;
pub(crate) mod list;
pub(crate) mod place;
pub(crate) mod segment;
pub(crate) mod task;
pub(crate) mod words;
pub(crate) mod writer;
