//! The whole file, as it is written and with the defaults filled in.
//!
//! A key with a default is always there when these are read, since they are
//! read from the layers merged over the defaults. Lengths of time, sizes and
//! shares are still text: they have been held against the table of keys.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::raw_runbook::RawRunbook;
use crate::written::Written;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawSettings {
    pub server: RawServer,
    pub store: RawStore,
    pub ledger: RawLedger,
    pub smtp: RawListener,
    pub throttle: RawThrottle,
    pub feedback: RawFeedback,
    pub dns: RawDns,
    pub destinations: RawDestinations,
    /// Kept as values: each is read by itself, with its own problems.
    #[serde(default)]
    pub account: Vec<Value>,
    #[serde(default)]
    pub policy: Vec<Value>,
    pub classes: RawClasses,
    pub pools: RawPools,
    pub breaker: RawBreaker,
    pub retry: RawRetry,
    pub classify: RawClassify,
    pub control: RawControl,
    pub runbook: RawRunbook,
    #[serde(default)]
    pub canary: Vec<Value>,
    #[serde(default)]
    pub warm_up: Vec<Value>,
    pub retention: RawRetention,
    pub log: RawLog,
    pub metrics: RawMetrics,
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawServer {
    pub listen: String,
    pub data_dir: String,
    pub secrets_dir: Option<String>,
    pub tls_cert: Option<String>,
    pub tls_key: Option<String>,
    pub insecure: bool,
    pub node: String,
    pub shutdown_timeout: String,
    pub request_timeout: String,
    pub request_size_max: String,
    pub message_size_max: String,
    pub held_size_max: String,
    pub requests_max: u32,
    pub flows_max: u32,
    pub tenant_flows_max: u32,
}

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawStore {
    pub url: Option<String>,
    pub segment_size: String,
    pub body_segment_size: String,
    pub reserve_size: String,
    pub receipts: String,
}

/// `[ledger]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawLedger {
    pub url: Option<String>,
    pub cluster: bool,
    pub prefix: String,
    pub timeout: String,
}

/// `[smtp]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawListener {
    pub listen: Option<String>,
    pub tls_cert: Option<String>,
    pub tls_key: Option<String>,
    pub insecure: bool,
}

/// `[throttle]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawThrottle {
    pub listen: Option<String>,
    pub tls_cert: Option<String>,
    pub tls_key: Option<String>,
    pub insecure: bool,
    pub connections_max: u32,
    pub grants_log: Option<String>,
}

/// `[feedback]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawFeedback {
    pub bounce_domain: Option<String>,
    pub suppressions_max: u64,
    pub surge_share: Written,
    pub surge_least: u64,
    pub surge_times: u32,
}

/// `[classes]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawClasses {
    pub critical: RawClass,
    pub high: RawClass,
    pub normal: RawClass,
    pub low: RawClass,
}

/// `[classes.critical]` and its like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawClass {
    pub headroom: Written,
}

/// `[pools]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawPools {
    pub under_pressure: String,
    pub adapt_concurrency: bool,
}

/// `[breaker]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawBreaker {
    pub enabled: bool,
    pub failures: u32,
    pub share: Written,
    pub open_for: String,
    pub open_max: String,
    pub refusals: Written,
    pub refusals_least: u32,
    pub stop_for: String,
}

/// `[retry]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawRetry {
    pub budget: Written,
    pub budget_floor: u32,
    pub on_uncertain: String,
    pub uncertain_attempts: u8,
    pub uncertain_after: String,
    pub email: RawSchedule,
    pub critical: RawSchedule,
    pub api: RawSchedule,
}

/// `[retry.email]` and its like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawSchedule {
    pub first: String,
    pub factor: f64,
    pub cap: String,
    pub give_up_after: String,
    pub attempts: Option<u16>,
    pub jitter: String,
}

/// `[dns]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawDns {
    pub lookups: String,
    #[serde(default)]
    pub servers: Vec<String>,
    pub lookups_max: usize,
    pub patience: String,
    pub cache_max: usize,
    pub addresses: String,
    pub mta_sts: bool,
    #[serde(default)]
    pub allowed_networks: Vec<String>,
}

/// `[destinations]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawDestinations {
    pub file: Option<String>,
    pub policies: bool,
}

/// `[classify]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawClassify {
    #[serde(default)]
    pub rules: Vec<String>,
}

/// `[control]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawControl {
    pub learn: bool,
}

/// `[retention]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawRetention {
    pub bodies: String,
    pub receipts: String,
    pub dead_letters: String,
    pub idempotency: String,
    pub history: String,
    pub history_rows: u64,
    pub audit: String,
    pub audit_rows: u64,
}

/// `[log]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawLog {
    pub format: String,
    pub level: String,
    pub recipients: bool,
    pub attempts: Option<String>,
    pub sandbox: Option<String>,
}

/// `[metrics]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawMetrics {
    pub destinations: usize,
    pub limits: usize,
    pub accounts: usize,
}
