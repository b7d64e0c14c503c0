//! One rule, and what it looks at.

use crate::classify::pattern::{EnhancedPattern, Phrase, Span, Stages};
use crate::classify::text::Words;
use crate::destination::Destination;
use crate::name::Name;
use crate::outcome::Outcome;
use crate::reply::{Enhanced, Reply, Stage};

/// What rules see of a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    /// Who said it, where that is known.
    to: Option<&'a Destination>,
    /// None if the network failed and nobody said anything.
    code: Option<u16>,
    enhanced: Option<Enhanced>,
    stage: Stage,
    words: &'a Words,
    attempts: u16,
}

impl<'a> Case<'a> {
    pub(crate) fn of(
        to: Option<&'a Destination>,
        reply: &Reply,
        words: &'a Words,
        attempts: u16,
    ) -> Self {
        let (code, stage) = match reply {
            Reply::Said { stage, code, .. } => (Some(*code), *stage),
            Reply::Network { stage, .. } => (None, *stage),
            Reply::Uncertain | Reply::Damaged { .. } => (None, Stage::Data),
        };
        Self {
            to,
            code,
            enhanced: words.enhanced.and_then(|found| agreed(code?, found)),
            stage,
            words,
            attempts,
        }
    }
}

/// The enhanced code with the milder of the two classes: what only one of the
/// two codes calls final is not final, since a wrong bounce cannot be undone.
fn agreed(code: u16, Enhanced(class, subject, detail): Enhanced) -> Option<Enhanced> {
    match (code, class) {
        (400..=499, 4..=5) => Some(Enhanced(4, subject, detail)),
        (500..=599, 4..=5) => Some(Enhanced(class, subject, detail)),
        _ => None,
    }
}

/// One rule: what it looks for, and what that means.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// Said by any of these; by anybody if empty.
    pub(crate) destinations: Vec<Destination>,
    /// Whether it is about a failed network rather than about words said.
    pub(crate) network: bool,
    /// Any of these codes; any at all if empty.
    pub(crate) codes: Vec<Span>,
    /// Any of these enhanced codes; with or without one if empty.
    pub(crate) enhanced: Vec<EnhancedPattern>,
    /// At any of these stages.
    pub(crate) stages: Stages,
    /// With any of these phrases; any text if empty.
    pub(crate) text: Vec<Phrase>,
    /// Only if the message was never tried before.
    pub(crate) first_attempt_only: bool,
    /// What it means.
    pub(crate) outcome: Outcome,
}

impl Rule {
    pub(crate) fn id(&self) -> &Name {
        &self.outcome.rule
    }

    /// This rule as one of the user's own.
    pub(crate) fn owned(mut self) -> Self {
        self.outcome.is_own = true;
        self
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Whether this rule speaks to this case. Cheap tests come first: most
    /// rules never look at the text.
    pub(crate) fn matches(&self, case: &Case<'_>) -> bool {
        self.network == case.code.is_none()
            && any_or_none(&self.codes, |span| {
                case.code.is_some_and(|code| span.holds(code))
            })
            && self.stages.holds(case.stage)
            && (!self.first_attempt_only || case.attempts <= 1)
            && any_or_none(&self.destinations, |wanted| case.to == Some(wanted))
            && any_or_none(&self.enhanced, |pattern| {
                case.enhanced.is_some_and(|code| pattern.holds(code))
            })
            && any_or_none(&self.text, |phrase| {
                phrase.holds(&case.words.text, &case.words.pairs)
            })
    }
}

fn any_or_none<T>(wanted: &[T], holds: impl Fn(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(holds)
}
