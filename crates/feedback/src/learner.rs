//! What is learnt goes on the list, unless it is doubted.
//!
//! A destination that says "no such mailbox" far more often than it usually
//! does may be wrong: what it taught of late, and what it teaches from then on,
//! is held until a person has looked. Complaints and opt-outs are what people
//! said, and are always believed.

use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outflow_core::suppression::Reason;
use outflow_core::suppression::surge::{LOOK_BACK, Surge, SurgeRule};
use outflow_core::time::{Mono, Wall};
use outflow_ports::letter::Envelope;
use outflow_ports::query::{Query, TallyView};
use outflow_ports::registry::Audit;
use outflow_ports::suppression::{
    DETAIL_BYTES_MAX, NoSuchRecipient, PAGE_MAX, Placed, Put, Suppression, SuppressionChange,
    SuppressionError, SuppressionFilter, Suppressions,
};

use crate::doubts::{Doubts, counts_of};
use crate::notes::{Line, Notes};

/// How long the node is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Both clocks.
pub type Clocks = Arc<dyn Fn() -> (Mono, Wall) + Send + Sync>;
/// Tells people that a destination is doubted.
pub type Alarm = Arc<dyn Fn(&Surge) + Send + Sync>;

/// Puts what was learnt on the list.
pub struct Learner {
    list: Arc<dyn Suppressions>,
    query: Arc<dyn Query>,
    clocks: Clocks,
    alarm: Alarm,
    /// Held while something is learnt: what is judged and what is held follow
    /// from it in one order.
    known: Mutex<Known>,
}

struct Known {
    doubts: Doubts,
    notes: Notes,
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
        let known = Known {
            doubts: Doubts::new(rule),
            notes: Notes::default(),
        };
        Self {
            list,
            query,
            clocks,
            alarm,
            known: Mutex::new(known),
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

    /// Puts what was learnt on the list.
    pub fn learn(&self, mut entries: Vec<Suppression>) -> Result<Put, SuppressionError> {
        if entries.is_empty() {
            return Ok(Put::default());
        }
        let (mono, now) = (self.clocks)();
        let mut known = self.known();
        let destinations = hard_destinations(&entries);
        for entry in entries.iter().filter(|entry| is_hard(entry)) {
            known.doubts.count(mono, &entry.destination);
        }
        self.judge(&mut known.doubts, mono, now, &destinations)?;
        for entry in entries.iter_mut().filter(|entry| is_hard(entry)) {
            entry.is_held = known.doubts.is_doubted(mono, &entry.destination);
        }
        let put = self.list.put(&entries, None)?;
        let placed = entries.iter().zip(&put.placed);
        for (entry, _) in placed.filter(|(_, placed)| **placed == Placed::New) {
            let destination = &entry.destination;
            known.notes.add(destination, &entry.source, entry.is_held);
        }
        let due = known.notes.due(mono);
        // What is learnt is learnt, also if its line has to wait.
        let _ = self.note(&mut known.notes, mono, now, due);
        Ok(put)
    }

    /// Writes the lines of audit whose time has come; at the end, all.
    pub fn write_notes(&self, is_end: bool) -> Result<(), SuppressionError> {
        let (mono, now) = (self.clocks)();
        let mut known = self.known();
        let due = match is_end {
            true => known.notes.all(),
            false => known.notes.due(mono),
        };
        self.note(&mut known.notes, mono, now, due)
    }

    fn note(
        &self,
        notes: &mut Notes,
        mono: Mono,
        at: Wall,
        lines: Vec<Line>,
    ) -> Result<(), SuppressionError> {
        for line in lines {
            let audit = Audit {
                at,
                actor: "feedback",
                action: "suppressions.learn",
                target: &line.target,
                detail: &line.detail,
            };
            self.list.put(&[], Some(audit))?;
            notes.written(mono, line);
        }
        Ok(())
    }

    /// Judges those of these destinations whose time has come.
    fn judge(
        &self,
        doubts: &mut Doubts,
        mono: Mono,
        now: Wall,
        destinations: &BTreeSet<String>,
    ) -> Result<(), SuppressionError> {
        let suspect = |destination| Some((destination, doubts.suspect(mono, destination)?));
        let suspects: Vec<(&String, u64)> = destinations.iter().filter_map(suspect).collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let tallies = self.tallies();
        for (destination, hard) in suspects {
            let counts = tallies
                .as_deref()
                .map(|tallies| counts_of(tallies, destination, hard));
            let is_surge = doubts.judge(mono, destination, counts.as_ref());
            let is_new = is_surge && !doubts.is_doubted(mono, destination);
            // Held first: if that fails, it is tried again with the next bounce.
            let held = match is_new {
                true => self.hold_of_late(destination, now)?,
                false => 0,
            };
            doubts.found(mono, destination, is_surge);
            if let (true, Some(counts)) = (is_new, counts) {
                (self.alarm)(&Surge {
                    destination: destination.clone(),
                    counts,
                    held,
                });
            }
        }
        Ok(())
    }

    /// What the destination taught right before it was doubted is held too.
    fn hold_of_late(&self, destination: &str, now: Wall) -> Result<u64, SuppressionError> {
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
            held += part as u64;
            if part < PAGE_MAX {
                return Ok(held);
            }
        }
    }

    /// What the node counted; none if it does not answer.
    fn tallies(&self) -> Option<Vec<TallyView>> {
        let (then, answer) = sync_channel(1);
        self.query.tallies(Box::new(move |tallies| {
            let _ = then.send(tallies);
        }));
        answer.recv_timeout(PATIENCE).ok()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a bounce says something of its destination, too.
fn is_hard(entry: &Suppression) -> bool {
    entry.reason == Reason::HardBounce && !entry.destination.is_empty()
}

fn hard_destinations(entries: &[Suppression]) -> BTreeSet<String> {
    let hard = entries.iter().filter(|entry| is_hard(entry));
    hard.map(|entry| entry.destination.clone()).collect()
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
