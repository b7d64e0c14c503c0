//! Who or which rule changed what, from what to what, why, on what evidence:
//! an entry of the audit as a report tells it.

use serde_json::Value;

use super::figures;
use super::material::Entry;
use crate::cli::pace;

/// What a change does to the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Less is sent.
    Slower,
    /// More is sent.
    Faster,
    /// Neither, or nobody can tell.
    Other,
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: i64,
    /// By whom, or which rule.
    pub who: String,
    /// The audit's word for what was done.
    pub action: String,
    /// The same, in a few words.
    pub what: String,
    /// To what, as people know it.
    pub target: String,
    /// The rate before, where it is about one.
    pub from: Option<f64>,
    /// The rate after.
    pub to: Option<f64>,
    /// The reason given.
    pub why: String,
    /// What it rests on.
    pub evidence: String,
    /// What it does to the flow.
    pub effect: Effect,
    /// The state that an incident has from now on.
    pub incident: Option<String>,
    about: Vec<String>,
}

impl Change {
    /// What an entry of the audit says.
    pub fn of(entry: &Entry) -> Self {
        let detail = &entry.detail;
        let (from, to) = rates(&entry.action, detail);
        let effect = match (entry.action.as_str(), from, to) {
            ("limit.stopped" | "pause.add" | "account.broken", ..) => Effect::Slower,
            ("limit.resumed" | "pause.over" | "pause.remove" | "account.restored", ..) => {
                Effect::Faster
            }
            (_, Some(from), Some(to)) if to < from => Effect::Slower,
            (_, Some(from), Some(to)) if to > from => Effect::Faster,
            ("policy.set", None, Some(_)) if mitigation(detail).is_some() => Effect::Slower,
            _ => Effect::Other,
        };
        Self {
            at: entry.at,
            who: entry.actor.clone(),
            action: entry.action.clone(),
            what: what(entry, effect),
            target: target(entry),
            from,
            to,
            why: why(&entry.action, detail),
            evidence: evidence(detail),
            effect,
            incident: incident(entry),
            about: about(entry),
        }
    }

    /// Whether it is about this destination.
    pub fn concerns(&self, destination: &str) -> bool {
        let (kind, _) = destination.split_once(':').unwrap_or_default();
        let mut about = self.about.iter();
        about.any(|part| part == destination || part.strip_suffix(":*") == Some(kind))
    }

    /// Whether it may matter to a reader at all: who reads or makes tokens
    /// changes nothing about the flow, nor do lists of recipients; of a review
    /// of dead letters it is enough that it was begun.
    pub fn matters(&self) -> bool {
        let (kind, _) = self.action.split_once('.').unwrap_or_default();
        !matches!(kind, "token" | "message" | "suppressions") && self.action != "review.progress"
    }

    /// `40/s -> 20/s: too much was refused (12 of 40 refused)`, as far as it is
    /// known.
    pub fn words(&self) -> String {
        let (from, to) = (Self::rate_text(self.from), Self::rate_text(self.to));
        let mut words = match (from.is_empty(), to.is_empty()) {
            (true, true) => String::new(),
            (true, false) => to,
            (false, true) => format!("{from} -> none"),
            (false, false) => format!("{from} -> {to}"),
        };
        if !self.why.is_empty() {
            words.push_str(if words.is_empty() { "" } else { ": " });
            words.push_str(self.why.trim_start());
        }
        if !self.evidence.is_empty() {
            words.push_str(&format!(" ({})", self.evidence));
        }
        words.trim_start().to_owned()
    }

    /// `40/s`, `stopped`, or nothing.
    pub fn rate_text(rate: Option<f64>) -> String {
        match rate {
            Some(0.0) => "stopped".to_owned(),
            Some(rate) => figures::rate(rate),
            None => String::new(),
        }
    }
}

fn what(entry: &Entry, effect: Effect) -> String {
    let Entry { action, detail, .. } = entry;
    let words = match (action.as_str(), effect) {
        ("limit.cut", _) => "cut the rate",
        ("limit.raised", _) => "raised the rate",
        ("limit.stopped", _) => "stopped the flow",
        ("limit.resumed", _) => "let it flow again",
        ("limit.learnt", _) => "learnt the limit",
        ("limit.pin", _) => "held the rate",
        ("limit.unpin", _) => "let the rate go",
        ("limit.reset", _) => "forgot what was learnt",
        ("connections.capped", _) => "holds fewer connections",
        ("sending.refused", _) => "is refused: somebody must mend it",
        ("account.broken", _) => "took an account out",
        ("account.restored", _) => "put an account back",
        ("policy.set", Effect::Slower) if mitigation(detail).is_some() => "mitigated",
        ("policy.set", Effect::Other) if mitigation(detail).is_some() => "went on mitigating",
        ("policy.set", Effect::Slower) => "lowered the policy",
        ("policy.set", Effect::Faster) => "raised the policy",
        ("policy.ramp", _) => "ramped back",
        ("policy.cooldown_over", _) => "ended the mitigation",
        ("policy.remove", _) => "removed the policy",
        ("pause.add", _) => "paused",
        ("pause.remove", _) => "lifted the pause",
        ("pause.over", _) => "the pause ran out",
        _ => "",
    };
    let of_incident = match action.as_str() {
        "incident.open" => "opened",
        "incident.mitigate" => "mitigated",
        "incident.recover" => "let recover",
        "incident.canary" => "sent canaries for",
        "incident.close" => "closed",
        _ => "",
    };
    match (words, of_incident) {
        ("", "") => action.clone(),
        ("", verb) => format!("{verb} incident {}", entry.target),
        (words, _) => words.to_owned(),
    }
}

/// To what it was done. Pauses and incidents have numbers, which tell a reader
/// less than what they are about.
fn target(entry: &Entry) -> String {
    let text = |place: &str| entry.detail.get(place).and_then(Value::as_str);
    let (kind, _) = entry.action.split_once('.').unwrap_or_default();
    let about = match kind {
        "incident" => text("destination").map(str::to_owned),
        "pause" => text("about").map(str::to_owned),
        "account" => {
            let place = text("destination");
            place.map(|place| format!("account:{}/{place}", entry.target))
        }
        _ => None,
    };
    about.unwrap_or_else(|| entry.target.clone())
}

/// The state that an incident has from now on.
fn incident(entry: &Entry) -> Option<String> {
    entry.action.strip_prefix("incident.")?;
    let state = entry.detail.get("state").and_then(Value::as_str);
    state.map(str::to_owned)
}

/// Rates before and after.
fn rates(action: &str, detail: &Value) -> (Option<f64>, Option<f64>) {
    let pair = match action.starts_with("policy.") {
        true => (
            detail.pointer("/before/rate"),
            detail.pointer("/after/rate"),
        ),
        false => (detail.get("from"), detail.get("to")),
    };
    let stopped = |word: &str| (action == word).then_some(0.0);
    (
        stopped("limit.resumed").or_else(|| pair.0.and_then(rate)),
        stopped("limit.stopped").or_else(|| pair.1.and_then(rate)),
    )
}

/// A rate as a number or as people write it.
fn rate(value: &Value) -> Option<f64> {
    let text = || {
        let text = value.as_str()?;
        pace::read(text.split(' ').next()?).ok()
    };
    value.as_f64().or_else(text)
}

fn mitigation(detail: &Value) -> Option<&str> {
    let reason = detail.pointer("/after/mitigation_reason");
    reason.and_then(Value::as_str)
}

fn why(action: &str, detail: &Value) -> String {
    let places: &[&str] = match action {
        // What is taken back is known by why it was there.
        "policy.cooldown_over" | "policy.remove" => &["/before/mitigation_reason"],
        _ => &[
            "/reason",
            "/why",
            "/after/mitigation_reason",
            "/after/reason",
            "/summary",
            "/after/comment",
        ],
    };
    let mut texts = places.iter().filter_map(|at| detail.pointer(at)?.as_str());
    let mut why = texts.next().unwrap_or_default().to_owned();
    let until = match action {
        // It is over, and what it said of its end as well.
        "policy.ramp" | "pause.remove" | "pause.over" => None,
        _ => detail
            .pointer("/after/cooldown_until")
            .or(detail.get("until")),
    };
    if let Some(until) = until.and_then(Value::as_str) {
        why.push_str(&format!(" (until {until})"));
    }
    why
}

/// `12 of 40 refused, last with 421`, or what else is there.
fn evidence(detail: &Value) -> String {
    let Some(evidence) = detail.get("evidence") else {
        let said = detail.get("said").and_then(Value::as_str);
        return said.unwrap_or_default().to_owned();
    };
    let number = |name: &str| evidence.get(name).and_then(Value::as_u64);
    let code = number("code").filter(|code| *code > 0);
    let code = code.map_or(String::new(), |code| format!(", last with {code}"));
    match (number("refused"), number("of"), evidence) {
        (_, Some(0), _) => String::new(),
        (Some(refused), Some(of), _) => format!("{refused} of {of} refused{code}"),
        (_, _, Value::String(text)) => text.clone(),
        (_, _, Value::Null) => String::new(),
        (_, _, other) => other.to_string(),
    }
}

/// The destinations that an entry names: in its target, in the match that it is
/// about (`isp:google/class:low`), or by themselves.
fn about(entry: &Entry) -> Vec<String> {
    let target = entry.target.split('#').next().unwrap_or_default();
    let text = |place: &str| entry.detail.get(place).and_then(Value::as_str);
    let named = [Some(target), text("about"), text("destination")];
    let parts = named.iter().flatten().flat_map(|it| it.split('/'));
    let mut about: Vec<String> = parts.map(str::to_owned).collect();
    for place in ["/match", "/after/match", "/before/match"] {
        let matches = entry.detail.pointer(place).and_then(Value::as_object);
        let pairs = matches.into_iter().flatten();
        about.extend(pairs.filter_map(|(scope, name)| match scope.as_str() {
            "destination" => Some(name.as_str()?.to_owned()),
            scope => Some(format!("{scope}:{}", name.as_str()?)),
        }));
    }
    about
}
