//! What is learnt goes on the list, unless it is doubted.
//!
//! A destination that says "no such mailbox" far more often than it usually
//! does may be wrong: what it taught of late, and what it teaches from then on,
//! is held until a person has looked. Complaints and opt-outs are what people
//! said, and are always believed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outflow_core::suppression::Reason;
use outflow_core::suppression::surge::{LOOK_BACK, SurgeCounts, SurgeRule};
use outflow_core::tally::{Counter, Tallies, Window};
use outflow_core::time::{Mono, Wall};
use outflow_ports::letter::Envelope;
use outflow_ports::query::{Query, TallyView};
use outflow_ports::registry::Audit;
use outflow_ports::suppression::{
    DETAIL_BYTES_MAX, NoSuchRecipient, PAGE_MAX, Put, Suppression, SuppressionChange,
    SuppressionError, SuppressionFilter, Suppressions,
};

/// Destinations whose bounces are counted apart.
const DESTINATIONS_MAX: usize = 1_024;
/// How long the node is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Both clocks.
pub type Clocks = Arc<dyn Fn() -> (Mono, Wall) + Send + Sync>;
/// Tells people what they should know, in words.
pub type Alarm = Arc<dyn Fn(&str) + Send + Sync>;

/// Puts what was learnt on the list.
pub struct Learner {
    list: Arc<dyn Suppressions>,
    query: Arc<dyn Query>,
    clocks: Clocks,
    alarm: Alarm,
    rule: SurgeRule,
    counts: Mutex<Counts>,
}

/// What is known of destinations.
struct Counts {
    /// Hard bounces.
    hard: Tallies<String>,
    /// Until when a destination is doubted.
    doubted: BTreeMap<String, Mono>,
}

impl Learner {
    /// Puts what was learnt on this list.
    pub fn new(
        list: Arc<dyn Suppressions>,
        query: Arc<dyn Query>,
        clocks: Clocks,
        alarm: Alarm,
        rule: SurgeRule,
    ) -> Self {
        let counts = Counts {
            hard: Tallies::new(DESTINATIONS_MAX),
            doubted: BTreeMap::new(),
        };
        Self {
            list,
            query,
            clocks,
            alarm,
            rule,
            counts: Mutex::new(counts),
        }
    }

    /// The wall clock.
    pub fn now(&self) -> Wall {
        (self.clocks)().1
    }

    /// Bounces that the node saw. What cannot be read is left out: the next
    /// message to that recipient bounces as well.
    pub fn bounced(&self, bounces: &[NoSuchRecipient]) -> Result<Put, SuppressionError> {
        let now = self.now();
        let entry = |bounce: &NoSuchRecipient| {
            let envelope = bounce.parcel.as_ref()?.read_envelope().ok()?;
            let envelope = Envelope::from_bytes(&envelope).ok()?;
            let code = bounce.error.code.map(|code| format!("{code} "));
            Some(Suppression {
                tenant: bounce.key.tenant.as_str().to_owned(),
                recipient: canonical(&envelope.to),
                reason: Reason::HardBounce,
                is_held: false,
                since: now,
                source: "reply".to_owned(),
                destination: bounce.key.destination.to_string(),
                message: bounce.message.to_string(),
                detail: detail(&format!(
                    "{}{}",
                    code.unwrap_or_default(),
                    bounce.error.text
                )),
            })
        };
        self.learn(bounces.iter().filter_map(entry).collect())
    }

    /// Puts what was learnt on the list, with one line of audit.
    pub fn learn(&self, mut entries: Vec<Suppression>) -> Result<Put, SuppressionError> {
        if entries.is_empty() {
            return Ok(Put::default());
        }
        let (mono, now) = (self.clocks)();
        let doubted = self.doubted(mono, now, &entries)?;
        let mut held = 0;
        for entry in &mut entries {
            if entry.reason == Reason::HardBounce && doubted.contains(&entry.destination) {
                entry.is_held = true;
                held += 1;
            }
        }
        let mut sources: Vec<&str> = entries.iter().map(|entry| entry.source.as_str()).collect();
        sources.sort_unstable();
        sources.dedup();
        let target = sources.join(",");
        let detail = format!("{{\"entries\":{},\"held\":{held}}}", entries.len());
        let audit = Audit {
            at: now,
            actor: "feedback",
            action: "suppressions.learn",
            target: &target,
            detail: &detail,
        };
        self.list.put(&entries, Some(audit))
    }

    /// Counts hard bounces; which of their destinations are doubted.
    fn doubted(
        &self,
        mono: Mono,
        now: Wall,
        entries: &[Suppression],
    ) -> Result<BTreeSet<String>, SuppressionError> {
        let mut doubted = BTreeSet::new();
        let mut suspects = BTreeMap::new();
        {
            let mut counts = self.counts();
            counts.doubted.retain(|_, until| *until > mono);
            let hard = entries.iter().filter(|entry| {
                entry.reason == Reason::HardBounce && !entry.destination.is_empty()
            });
            for entry in hard {
                let destination = &entry.destination;
                counts.hard.add(mono, destination, Counter::Bounced, 1);
                let tally = counts.hard.get(destination);
                let of_late = tally.map_or(0, |tally| {
                    tally.count(mono, Window::QuarterHour, Counter::Bounced)
                });
                if of_late >= self.rule.least {
                    suspects.insert(destination.clone(), of_late);
                }
                if counts.doubted.contains_key(destination) {
                    doubted.insert(destination.clone());
                }
            }
        }
        if suspects.is_empty() {
            return Ok(doubted);
        }
        let tallies = self.tallies();
        for (destination, hard) in suspects {
            if !self.rule.is_surge(&counts_of(&tallies, &destination, hard)) {
                continue;
            }
            let until = mono + LOOK_BACK;
            let before = self.counts().doubted.insert(destination.clone(), until);
            if before.is_none() {
                let taken_back = self.hold_of_late(&destination, now)?;
                (self.alarm)(&format!(
                    "{destination} says \"no such mailbox\" far more often than usual ({hard} \
                     times in 15 minutes): {taken_back} suppressions of late and those to come \
                     are held. Look at them: outflow suppressions review"
                ));
            }
            doubted.insert(destination);
        }
        Ok(doubted)
    }

    /// What the destination taught right before it was doubted is held too.
    fn hold_of_late(&self, destination: &str, now: Wall) -> Result<usize, SuppressionError> {
        let back = i64::try_from(LOOK_BACK.0).unwrap_or(i64::MAX);
        let filter = SuppressionFilter {
            destination: Some(destination.to_owned()),
            reason: Some(Reason::HardBounce),
            since: Some(Wall(now.0.saturating_sub(back))),
            is_learnt: true,
            ..SuppressionFilter::default()
        };
        let mut held = 0;
        loop {
            let part = self.list.change(&filter, SuppressionChange::Hold)?.len();
            held += part;
            if part < PAGE_MAX {
                return Ok(held);
            }
        }
    }

    /// What the node counted. A node that does not answer counted nothing:
    /// then bounces alone decide, on the safe side.
    fn tallies(&self) -> Vec<TallyView> {
        let (then, answer) = sync_channel(1);
        self.query.tallies(Box::new(move |tallies| {
            let _ = then.send(tallies);
        }));
        answer.recv_timeout(PATIENCE).unwrap_or_default()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counts_of(tallies: &[TallyView], destination: &str, hard: u64) -> SurgeCounts {
    let found = tallies
        .iter()
        .find(|tally| tally.key.to_string() == destination);
    let Some(tally) = found else {
        return SurgeCounts {
            hard,
            ..SurgeCounts::default()
        };
    };
    SurgeCounts {
        hard,
        attempts: tally.count(Window::QuarterHour, Counter::Attempts),
        day_bounced: tally.count(Window::Day, Counter::Bounced),
        day_attempts: tally.count(Window::Day, Counter::Attempts),
    }
}

/// An address as the list has it: case does not matter.
pub fn canonical(address: &str) -> String {
    address.to_ascii_lowercase()
}

/// As much of what was said as is kept, on one line.
pub fn detail(said: &str) -> String {
    let end = said.floor_char_boundary(DETAIL_BYTES_MAX);
    let said = said.get(..end).unwrap_or_default();
    let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
    said.chars().map(clean).collect()
}
