//! The incident runbook as a machine: slow down, wait, look, come back in steps.
//!
//! It stands above the controllers of single limits, and is slower and coarser:
//! it looks at shares per destination over minutes and hours. When a rule
//! speaks it opens an incident and, if it may act, halves the destination's
//! rates, pauses what can wait and sends a share of critical traffic another
//! way. After the cooldown, and once all rules were quiet for long enough, it
//! raises the rate in steps, each after its canaries were taken; a rule that
//! speaks again meanwhile begins a new cooldown from a lower rate.
//!
//! It does nothing itself: [`Runbook::step`] says what to do. All times are on
//! the wall clock, since incidents outlive the process.
//!
//! In reading order: [`settings`] (what it watches), [`incident`] (what is kept
//! of each), `course` (how one goes on).

mod course;
pub mod incident;
pub mod settings;

use std::collections::{BTreeMap, BTreeSet};

pub use incident::{AtAccount, Evidence, Heard, Incident, Line, Measures, State};
pub use settings::{Response, Settings, Watch};

use crate::limit::spec::Rate;
use crate::tally::{Counter, Finding, Window};
use crate::time::Wall;

/// The tenant of canaries: they always go the usual way, and what became of them
/// is always written down.
pub const CANARY: &str = "canary";

/// Incidents that are not over, at a time.
const INCIDENTS_MAX: usize = 1_000;

/// What was counted at one destination lately.
pub trait Reading {
    /// Which: `isp:google`.
    fn destination(&self) -> &str;

    /// How many there were in a window.
    fn count(&self, window: Window, counter: Counter) -> u64;

    /// Whether there is a rate that could be cut.
    fn has_rate(&self) -> bool;
}

/// What became of canaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// All were taken.
    Taken,
    /// One was refused.
    Refused,
    /// There is nobody who could send them: as if there were none.
    Absent,
}

/// What to do. Each is about one incident; the machine has noted it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is new: tell people.
    Open,
    /// Its evidence has changed.
    Note,
    /// Hold the destination to so many thousandths of its rates, until a time
    /// at which they come back by themselves.
    Slow {
        /// How much of them.
        permille: u16,
        /// Until when.
        until: Wall,
    },
    /// The rates are as they were.
    Lift,
    /// Pause the classes that can wait.
    Pause,
    /// They may go on.
    Resume,
    /// Send a share of critical traffic another way.
    Detour,
    /// It goes the usual way again.
    Return,
    /// Send canaries.
    Canary,
    /// It is over.
    Close,
}

/// What to do about an incident, which is shown as it is then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The incident.
    pub incident: Incident,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

/// What the rules say of one destination.
#[derive(Debug, Default)]
struct Said {
    /// Rules that speak.
    loud: Vec<(Watch, Finding)>,
    /// Whether something that a rule watches goes on, be it little.
    noisy: bool,
    /// Whether there is a rate that could be cut.
    has_rate: bool,
    /// What is sent there lately.
    measured: Option<Rate>,
}

/// All incidents that are not over.
#[derive(Clone, Debug)]
pub struct Runbook {
    settings: Settings,
    incidents: BTreeMap<String, Incident>,
    next_id: u64,
    /// Where somebody ended an incident while it went on: no other begins there
    /// until all was quiet once.
    hushed: BTreeSet<String>,
}

impl Runbook {
    /// Goes on with these incidents, of which those that are over only count
    /// for the number of the next.
    ///
    /// A process that has just begun has counted nothing yet, so that all seems
    /// quiet: no step up comes before it had the time to hear.
    pub fn new(settings: Settings, saved: impl IntoIterator<Item = Incident>, now: Wall) -> Self {
        let mut next_id = 1;
        let mut incidents = BTreeMap::new();
        for mut incident in saved {
            next_id = next_id.max(incident.id + 1);
            if incident.state == State::Closed {
                continue;
            }
            incident.calm_since = None;
            if incident.state == State::Recovering {
                let soonest = now + settings.ramp.every;
                incident.next_step_at = incident.next_step_at.max(Some(soonest));
            }
            incidents.insert(incident.destination.clone(), incident);
        }
        Self {
            settings,
            incidents,
            next_id,
            hushed: BTreeSet::new(),
        }
    }

    /// What is in force because of incidents, to be put in force again after a
    /// restart.
    pub fn standing(&self, now: Wall) -> Vec<Due> {
        let due = self.incidents.values().map(|incident| {
            let until = incident.held_until.unwrap_or(now);
            let Measures {
                slowed,
                paused,
                detoured,
            } = incident.measures;
            let permille = incident.rate_permille;
            let steps = [
                slowed.then_some(Step::Slow { permille, until }),
                paused.then_some(Step::Pause),
                detoured.then_some(Step::Detour),
            ];
            Due {
                incident: incident.clone(),
                steps: steps.into_iter().flatten().collect(),
            }
        });
        due.filter(|due| !due.steps.is_empty()).collect()
    }

    /// Incidents that are not over, by destination.
    pub fn incidents(&self) -> impl Iterator<Item = &Incident> {
        self.incidents.values()
    }

    /// Whether an incident of this number is over.
    pub fn is_over(&self, id: u64) -> bool {
        id < self.next_id && !self.incidents().any(|incident| incident.id == id)
    }

    /// Whether answers to canaries are awaited at a destination.
    pub fn awaits_canaries(&self, destination: &str) -> bool {
        let incident = self.incidents.get(destination);
        incident.is_some_and(|incident| incident.canary_at.is_some())
    }

    /// Looks at what was counted, and at answers to canaries, by destination. An
    /// answer is told at each look for as long as it is awaited.
    pub fn step<R: Reading>(
        &mut self,
        now: Wall,
        readings: &[R],
        canaries: &BTreeMap<String, Answered>,
    ) -> Vec<Due> {
        if !self.settings.enabled {
            return Vec::new();
        }
        let mut said: BTreeMap<&str, Said> = BTreeMap::new();
        for reading in readings {
            said.insert(reading.destination(), self.said(reading));
        }
        self.hushed
            .retain(|place| said.get(place.as_str()).is_some_and(|said| said.noisy));
        let is_new = |(place, said): &(&&str, &Said)| {
            let is_known = self.incidents.contains_key(**place) || self.hushed.contains(**place);
            !said.loud.is_empty() && !is_known
        };
        let places: Vec<String> = said
            .iter()
            .filter(is_new)
            .map(|(it, _)| (*it).into())
            .collect();
        for place in places {
            if self.incidents.len() < INCIDENTS_MAX {
                let incident = Incident::new(self.next_id, place.clone(), now);
                self.next_id += 1;
                self.incidents.insert(place, incident);
            }
        }
        let nothing = Said::default();
        let mut due = Vec::new();
        for (place, incident) in &mut self.incidents {
            let said = said.get(place.as_str()).unwrap_or(&nothing);
            let canary = canaries.get(place).copied();
            let steps = course::go_on(incident, &self.settings, now, said, canary);
            if !steps.is_empty() {
                due.push(Due {
                    incident: incident.clone(),
                    steps,
                });
            }
        }
        self.incidents
            .retain(|_, incident| incident.state != State::Closed);
        due
    }

    /// Adds what was found out about an incident when it began.
    pub fn describe(&mut self, destination: &str, accounts: Vec<AtAccount>, replies: Vec<Heard>) {
        if let Some(incident) = self.incidents.get_mut(destination) {
            incident.accounts = accounts;
            incident.replies = replies;
        }
    }

    /// Ends an incident because somebody says so. What is in force goes, and no
    /// other begins there until all was quiet once.
    pub fn close(&mut self, id: u64, now: Wall, why: String) -> Option<Due> {
        let mut all = self.incidents.iter();
        let place = all.find(|(_, incident)| incident.id == id)?.0.clone();
        let mut incident = self.incidents.remove(&place)?;
        self.hushed.insert(place);
        let steps = course::end(&mut incident, now, why);
        Some(Due { incident, steps })
    }

    fn said<R: Reading>(&self, reading: &R) -> Said {
        let mut said = Said {
            has_rate: reading.has_rate(),
            measured: measured(reading),
            ..Said::default()
        };
        for watch in &self.settings.watches {
            let count = |window, counter| reading.count(window, counter);
            if let Some(finding) = watch.speaks(count) {
                said.loud.push((*watch, finding));
            }
            said.noisy |= watch.is_noisy(count);
        }
        said
    }
}

/// The most that was attempted a second in any window: a quiet hour does not make
/// a destination slow.
fn measured<R: Reading>(reading: &R) -> Option<Rate> {
    let rates = Window::ALL.map(|window| {
        let attempts = reading.count(window, Counter::Attempts) as f64;
        attempts / window.length().as_secs_f64()
    });
    let most = rates.into_iter().fold(0.0, f64::max);
    (most > 0.0).then(|| Rate::of_per_second(most))
}
