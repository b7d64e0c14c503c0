//! Rules as they are written, and the checks they must pass.
//!
//! Every mistake is an error that names its rule: a field nobody knows, a
//! pattern that cannot match, a rule without a sample, a sample that another
//! rule wins.

use serde::Deserialize;

use crate::classify::pattern::{EnhancedPattern, Phrase, Span, Stages, stage_named};
use crate::classify::rule::{Case, Rule};
use crate::classify::text;
use crate::name::Name;
use crate::outcome::{Outcome, ReplyClass, ReplyScope, Verdict};
use crate::reply::{Reply, Stage};
use crate::time::Nanos;

/// A rule, or the file itself, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule {id:?}: {problem}")]
pub struct RuleError {
    /// Which rule.
    pub id: String,
    /// What is wrong with it.
    pub problem: RuleProblem,
}

/// What can be wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    /// It is not what a rule looks like.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Its name is missing or taken.
    #[error("needs a name of its own")]
    Unnamed,
    /// A pattern that is malformed or can never match.
    #[error("{field} {value:?} can never match")]
    BadPattern {
        /// Where it stands.
        field: &'static str,
        /// What stands there.
        value: String,
    },
    /// A meaning that contradicts itself.
    #[error("{0}")]
    Contradiction(&'static str),
    /// Nothing shows that it matches anything.
    #[error("has no samples")]
    NoSamples,
    /// It does not match its own sample.
    #[error("does not match its sample {0:?}")]
    Missed(String),
    /// A rule before it matches its sample.
    #[error("its sample {sample:?} is won by rule {by:?}")]
    Shadowed {
        /// Which sample.
        sample: String,
        /// Which rule.
        by: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    rule: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: String,
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
    #[serde(default)]
    suppress: bool,
    retry: Option<String>,
    #[serde(default)]
    samples: Vec<String>,
}

/// Reads a file of rules and runs every sample in it.
pub(crate) fn parse(toml: &str) -> Result<Vec<Rule>, RuleError> {
    let unreadable = |id: &str, error: toml::de::Error| RuleError {
        id: id.to_owned(),
        problem: RuleProblem::Unreadable(error.message().to_owned()),
    };
    let file: RawFile = toml::from_str(toml).map_err(|error| unreadable("", error))?;
    let mut rules: Vec<Rule> = Vec::with_capacity(file.rule.len());
    let mut samples = Vec::with_capacity(file.rule.len());
    for table in file.rule {
        let id = table.get("id").and_then(toml::Value::as_str);
        let id = id.unwrap_or_default().to_owned();
        let raw: RawRule = table.try_into().map_err(|error| unreadable(&id, error))?;
        let is_taken = rules.iter().any(|rule| rule.id().as_str() == id);
        let rule = if is_taken || id.is_empty() {
            Err(RuleProblem::Unnamed)
        } else {
            raw.checked()
        };
        rules.push(rule.map_err(|problem| RuleError { id, problem })?);
        samples.push(raw.samples);
    }
    for (place, samples) in samples.iter().enumerate() {
        run_samples(&rules, place, samples)?;
    }
    Ok(rules)
}

impl RawRule {
    fn checked(&self) -> Result<Rule, RuleProblem> {
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
        Ok(Rule {
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
        let is_final = matches!(self.verdict, Verdict::Delivered | Verdict::Bounced);
        let contradiction = if self.suppress
            && (self.verdict, self.scope) != (Verdict::Bounced, ReplyScope::Recipient)
        {
            Some("only a recipient that bounced is suppressed")
        } else if is_final && self.retry.is_some() {
            Some("what is final is not retried")
        } else if (self.verdict == Verdict::Delivered) != (self.class == ReplyClass::Accepted) {
            Some("delivered and accepted go together")
        } else {
            None
        };
        if let Some(contradiction) = contradiction {
            return Err(RuleProblem::Contradiction(contradiction));
        }
        let retry = patterns("retry", self.retry.as_slice(), wait_written)?;
        Ok(Outcome {
            retry_after: retry.first().copied(),
            suppress: self.suppress,
            ..Outcome::new(
                self.verdict,
                self.class,
                self.scope,
                Name::from(self.id.as_str()),
            )
        })
    }
}

fn patterns<T>(
    field: &'static str,
    written: &[String],
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, RuleProblem> {
    let bad = |value: &String| RuleProblem::BadPattern {
        field,
        value: value.clone(),
    };
    written
        .iter()
        .map(|value| read(value).ok_or_else(|| bad(value)))
        .collect()
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
    (count > 0).then(|| Nanos::from_secs(u64::from(count) * unit))
}

fn run_samples(rules: &[Rule], place: usize, samples: &[String]) -> Result<(), RuleError> {
    let Some(rule) = rules.get(place) else {
        return Ok(());
    };
    let error = |problem| RuleError {
        id: rule.id().as_str().to_owned(),
        problem,
    };
    // A rule that also speaks at later attempts must win at the second one,
    // where rules for the first have fallen silent.
    let attempts = if rule.first_attempt_only { 1 } else { 2 };
    for sample in samples {
        let reply = sample_reply(sample, rule.network).ok_or_else(|| {
            error(RuleProblem::BadPattern {
                field: "sample",
                value: sample.clone(),
            })
        })?;
        let words = text::words(&reply);
        let case = Case::of(&reply, &words, attempts);
        if !rule.matches(&case) {
            return Err(error(RuleProblem::Missed(sample.clone())));
        }
        let winner = rules.iter().position(|rule| rule.matches(&case));
        if let Some(by) = winner.filter(|winner| *winner != place) {
            return Err(error(RuleProblem::Shadowed {
                sample: sample.clone(),
                by: rules
                    .get(by)
                    .map_or("", |rule| rule.id().as_str())
                    .to_owned(),
            }));
        }
    }
    Ok(())
}

/// Reads `recipient: 450 4.2.0 Greylisted`; without a stage it is the data's.
fn sample_reply(sample: &str, network: bool) -> Option<Reply> {
    let named = sample
        .split_once(": ")
        .and_then(|(word, rest)| stage_named(word).map(|stage| (stage, rest)));
    let (stage, said) = named.unwrap_or((Stage::Data, sample));
    if network {
        return Some(Reply::Network {
            stage,
            text: said.to_owned().into(),
        });
    }
    let (code, text) = said.split_at_checked(3)?;
    let text = text.strip_prefix([' ', '-']).unwrap_or(text);
    Some(Reply::said(stage, code.parse().ok()?, text))
}
