//! Samples: what shows that a rule matches what it should.

use crate::classify::error::{RuleError, RuleProblem};
use crate::classify::pattern::stage_named;
use crate::classify::rule::{Case, Rule};
use crate::classify::text;
use crate::destination::Destination;
use crate::reply::{Reply, Stage};

/// Runs the samples of the rule at `place`: it must win each of them at each of
/// its destinations, over all the rules before it.
pub(crate) fn run(rules: &[&Rule], place: usize, samples: &[String]) -> Result<(), RuleError> {
    let Some(rule) = rules.get(place) else {
        return Ok(());
    };
    let error = |problem| RuleError::new(rule.id().as_str(), problem);
    for sample in samples {
        let reply = read(sample, rule.network).ok_or_else(|| {
            error(RuleProblem::BadPattern {
                field: "sample",
                value: sample.clone(),
            })
        })?;
        let anywhere = rule.destinations.is_empty().then_some(None);
        for to in rule.destinations.iter().map(Some).chain(anywhere) {
            win(rules, place, rule, to, &reply, sample).map_err(error)?;
        }
    }
    Ok(())
}

fn win(
    rules: &[&Rule],
    place: usize,
    rule: &Rule,
    to: Option<&Destination>,
    reply: &Reply,
    sample: &str,
) -> Result<(), RuleProblem> {
    // A rule that also speaks at later attempts must win at the second one,
    // where rules for the first have fallen silent.
    let attempts = if rule.first_attempt_only { 1 } else { 2 };
    let words = text::words(reply);
    let case = Case::of(to, reply, &words, attempts);
    if !rule.matches(&case) {
        return Err(RuleProblem::Missed(sample.to_owned()));
    }
    let winner = rules.iter().position(|rule| rule.matches(&case));
    match winner.filter(|winner| *winner != place) {
        None => Ok(()),
        Some(by) => Err(RuleProblem::Shadowed {
            sample: sample.to_owned(),
            by: rules
                .get(by)
                .map_or("", |rule| rule.id().as_str())
                .to_owned(),
        }),
    }
}

/// Reads `recipient: 450 4.2.0 Greylisted`; without a stage it is the data's.
fn read(sample: &str, network: bool) -> Option<Reply> {
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
