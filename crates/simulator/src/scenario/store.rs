//! Which store nodes have, as data.

use serde::Deserialize;

/// Which store nodes have, and how large its files are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreData {
    /// Which.
    pub kind: StoreKind,
    /// How large its files are.
    pub files: Files,
}

/// Which store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// The one that production has, on a simulated disk.
    #[default]
    Real,
    /// A model of it in memory.
    Model,
}

/// How large files of the journal are, and with it how soon it is tidied up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Files {
    /// Megabytes, and times as in production.
    #[default]
    Usual,
    /// Some kilobytes, and times as in production.
    Modest,
    /// A few kilobytes, and short times: files are given up and rewritten all the
    /// while.
    Small,
}
