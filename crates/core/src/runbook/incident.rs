//! One incident: what went wrong at a destination, what was done about it, and
//! how far it is over.

use serde::{Deserialize, Serialize};

use super::settings::Response;
use crate::limit::spec::Rate;
use crate::tally::Finding;
use crate::time::Wall;

/// Lines that are kept of one incident.
const LINES_MAX: usize = 200;

/// A rate that nobody slowed down, in thousandths of the base.
pub const WHOLE: u16 = 1_000;

/// Where an incident stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Somebody should look; nothing is done about it.
    Open,
    /// Something is done about it.
    Mitigating,
    /// What was done is taken back, step by step.
    Recovering,
    /// It is over.
    Closed,
}

impl State {
    /// The word used in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Mitigating => "mitigating",
            Self::Recovering => "recovering",
            Self::Closed => "closed",
        }
    }
}

/// What a rule had to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Which rule.
    pub rule: String,
    /// So many of these ...
    pub part: u64,
    /// ... among so many of those, when it was at its worst.
    pub whole: u64,
    /// What was counted: `429`.
    pub counted: String,
    /// Over how long: `15m`.
    pub window: String,
    /// Since when it speaks.
    pub since: Wall,
    /// When it last spoke.
    pub last: Wall,
}

impl Evidence {
    /// Whether a finding is worse than what is noted.
    pub fn is_worse(&self, finding: &Finding) -> bool {
        u128::from(finding.part) * u128::from(self.whole)
            > u128::from(self.part) * u128::from(finding.whole)
    }
}

/// What was counted of one account at the destination when it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtAccount {
    /// Which.
    pub account: String,
    /// So many of what the first rule counts ...
    pub part: u64,
    /// ... among so many.
    pub whole: u64,
}

/// An answer of the far end, as it was when it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// As it was said: `421 4.7.28 ...`.
    pub text: String,
    /// How often, among those that were looked at.
    pub count: u64,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Wall,
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The rate before, in thousandths of the base.
    pub rate_from: u16,
    /// The rate after.
    pub rate_to: u16,
    /// Why.
    pub why: String,
}

/// What is in force because of an incident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measures {
    /// The destination is slowed down.
    pub slowed: bool,
    /// The classes that can wait are paused.
    pub paused: bool,
    /// A share of critical traffic goes another way.
    pub detoured: bool,
}

impl Measures {
    /// Whether nothing is in force.
    pub const fn are_none(&self) -> bool {
        !(self.slowed || self.paused || self.detoured)
    }

    /// What a response brings that is not in force yet.
    pub(super) const fn lacking(&self, response: Response) -> Response {
        Response {
            slow: response.slow && !self.slowed,
            pause: response.pause && !self.paused,
            detour: response.detour && !self.detoured,
        }
    }
}

/// One incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Its number.
    pub id: u64,
    /// Where: `isp:google`.
    pub destination: String,
    /// Where it stands.
    pub state: State,
    /// Since when.
    pub opened_at: Wall,
    /// When it was over.
    pub closed_at: Option<Wall>,
    /// What the rules had to say, each once.
    pub evidence: Vec<Evidence>,
    /// Through which accounts it happened.
    #[serde(default)]
    pub accounts: Vec<AtAccount>,
    /// What the far end said.
    #[serde(default)]
    pub replies: Vec<Heard>,
    /// What is in force because of it.
    pub measures: Measures,
    /// The rate in force, in thousandths of the base.
    pub rate_permille: u16,
    /// How often it was cut.
    pub cuts: u32,
    /// When it was last cut or raised.
    pub changed_at: Wall,
    /// No step up before this.
    pub cooldown_until: Option<Wall>,
    /// Since when all rules are quiet.
    pub calm_since: Option<Wall>,
    /// When the next step up comes, if all is well.
    pub next_step_at: Option<Wall>,
    /// Until when the slower rate holds by itself, should nobody look.
    pub held_until: Option<Wall>,
    /// When canaries were sent, whose answers are awaited.
    pub canary_at: Option<Wall>,
    /// What was lately sent there when it began: what is cut where no policy
    /// has a rate.
    #[serde(default)]
    pub measured: Option<Rate>,
    /// What was done, the oldest first.
    pub lines: Vec<Line>,
}

impl Incident {
    pub(super) const fn new(id: u64, destination: String, now: Wall) -> Self {
        Self {
            id,
            destination,
            state: State::Open,
            opened_at: now,
            closed_at: None,
            evidence: Vec::new(),
            accounts: Vec::new(),
            replies: Vec::new(),
            measures: Measures {
                slowed: false,
                paused: false,
                detoured: false,
            },
            rate_permille: WHOLE,
            cuts: 0,
            changed_at: now,
            cooldown_until: None,
            calm_since: None,
            next_step_at: None,
            held_until: None,
            canary_at: None,
            measured: None,
            lines: Vec::new(),
        }
    }

    /// Notes what was done. Of many lines those in the middle go first.
    pub(super) fn note(&mut self, now: Wall, before: (State, u16), why: String) {
        if self.lines.len() >= LINES_MAX {
            self.lines.remove(LINES_MAX / 2);
        }
        self.lines.push(Line {
            at: now,
            from: before.0,
            to: self.state,
            rate_from: before.1,
            rate_to: self.rate_permille,
            why,
        });
    }

    /// In one sentence, for people who are paged.
    pub fn sentence(&self) -> String {
        let said = self.evidence.last().map_or_else(String::new, |evidence| {
            let Evidence {
                rule,
                part,
                whole,
                window,
                ..
            } = evidence;
            format!("{rule}: {part} of {whole} in {window}")
        });
        let rate = match self.rate_permille {
            WHOLE => String::new(),
            permille => format!(", at {}% of its rate", permille / 10),
        };
        let (place, state) = (&self.destination, self.state.as_str());
        format!("{place} is {state}{rate} ({said})")
    }
}
