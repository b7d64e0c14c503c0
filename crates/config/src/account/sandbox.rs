//! How a sandbox behaves: how long its answers take, what it refuses, and the
//! rate that it holds us to without saying so.

use outflow_core::limit::spec::LimitSpec;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;
use serde::{Deserialize, Serialize};

use crate::figure;
use crate::form;
use crate::problem::Problems;
use crate::written::Written;

/// Messages a sandbox keeps, if nobody says.
pub const KEEP: u32 = 1_000;

/// The failures that have a name, and the answer that each stands for.
const KINDS: [(&str, Stage, u16, &str); 9] = [
    (
        "rate",
        Stage::Data,
        421,
        "4.7.28 Too many messages, slow down",
    ),
    (
        "greylist",
        Stage::Recipient,
        451,
        "4.7.1 Greylisted, try again later",
    ),
    (
        "capacity",
        Stage::Data,
        451,
        "4.3.2 System busy, try again later",
    ),
    ("mailbox", Stage::Recipient, 550, "5.1.1 No such user here"),
    ("full", Stage::Recipient, 452, "4.2.2 Mailbox full"),
    ("content", Stage::Data, 554, "5.7.1 Message looks like spam"),
    (
        "block",
        Stage::Greeting,
        554,
        "5.7.1 Blocked for poor reputation",
    ),
    ("auth", Stage::Auth, 535, "5.7.8 Authentication failed"),
    ("oversize", Stage::Data, 552, "5.3.4 Message too big"),
];

/// The names of all kinds of failure.
pub const FAILURE_KINDS: &[&str] = &[
    "rate",
    "greylist",
    "capacity",
    "mailbox",
    "full",
    "content",
    "block",
    "auth",
    "oversize",
    "network",
    "uncertain",
];

/// A sandbox as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawSandbox {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<RawLatency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<Vec<RawFailure>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_rate: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
}

/// How long answers take, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RawLatency {
    /// Always the same.
    Constant(String),
    /// Mostly near a median, with a long tail.
    Spread {
        /// The median.
        #[serde(skip_serializing_if = "Option::is_none")]
        p50: Option<String>,
        /// What one in a hundred exceeds.
        #[serde(skip_serializing_if = "Option::is_none")]
        p99: Option<String>,
    },
}

/// A share of messages that fail, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the table of keys speaks of each field")]
pub struct RawFailure {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// How a sandbox behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// How long answers take.
    pub latency: Latency,
    /// What fails; the shares make at most a whole.
    pub failures: Vec<Failure>,
    /// The rate that it does not tell.
    pub hidden_rate: Option<HiddenRate>,
    /// What all of its answers say of limits: names and values of headers.
    pub headers: Vec<(String, String)>,
    /// How many of the last messages it keeps.
    pub keep: u32,
}

/// Takes everything, at once.
impl Default for Sandbox {
    fn default() -> Self {
        Self {
            latency: Latency::Constant(Nanos::ZERO),
            failures: Vec::new(),
            hidden_rate: None,
            headers: Vec::new(),
            keep: KEEP,
        }
    }
}

/// How long answers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Always the same.
    Constant(Nanos),
    /// Mostly near a median, with a long tail.
    Spread {
        /// The median.
        p50: Nanos,
        /// What one in a hundred exceeds.
        p99: Nanos,
    },
}

/// A share of messages that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In millionths.
    pub share_ppm: u32,
    /// What they are answered.
    pub reply: Reply,
}

/// A rate that shows only when it is exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenRate {
    /// How much is let through.
    pub limit: LimitSpec,
    /// What the rest is answered, with the time to wait where one is told.
    pub over: Reply,
}

impl Sandbox {
    pub(super) fn of(raw: Option<&RawSandbox>, problems: &mut Problems) -> Self {
        let usual = Self::default();
        let Some(raw) = raw else { return usual };
        Self {
            latency: latency(raw, problems).unwrap_or(usual.latency),
            failures: failures(raw, problems),
            hidden_rate: hidden_rate(raw, problems),
            headers: headers(raw, problems),
            keep: raw.keep.unwrap_or(usual.keep),
        }
    }
}

fn latency(raw: &RawSandbox, problems: &mut Problems) -> Option<Latency> {
    let (p50, p99) = match raw.latency.as_ref()? {
        RawLatency::Constant(text) => return figure::span(text).map(Latency::Constant),
        RawLatency::Spread { p50, p99 } => (p50, p99),
    };
    let read = |text: &Option<String>| text.as_deref().and_then(figure::span);
    match read(p50).zip(read(p99)) {
        Some((p50, p99)) if p50 <= p99 => Some(Latency::Spread { p50, p99 }),
        Some(_) => {
            problems.add("/sandbox/latency/p99", "must not be shorter than p50");
            None
        }
        None => {
            problems.add("/sandbox/latency", "write both p50 and p99");
            None
        }
    }
}

fn failures(raw: &RawSandbox, problems: &mut Problems) -> Vec<Failure> {
    let mut sum = 0;
    let mut failures = Vec::new();
    for (i, failure) in raw.failures.iter().flatten().enumerate() {
        let pointer = format!("/sandbox/failures/{i}");
        let Some(share_ppm) = failure.share.as_ref().and_then(share) else {
            problems.add(format!("{pointer}/share"), "write the share that fails");
            continue;
        };
        sum += u64::from(share_ppm);
        let reply = match (&failure.reply, &failure.kind) {
            (Some(reply), None) => form::reply(&reply.text()),
            (None, Some(kind)) => reply_of(kind),
            _ => None,
        };
        match reply {
            Some(reply) => failures.push(Failure { share_ppm, reply }),
            None => problems.add(pointer, "write either reply or kind"),
        }
    }
    if sum > u64::from(figure::WHOLE_PPM) {
        problems.add("/sandbox/failures", "the shares make more than 100%");
    }
    failures
}

fn headers(raw: &RawSandbox, problems: &mut Problems) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (i, line) in raw.headers.iter().flatten().enumerate() {
        match line.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            _ => problems.add(
                format!("/sandbox/headers/{i}"),
                "write a name and a value, as in \"RateLimit-Policy: 5;w=1\"",
            ),
        }
    }
    headers
}

fn share(written: &Written) -> Option<u32> {
    match written {
        Written::Number(number) => number.as_f64().and_then(figure::share_of_number),
        Written::Text(text) => figure::share(text),
    }
}

fn reply_of(kind: &str) -> Option<Reply> {
    match kind {
        "uncertain" => Some(Reply::Uncertain),
        "network" => Some(Reply::Network {
            stage: Stage::Data,
            text: "connection reset".into(),
        }),
        _ => KINDS
            .iter()
            .find(|(name, ..)| *name == kind)
            .map(|(_, stage, code, text)| Reply::said(*stage, *code, text)),
    }
}

fn hidden_rate(raw: &RawSandbox, problems: &mut Problems) -> Option<HiddenRate> {
    let Some(limit) = &raw.hidden_rate else {
        for (field, is_set) in [
            ("over", raw.over.is_some()),
            ("retry_after", raw.retry_after.is_some()),
        ] {
            if is_set {
                problems.add(
                    format!("/sandbox/{field}"),
                    "says how a hidden rate answers: write hidden_rate beside it",
                );
            }
        }
        return None;
    };
    let limit = LimitSpec::parse(&limit.text()).ok()?;
    let over = raw.over.as_ref().and_then(|over| form::reply(&over.text()));
    let mut over =
        over.unwrap_or_else(|| Reply::said(Stage::Data, 421, "4.7.0 Too fast, slow down"));
    if over.is_accepted() {
        problems.add(
            "/sandbox/over",
            "an answer to what is too fast cannot be an acceptance",
        );
    }
    if let Reply::Said { retry_after, .. } = &mut over {
        *retry_after = raw.retry_after.as_deref().and_then(figure::span);
    }
    Some(HiddenRate { limit, over })
}
