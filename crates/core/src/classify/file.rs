//! Rules as they are written, and the checks they must pass.
//!
//! Every mistake is an error that names its rule: a field nobody knows, a
//! pattern that cannot match, a meaning that contradicts itself.

use serde::Deserialize;

use crate::classify::error::{RuleError, RuleProblem};
use crate::classify::pattern::{EnhancedPattern, Phrase, Span, Stages, stage_named};
use crate::classify::rule::Rule;
use crate::classify::sample;
use crate::destination::{Destination, DestinationKind};
use crate::name::Name;
use crate::outcome::{Outcome, Reaction, ReplyClass, ReplyScope, Verdict};
use crate::policy::aliases;
use crate::policy::scope::Scope;
use crate::time::Nanos;

/// The one form of files so far.
const VERSION: u32 = 1;
/// No file is larger: rules are looked at for every refusal.
const FILE_BYTES_MAX: usize = 1 << 20;
/// No file has more rules.
const RULES_MAX: usize = 2_000;
/// No list in a rule is longer.
const LIST_MAX: usize = 200;
/// Nothing lasts longer than this without a person looking.
const WAIT_MAX: Nanos = Nanos::from_secs(7 * 86_400);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    version: Option<u32>,
    #[serde(default)]
    destination: Vec<String>,
    #[serde(default)]
    rule: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: String,
    #[serde(default)]
    destination: Vec<String>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    code: Vec<String>,
    #[serde(default)]
    enhanced: Vec<String>,
    #[serde(default)]
    stage: Vec<String>,
    #[serde(default)]
    text: Vec<String>,
    #[serde(default)]
    first_attempt_only: bool,
    verdict: Verdict,
    class: ReplyClass,
    scope: ReplyScope,
    action: Option<Reaction>,
    lasts: Option<String>,
    alert: Option<bool>,
    retry: Option<String>,
    #[serde(default)]
    samples: Vec<String>,
}

/// Reads a file of rules. Samples are not run yet.
pub(crate) fn parse(toml: &str) -> Result<Vec<(Rule, Vec<String>)>, RuleError> {
    let of_file = |problem| RuleError::new("", problem);
    if toml.len() > FILE_BYTES_MAX {
        return Err(of_file(RuleProblem::TooMuch {
            field: "the file",
            most: FILE_BYTES_MAX,
        }));
    }
    let file: RawFile = toml::from_str(toml).map_err(|error| of_file(unreadable(&error)))?;
    if file.version.is_some_and(|version| version != VERSION) {
        return Err(of_file(RuleProblem::Contradiction(
            "this program reads rules of version 1",
        )));
    }
    bounded("rule", file.rule.len(), RULES_MAX).map_err(of_file)?;
    let everywhere = patterns("destination", &file.destination, destination_written);
    let everywhere = everywhere.map_err(of_file)?;
    let mut rules: Vec<(Rule, Vec<String>)> = Vec::with_capacity(file.rule.len());
    for table in file.rule {
        let id = table.get("id").and_then(toml::Value::as_str);
        let id = id.unwrap_or_default().to_owned();
        let error = |problem| RuleError::new(&id, problem);
        let raw: RawRule = table
            .try_into()
            .map_err(|found| error(unreadable(&found)))?;
        let is_taken = rules.iter().any(|(rule, _)| rule.id().as_str() == id);
        if is_taken || id.is_empty() {
            return Err(error(RuleProblem::Unnamed));
        }
        let rule = raw.checked(&everywhere).map_err(error)?;
        rules.push((rule, raw.samples));
    }
    Ok(rules)
}

fn unreadable(error: &toml::de::Error) -> RuleProblem {
    RuleProblem::Unreadable(error.message().to_owned())
}

impl RawRule {
    fn checked(&self, everywhere: &[Destination]) -> Result<Rule, RuleProblem> {
        let mut stages = Stages::default();
        for stage in patterns("stage", &self.stage, stage_named)? {
            stages.add(stage);
        }
        if self.network && !(self.code.is_empty() && self.enhanced.is_empty()) {
            return Err(RuleProblem::Contradiction("a failed network says no codes"));
        }
        if self.samples.is_empty() {
            return Err(RuleProblem::NoSamples);
        }
        bounded("samples", self.samples.len(), LIST_MAX)?;
        let mut destinations = patterns("destination", &self.destination, destination_written)?;
        if destinations.is_empty() {
            destinations = everywhere.to_vec();
        } else if let Some(stranger) = destinations
            .iter()
            .find(|own| !everywhere.is_empty() && !everywhere.contains(own))
        {
            return Err(RuleProblem::BadPattern {
                field: "destination",
                value: stranger.to_string(),
            });
        }
        Ok(Rule {
            destinations,
            network: self.network,
            codes: patterns("code", &self.code, Span::parse)?,
            enhanced: patterns("enhanced", &self.enhanced, EnhancedPattern::parse)?,
            stages,
            text: patterns("text", &self.text, Phrase::parse)?,
            first_attempt_only: self.first_attempt_only,
            outcome: self.outcome()?,
        })
    }

    fn outcome(&self) -> Result<Outcome, RuleProblem> {
        let id = Name::from(self.id.as_str());
        let mut outcome = Outcome::new(self.verdict, self.class, self.scope, id);
        if let Some(action) = self.action {
            outcome.action = action;
            outcome.lasts = action.usual_length(self.verdict);
        }
        if let Some(contradiction) = self.contradiction(outcome.action) {
            return Err(RuleProblem::Contradiction(contradiction));
        }
        let wait = |field, written: &Option<String>| {
            patterns(field, written.as_slice(), wait_written).map(|waits| waits.first().copied())
        };
        outcome.lasts = wait("lasts", &self.lasts)?.or(outcome.lasts);
        outcome.retry_after = wait("retry", &self.retry)?;
        outcome.alert = self.alert.unwrap_or(outcome.alert);
        Ok(outcome)
    }

    /// What cannot be meant.
    fn contradiction(&self, action: Reaction) -> Option<&'static str> {
        let is_final = matches!(self.verdict, Verdict::Delivered | Verdict::Bounced);
        let is_his = self.scope == ReplyScope::Recipient && self.class == ReplyClass::Recipient;
        if action == Reaction::Suppress && !(self.verdict == Verdict::Bounced && is_his) {
            Some("only a recipient that bounced is suppressed")
        } else if self.verdict == Verdict::Bounced
            && matches!(
                self.class,
                ReplyClass::Rate | ReplyClass::Reputation | ReplyClass::Authentication
            )
        {
            Some("what is about us (rate, reputation, authentication) never bounces")
        } else if is_final && self.retry.is_some() {
            Some("what is final is not retried")
        } else if is_final != action.is_final() {
            Some("the action contradicts the verdict")
        } else if (self.verdict == Verdict::Delivered) != (self.class == ReplyClass::Accepted) {
            Some("delivered and accepted go together")
        } else if self.lasts.is_some() && action.usual_length(self.verdict).is_none() {
            Some("an action that is over at once does not last")
        } else {
            None
        }
    }
}

fn bounded(field: &'static str, count: usize, most: usize) -> Result<(), RuleProblem> {
    match count > most {
        true => Err(RuleProblem::TooMuch { field, most }),
        false => Ok(()),
    }
}

fn patterns<T>(
    field: &'static str,
    written: &[String],
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, RuleProblem> {
    bounded(field, written.len(), LIST_MAX)?;
    let bad = |value: &String| RuleProblem::BadPattern {
        field,
        value: value.clone(),
    };
    written
        .iter()
        .map(|value| read(value).ok_or_else(|| bad(value)))
        .collect()
}

/// Reads `google`, `gmail`, `isp:google`, `host:api.example.com`.
pub(crate) fn destination_written(text: &str) -> Option<Destination> {
    const KINDS: [(DestinationKind, Scope); 4] = [
        (DestinationKind::Isp, Scope::Isp),
        (DestinationKind::Carrier, Scope::Carrier),
        (DestinationKind::Push, Scope::Push),
        (DestinationKind::Host, Scope::Host),
    ];
    let (kind, name) = text.split_once(':').unwrap_or(("isp", text));
    let (kind, scope) = KINDS.into_iter().find(|(it, _)| it.as_str() == kind)?;
    let name = name.trim().to_ascii_lowercase();
    let name = aliases::resolve(scope, &name);
    (!name.is_empty()).then(|| Destination::new(kind, name))
}

/// Reads `30s`, `5m`, `4h`, `1d`.
fn wait_written(text: &str) -> Option<Nanos> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let count: u32 = text.get(..text.len() - 1)?.parse().ok()?;
    let wait = Nanos::from_secs(u64::from(count) * unit);
    (count > 0 && wait <= WAIT_MAX).then_some(wait)
}

/// Reads a file of rules and runs every sample in it, with the rules of
/// `earlier` before its own.
pub(crate) fn load(toml: &str, earlier: &[&Rule]) -> Result<Vec<Rule>, RuleError> {
    let written = parse(toml)?;
    let before: Vec<&Rule> = earlier
        .iter()
        .copied()
        .chain(written.iter().map(|(rule, _)| rule))
        .collect();
    for (place, (_, samples)) in written.iter().enumerate() {
        sample::run(&before, earlier.len() + place, samples)?;
    }
    Ok(written.into_iter().map(|(rule, _)| rule).collect())
}
