//! What can be wrong with rules.

/// A rule, or the file itself, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule {id:?}: {problem}")]
pub struct RuleError {
    /// Which rule; empty if it is the file.
    pub id: String,
    /// What is wrong with it.
    pub problem: RuleProblem,
}

impl RuleError {
    pub(crate) fn new(id: &str, problem: RuleProblem) -> Self {
        Self {
            id: id.to_owned(),
            problem,
        }
    }
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
    /// More than can be held.
    #[error("{field}: more than {most}")]
    TooMuch {
        /// What there is too much of.
        field: &'static str,
        /// How much there may be.
        most: usize,
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
