//! What was learnt, on its way to the audit: at most one line for a destination
//! and minute, since bounces may come by the thousand and the audit is kept.

use std::collections::{BTreeMap, BTreeSet};

use outflow_core::time::{Mono, Nanos};

/// A destination has a line so often.
const EVERY: Nanos = Nanos::from_secs(60);
/// Destinations that are told apart.
const DESTINATIONS_MAX: usize = 1_024;

/// What was learnt of one destination.
#[derive(Clone, Debug, Default)]
struct Sum {
    entries: u64,
    held: u64,
    sources: BTreeSet<String>,
}

/// A line of audit.
pub(crate) struct Line {
    /// The destination that it is about.
    about: String,
    /// What it is about, in words.
    pub target: String,
    pub detail: String,
}

/// What waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    waiting: BTreeMap<String, Sum>,
    /// When a destination may have its next line.
    next: BTreeMap<String, Mono>,
}

impl Notes {
    /// One more entry is on the list.
    pub fn add(&mut self, destination: &str, source: &str, is_held: bool) {
        let is_full = self.waiting.len() >= DESTINATIONS_MAX;
        let about = match is_full && !self.waiting.contains_key(destination) {
            true => "",
            false => destination,
        };
        let sum = self.waiting.entry(about.to_owned()).or_default();
        sum.entries += 1;
        sum.held += u64::from(is_held);
        if !sum.sources.contains(source) {
            sum.sources.insert(source.to_owned());
        }
    }

    /// The lines that may be written now. They wait until they are
    /// [written](Self::written).
    pub fn due(&self, mono: Mono) -> Vec<Line> {
        let is_due = |about: &str| self.next.get(about).is_none_or(|next| *next <= mono);
        let due = self.waiting.iter().filter(|(about, _)| is_due(about));
        due.map(|(about, sum)| line(about, sum)).collect()
    }

    /// All lines that wait.
    pub fn all(&self) -> Vec<Line> {
        self.due(Mono::NEVER)
    }

    /// A line is in the audit.
    pub fn written(&mut self, mono: Mono, line: Line) {
        self.next.retain(|_, next| *next > mono);
        self.waiting.remove(&line.about);
        self.next.insert(line.about, mono + EVERY);
    }
}

fn line(about: &str, sum: &Sum) -> Line {
    let sources: Vec<&str> = sum.sources.iter().map(String::as_str).collect();
    let sources = sources.join(",");
    let detail = format!(
        "{{\"entries\":{},\"held\":{},\"sources\":\"{sources}\"}}",
        sum.entries, sum.held
    );
    let target = match about.is_empty() {
        true => sources,
        false => about.to_owned(),
    };
    Line {
        about: about.to_owned(),
        target,
        detail,
    }
}
