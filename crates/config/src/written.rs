//! A value that people write as text or as a number: `"40/s"` or `40`.

use serde::{Deserialize, Serialize};

/// Text or a number, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Written {
    /// A number.
    Number(serde_json::Number),
    /// Text.
    Text(String),
}

impl Written {
    /// What was written, as text.
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl From<&str> for Written {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Written {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u32> for Written {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}
