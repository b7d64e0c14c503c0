//! What is written down of rates that are learnt, and what is told of them.

use std::sync::Arc;

use super::learners::settings;
use crate::adapt::{Controller, Evidence, Mode, Saved};
use crate::limit::spec::Rate;
use crate::policy::applied::Learning;
use crate::policy::key::LimitKey;
use crate::time::{Nanos, Now};

/// What nobody used for so long is forgotten by the next start.
const FORGOTTEN: Nanos = Nanos::from_secs(30 * 86_400);

/// What is written down of a rate that is learnt.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Lore {
    /// Within which bounds.
    pub learning: Learning,
    /// All that its controller knew.
    pub controller: Saved,
}

impl Lore {
    /// Whether it is of no use any more: nobody sent for a month, and no operator
    /// holds it.
    pub fn is_forgotten(&self, now: &Now) -> bool {
        let saved_at = self.controller.saved_at();
        if saved_at.is_none_or(|at| now.wall.since(at) < FORGOTTEN) {
            return false;
        }
        let settings = settings(self.learning);
        let controller = Controller::restore(now, settings, &self.controller, Nanos::ZERO);
        controller.is_ok_and(|it| !it.is_pinned())
    }
}

/// What became of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is learnt from now on.
    Learnt,
    /// Less may flow.
    Cut,
    /// More may flow.
    Raised,
    /// Nothing flows but single messages that ask.
    Stopped,
    /// It flows again.
    Resumed,
}

impl Turn {
    /// The word used in the audit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Learnt => "limit.learnt",
            Self::Cut => "limit.cut",
            Self::Raised => "limit.raised",
            Self::Stopped => "limit.stopped",
            Self::Resumed => "limit.resumed",
        }
    }
}

/// A rate changed by what was learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapted {
    /// Of what.
    pub key: Arc<LimitKey>,
    /// How.
    pub turn: Turn,
    /// What flowed before.
    pub from: Rate,
    /// What flows now.
    pub to: Rate,
    /// What its controller is doing.
    pub mode: Mode,
    /// What it went by.
    pub evidence: Evidence,
    /// All of it in one sentence.
    pub sentence: String,
}
