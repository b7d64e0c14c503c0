//! Giving disk space back, a little at each turn.
//!
//! Envelope segments go oldest first, else a settlement would be gone while its
//! message is still there and bring it back. The living few of the oldest are
//! written again at the end, with what is still needed of flows, limits and
//! keys. A segment goes only when the record has all that is in it. Body
//! segments in which less than a quarter is alive, or something has been dead
//! for long, are rewritten; those in which nothing is alive just go.
//!
//! Reading order: this, `envelopes`, `bodies`.

mod bodies;
mod envelopes;

use self::bodies::Bodies;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use outflow_core::message::Seq;
use outflow_core::time::{Mono, Nanos, Now, Wall};

use crate::journal::place::Place;
use crate::journal::segment::Kind;
use crate::journal::task::Keep;
use crate::keeper::{Chore, Tidied};
use crate::recovery::BodyFile;
use crate::store::EmbeddedStore;

/// How often there is a look at what could go.
const LOOK_EVERY: Nanos = Nanos::from_millis(500);
/// How soon a job that has begun goes on.
const STEP_EVERY: Nanos = Nanos::from_millis(2);
/// Slots looked at in one turn.
const SCAN_MAX: usize = 65_536;

/// About how long a record about a limit is.
const LIMIT_BYTES: u64 = 192;

/// What is being done.
enum Job {
    None,
    /// Looks for the living of the oldest envelope segment.
    Scan {
        victim: u32,
        from: Seq,
        found: VecDeque<Seq>,
    },
    /// Writes them again.
    Keep {
        victim: u32,
        left: VecDeque<Seq>,
    },
    /// Waits for the record.
    Wait {
        victim: u32,
        through: u64,
    },
    /// Looks for the living of a body segment.
    ScanBodies {
        victim: u32,
        from: Seq,
        found: BTreeSet<Place>,
    },
    /// The keeper rewrites it.
    Rewriting {
        victim: u32,
        count: u64,
    },
}

/// What could be given back.
pub struct Reclaim {
    /// Envelope segments, oldest first; body segments with their bytes.
    envelopes: VecDeque<u32>,
    bodies: BTreeMap<u32, Bodies>,
    /// The newest segments that places were seen in.
    newest: (u32, u32),
    job: Job,
    /// Tasks of the job that are not answered yet.
    unanswered: usize,
    next_look: Mono,
    chores: Option<Sender<Chore>>,
    tidied: Arc<Mutex<Vec<Tidied>>>,
    /// Segments given up that the keeper still has.
    pub leaving: usize,
    /// A body segment that is to be ended, though it is the newest; the writer
    /// has not answered yet, and may still write to it.
    turning: Option<u32>,
    /// A body segment that is not written any more, though it is the newest.
    turned: u32,
}

impl Reclaim {
    pub fn new(
        envelopes: Vec<u32>,
        bodies: &BTreeMap<u32, BodyFile>,
        chores: Sender<Chore>,
        tidied: Arc<Mutex<Vec<Tidied>>>,
    ) -> Self {
        Self {
            newest: (
                envelopes.last().copied().unwrap_or(0),
                bodies.keys().last().copied().unwrap_or(0),
            ),
            envelopes: envelopes.into(),
            bodies: bodies
                .iter()
                .map(|(no, file)| (*no, Bodies::found(file)))
                .collect(),
            job: Job::None,
            unanswered: 0,
            next_look: Mono(0),
            chores: Some(chores),
            tidied,
            leaving: 0,
            turning: None,
            turned: 0,
        }
    }

    /// Something was written at these places.
    pub fn saw(&mut self, envelope: Place, body: Place) {
        // Also those in which nothing was seen, such as a name alone.
        while self.newest.0 < envelope.segment() {
            self.newest.0 += 1;
            self.envelopes.push_back(self.newest.0);
        }
        if self.newest.1 < body.segment() {
            self.newest.1 = body.segment();
        }
    }

    /// A task of the job was answered.
    pub fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// Messages could not be written again; they are tried once more.
    pub fn not_kept(&mut self, messages: Vec<Keep>) {
        self.answered();
        if let Job::Keep { left, .. } = &mut self.job {
            left.extend(messages.into_iter().map(|it| it.seq));
        }
    }

    /// The writer has ended the newest body segment. All messages whose bodies
    /// it wrote there are answered by now or with this answer.
    pub fn turned(&mut self) {
        self.turned = self.turning.take().unwrap_or(self.turned);
    }

    /// Bodies still go to the same segment.
    pub fn not_turned(&mut self) {
        self.turning = None;
    }

    /// When to look again.
    pub fn next_look(&self) -> Mono {
        match self.job {
            Job::None if self.envelopes.len() < 2 && self.bodies.is_empty() => Mono::NEVER,
            _ => self.next_look,
        }
    }

    pub fn close(&mut self) {
        self.chores = None;
    }

    fn chore(&self, chore: Chore) {
        if let Some(chores) = &self.chores {
            // A keeper that is gone leaves the space where it is.
            let _ = chores.send(chore);
        }
    }
}

impl EmbeddedStore {
    /// Does some of what is to be done.
    pub(crate) fn reclaim_some(&mut self, now: &Now) {
        if now.mono < self.reclaim.next_look {
            return;
        }
        self.hear_keeper();
        let job = std::mem::replace(&mut self.reclaim.job, Job::None);
        self.reclaim.job = match job {
            Job::None => self.find_job(now.wall),
            Job::Scan {
                victim,
                from,
                found,
            } => self.scan(victim, from, found),
            Job::Keep { victim, left } => self.keep(victim, left),
            Job::Wait { victim, through } => self.wait(victim, through),
            Job::ScanBodies {
                victim,
                from,
                found,
            } => self.scan_bodies(victim, from, found),
            rewriting @ Job::Rewriting { .. } => rewriting,
        };
        let pause = match self.reclaim.job {
            Job::None | Job::Rewriting { .. } | Job::Wait { .. } => LOOK_EVERY,
            _ => STEP_EVERY,
        };
        self.reclaim.next_look = now.mono + pause;
    }

    fn hear_keeper(&mut self) {
        let tidied = Arc::clone(&self.reclaim.tidied);
        let all = std::mem::take(&mut *tidied.lock().unwrap_or_else(|it| it.into_inner()));
        for tidied in all {
            match tidied {
                Tidied::Gone(_, _) => self.reclaim.leaving -= 1,
                Tidied::Rewritten(number, bytes) => self.bodies_rewritten(number, bytes),
            }
        }
    }

    /// About how many bytes it takes to write all that is known of limits and
    /// accounts again.
    fn limit_bytes(&self) -> u64 {
        let index = &self.index;
        (index.limits.len() + index.holds.len() + index.adapted.len()) as u64 * LIMIT_BYTES
    }

    fn find_job(&mut self, now: Wall) -> Job {
        let (newest, newest_body) = self.reclaim.newest;
        // Bodies first: they are most of the bytes.
        let seen: Vec<u32> = self.index.bodies.segments.keys().copied().collect();
        for number in seen {
            let usual = Bodies::begun(self.settings.body_segment_bytes);
            self.reclaim.bodies.entry(number).or_insert(usual);
        }
        self.turn_bodies(newest_body, now);
        let end = newest_body + u32::from(self.reclaim.turned == newest_body);
        let candidates = self.reclaim.bodies.range(..end);
        let candidates: Vec<(u32, Bodies)> = candidates.map(|(no, it)| (*no, *it)).collect();
        for (number, known) in candidates {
            if self.share_of(number).live_count == 0 {
                self.reclaim.bodies.remove(&number);
                self.index.bodies.segments.remove(&number);
                self.reclaim.leaving += 1;
                self.reclaim.chore(Chore::GiveUp(Kind::Body, number));
                continue;
            }
            if self.should_rewrite(number, known, now) {
                return Job::ScanBodies {
                    victim: number,
                    from: Seq(0),
                    found: BTreeSet::new(),
                };
            }
        }
        let Some(&victim) = self.reclaim.envelopes.front() else {
            return Job::None;
        };
        let keys = &self.index.keys.remembered;
        let live = self.index.envelopes.values().sum::<u64>() + keys.bytes() + self.limit_bytes();
        let here = self.index.envelopes.get(&victim).copied().unwrap_or(0);
        let here = here + keys.bytes_in(victim);
        let segments = self.reclaim.envelopes.len() as u64;
        let bytes = segments * self.settings.envelope_segment_bytes;
        let too_much = bytes > self.settings.slack_bytes + live + live / 2;
        if victim < newest && (too_much || here == 0) {
            return Job::Scan {
                victim,
                from: Seq(0),
                found: VecDeque::new(),
            };
        }
        Job::None
    }
}
