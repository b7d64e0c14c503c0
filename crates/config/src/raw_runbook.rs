//! The incident runbook and canaries, as they are written.

use serde::{Deserialize, Serialize};

use crate::written::Written;

/// `[runbook]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawRunbook {
    pub enabled: bool,
    pub act: bool,
    pub look_every: String,
    pub cut: Written,
    pub cooldown: String,
    pub calm: String,
    pub ramp_step: Written,
    pub ramp_every: String,
    #[serde(default)]
    pub paused_classes: Vec<String>,
    pub detour_pool: Option<String>,
    pub detour_share: Written,
    pub canary_within: String,
    pub complaints: RawWatch,
    pub too_fast: RawWatch,
    pub deferrals: RawWatch,
    pub hard_bounces: RawWatch,
    pub fewer_opens: RawOpens,
}

/// `[runbook.complaints]` and its like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawWatch {
    pub share: Written,
    pub calm: Written,
    pub window: String,
    pub least: u64,
}

/// `[runbook.fewer_opens]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawOpens {
    pub part: Written,
    pub least: u64,
}

/// `[[canary]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawCanary {
    pub destination: String,
    pub to: Vec<String>,
    pub from: String,
    pub pool: Option<String>,
}
