//! What is wrong with settings: all of it at once, each with its place.
//!
//! A person who fixes one typing error should not meet the next one only after
//! another start. So nothing stops at the first problem: what cannot be used is
//! noted and left out, and the rest is looked at as if it had not been written.

use std::fmt;

use serde::Serialize;

/// How many problems are told at once.
const PROBLEMS_MAX: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where, as a JSON pointer: `/limits/2`. Empty for the whole.
    pub pointer: String,
    /// What, and what to write instead.
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.detail),
            pointer => write!(f, "{pointer}: {}", self.detail),
        }
    }
}

/// Settings that cannot be taken, with all that is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Invalid {
    /// What is wrong; never empty.
    pub errors: Vec<Problem>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.errors.iter().enumerate() {
            let sign = if i == 0 { "" } else { "\n" };
            write!(f, "{sign}{problem}")?;
        }
        Ok(())
    }
}

impl Invalid {
    /// One problem with the whole.
    pub fn whole(detail: impl Into<String>) -> Self {
        Self::at("", detail)
    }

    /// One problem at a place.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            errors: vec![Problem {
                pointer: pointer.into(),
                detail: detail.into(),
            }],
        }
    }
}

/// Problems as they are found.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    /// One more. Of a place that already has one, or lies in one that has, it
    /// would only repeat in other words what was said there.
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        let pointer = pointer.into();
        let told = |problem: &Problem| {
            pointer
                .strip_prefix(problem.pointer.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if self.found.len() < PROBLEMS_MAX && !self.found.iter().any(told) {
            let detail = detail.into();
            self.found.push(Problem { pointer, detail });
        }
    }

    /// Takes over what was found below `pointer`.
    pub fn extend(&mut self, pointer: &str, invalid: Invalid) {
        for problem in invalid.errors {
            self.add(format!("{pointer}{}", problem.pointer), problem.detail);
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// `value`, if nothing was found.
    pub fn or<T>(self, value: T) -> Result<T, Invalid> {
        match self.found.is_empty() {
            true => Ok(value),
            false => Err(Invalid { errors: self.found }),
        }
    }
}

/// `pointer` with one more step, escaped as RFC 6901 wants it.
pub fn below(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}
