//! Giving disk space back, a little at each turn.
//!
//! Envelope segments go oldest first, else a settlement would be gone while its
//! message is still there and bring it back. The living few of the oldest are
//! written again at the end, with what is still needed of flows, limits and
//! keys. A segment goes only when the record has all that is in it. Body
//! segments in which less than a quarter is alive, or something has been dead
//! for long, are rewritten; those in which nothing is alive just go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use outflow_core::engine::action::Record;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::{Mono, Nanos, Now, Wall};

use crate::index::slots::Stand;
use crate::journal::entry::Context;
use crate::journal::place::Place;
use crate::journal::segment::Kind;
use crate::journal::task::{Keep, Task};
use crate::keeper::{Chore, Tidied};
use crate::store::EmbeddedStore;

/// How often there is a look at what could go.
const LOOK_EVERY: Nanos = Nanos::from_millis(200);
/// How soon a job that has begun goes on.
const STEP_EVERY: Nanos = Nanos::from_millis(2);
/// Slots looked at in one turn.
const SCAN_MAX: usize = 65_536;
/// Messages written again in one task.
const KEEP_MAX: usize = 128;
/// Keys, names and limits written again in one turn.
const RESTATE_MAX: usize = 4_096;
/// A body that is not needed leaves the disk within this time.
const DEAD_BODIES_MAX: Nanos = Nanos::from_secs(20 * 3_600);

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
    Rewriting,
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
}

#[derive(Clone, Copy)]
struct Bodies {
    bytes: u64,
    /// Since when something in it is dead.
    dead_since: Option<Wall>,
    /// What was alive when it was last rewritten.
    rewritten_live: Option<u64>,
}

impl Bodies {
    const fn new(bytes: u64) -> Self {
        Self {
            bytes,
            dead_since: None,
            rewritten_live: None,
        }
    }
}

impl Reclaim {
    pub fn new(
        envelopes: Vec<u32>,
        bodies: BTreeMap<u32, u64>,
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
                .into_iter()
                .map(|(no, bytes)| (no, Bodies::new(bytes)))
                .collect(),
            job: Job::None,
            unanswered: 0,
            next_look: Mono(0),
            chores: Some(chores),
            tidied,
            leaving: 0,
        }
    }

    /// Something was written at these places.
    pub fn saw(&mut self, envelope: Place, body: Place) {
        while self.newest.0 < envelope.segment() {
            self.newest.0 = self
                .envelopes
                .back()
                .map_or(envelope.segment(), |last| last + 1);
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
    /// A message was written again at the end of the journal.
    pub(crate) fn kept(&mut self, it: &Keep) {
        if it.now != Place::NONE {
            self.index.rewritten(it.seq, it.root, it.now);
        }
    }

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
            Job::Rewriting => Job::Rewriting,
        };
        let pause = match self.reclaim.job {
            Job::None | Job::Rewriting | Job::Wait { .. } => LOOK_EVERY,
            _ => STEP_EVERY,
        };
        self.reclaim.next_look = now.mono + pause;
    }

    fn hear_keeper(&mut self) {
        let mut all = self
            .reclaim
            .tidied
            .lock()
            .unwrap_or_else(|it| it.into_inner());
        let all = std::mem::take(&mut *all);
        for tidied in all {
            match tidied {
                Tidied::Gone(_, _) => self.reclaim.leaving -= 1,
                Tidied::Rewritten(number, bytes) => {
                    self.reclaim.job = Job::None;
                    let live = self.live_bodies(number);
                    if let Some(known) = self.reclaim.bodies.get_mut(&number) {
                        known.bytes = bytes.unwrap_or(known.bytes);
                        known.dead_since = None;
                        known.rewritten_live = Some(live);
                    }
                }
            }
        }
    }

    fn live_bodies(&self, number: u32) -> u64 {
        let share = self.index.bodies.segments.get(&number);
        share.map_or(0, |share| share.live)
    }

    fn find_job(&mut self, now: Wall) -> Job {
        let (newest, newest_body) = self.reclaim.newest;
        // Bodies first: they are most of the bytes.
        let seen: Vec<u32> = self.index.bodies.segments.keys().copied().collect();
        for number in seen {
            let usual = Bodies::new(self.settings.body_segment_bytes);
            self.reclaim.bodies.entry(number).or_insert(usual);
        }
        let candidates = self.reclaim.bodies.range(..newest_body);
        let candidates: Vec<(u32, Bodies)> = candidates.map(|(no, it)| (*no, *it)).collect();
        for (number, known) in candidates {
            let live = self.live_bodies(number);
            if live == 0 {
                self.reclaim.bodies.remove(&number);
                self.index.bodies.segments.remove(&number);
                self.reclaim.leaving += 1;
                self.reclaim.chore(Chore::GiveUp(Kind::Body, number));
                continue;
            }
            if self.should_rewrite(number, known, live, now) {
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
        let live: u64 = self.index.envelopes.values().sum();
        let here = self.index.envelopes.get(&victim).copied().unwrap_or(0);
        let segments = self.reclaim.envelopes.len() as u64;
        let bytes = segments * self.settings.envelope_segment_bytes;
        let too_much = bytes > self.settings.slack_bytes + 2 * live;
        if victim < newest && (too_much || here == 0) {
            return Job::Scan {
                victim,
                from: Seq(0),
                found: VecDeque::new(),
            };
        }
        Job::None
    }

    fn should_rewrite(&mut self, number: u32, known: Bodies, live: u64, now: Wall) -> bool {
        let total = self
            .index
            .bodies
            .segments
            .get(&number)
            .map_or(0, |it| it.total);
        let before = known.rewritten_live.unwrap_or(total);
        if live >= before {
            return false;
        }
        let since = known.dead_since.unwrap_or(now);
        if let Some(known) = self.reclaim.bodies.get_mut(&number) {
            known.dead_since = Some(since);
        }
        live * 4 < known.bytes && live * 4 < before * 3 || now.since(since) > DEAD_BODIES_MAX
    }

    fn scan(&mut self, victim: u32, from: Seq, mut found: VecDeque<Seq>) -> Job {
        // Nothing to look for: the usual case when all are settled.
        let any = self
            .index
            .envelopes
            .get(&victim)
            .is_some_and(|live| *live > 0);
        let mut slots = self.index.slots.iter(from);
        if any {
            for (seq, slot) in slots.by_ref().take(SCAN_MAX) {
                if slot.root.segment() <= victim {
                    found.push_back(seq);
                }
            }
            if let Some((from, _)) = slots.next() {
                return Job::Scan {
                    victim,
                    from,
                    found,
                };
            }
        }
        Job::Keep {
            victim,
            left: found,
        }
    }

    fn keep(&mut self, victim: u32, mut left: VecDeque<Seq>) -> Job {
        if self.reclaim.unanswered > 0 {
            return Job::Keep { victim, left };
        }
        // Keys first: a copy of a dead letter would remember its own for less.
        let keys = self.index.keys.standing_in(victim, RESTATE_MAX);
        if !keys.is_empty() {
            let moved = self.keys_moved;
            self.order_of_job(Task::Keys { keys, moved });
            return Job::Keep { victim, left };
        }
        if self.restate_names(victim) || self.restate_limits(victim) {
            return Job::Keep { victim, left };
        }
        let mut messages = Vec::new();
        for _ in 0..left.len().min(KEEP_MAX) {
            let Some(seq) = left.pop_front() else {
                break;
            };
            let slot = self.index.slots.get(seq);
            let Some(slot) = slot.filter(|slot| slot.root.segment() <= victim) else {
                continue;
            };
            if slot.flags.records() > 0 {
                // A record about it is on its way: its copy must not overtake it.
                left.push_back(seq);
                continue;
            }
            let more = self.index.more(seq, slot).copied();
            let mut tried = more.map(|more| more.tried).unwrap_or_default();
            tried.dead = slot.stand == Stand::Dead;
            messages.push(Keep {
                seq,
                flow: slot.flow(),
                due_at: more.and_then(|more| more.due_at),
                tried,
                root: slot.root,
                latest: more.map_or(Place::NONE, |more| more.latest),
                now: Place::NONE,
            });
        }
        if !messages.is_empty() {
            self.order_of_job(Task::Keep { messages });
        } else if left.is_empty() {
            let through = self.through;
            return Job::Wait { victim, through };
        }
        Job::Keep { victim, left }
    }

    fn order_of_job(&mut self, task: Task) {
        self.reclaim.unanswered += 1;
        self.order(task);
    }

    /// Names of flows that stand in old segments: those with messages are
    /// written again, the others when they get some.
    fn restate_names(&mut self, victim: u32) -> bool {
        let mut again = Vec::new();
        let mut under_way = false;
        for (index, flow) in self.index.flows.iter_mut().enumerate() {
            let Some(flow) = flow else {
                continue;
            };
            let id = FlowId(index as u32);
            if flow.named == Place::NONE || flow.named.segment() > victim {
                continue;
            }
            if self.opening.contains(&id) {
                under_way = true;
            } else if flow.live + flow.pending == 0 {
                flow.named = Place::NONE;
            } else if again.len() < RESTATE_MAX {
                again.push((id, Arc::clone(&flow.key)));
            }
        }
        let any = !again.is_empty();
        for (id, key) in again {
            self.open_flow(id, key);
        }
        any || under_way
    }

    fn restate_limits(&mut self, victim: u32) -> bool {
        let old = self.index.limits.iter();
        let old = old.filter(|(_, it)| it.place.segment() <= victim);
        let old = old.take(RESTATE_MAX).map(|(key, it)| Record::Reservation {
            key: Arc::new(key.clone()),
            saved: it.limit.saved.clone(),
            block: u32::try_from(it.limit.reserved_since).unwrap_or(u32::MAX),
        });
        let old: Vec<Record> = old.collect();
        let any = !old.is_empty();
        for record in old {
            self.order_of_job(Task::Append {
                no: None,
                record,
                context: Context::default(),
                place: Place::NONE,
            });
        }
        any
    }

    fn wait(&mut self, victim: u32, through: u64) -> Job {
        let is_empty = self
            .index
            .envelopes
            .get(&victim)
            .is_none_or(|live| *live == 0);
        if !is_empty {
            return Job::Scan {
                victim,
                from: Seq(0),
                found: VecDeque::new(),
            };
        }
        if self.record.applied() < through {
            return Job::Wait { victim, through };
        }
        self.reclaim.envelopes.pop_front();
        self.index.envelopes.remove(&victim);
        self.reclaim.leaving += 1;
        self.reclaim.chore(Chore::GiveUp(Kind::Envelope, victim));
        Job::None
    }

    fn scan_bodies(&mut self, victim: u32, from: Seq, mut found: BTreeSet<Place>) -> Job {
        let mut slots = self.index.slots.iter(from);
        for (_, slot) in slots.by_ref().take(SCAN_MAX) {
            if slot.body.segment() == victim {
                found.insert(slot.body);
            }
        }
        if let Some((from, _)) = slots.next() {
            return Job::ScanBodies {
                victim,
                from,
                found,
            };
        }
        let living = found.into_iter().collect();
        self.reclaim.chore(Chore::Rewrite(victim, living));
        Job::Rewriting
    }
}
