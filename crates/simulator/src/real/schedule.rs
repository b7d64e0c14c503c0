//! Who works when: each part of a store is due at a time of its own.

use outflow_core::entropy::Entropy;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Nanos};
use outflow_ports::store::Store;
use outflow_store_embedded::EmbeddedStore;
use outflow_store_embedded::disk::simulated::Mood;
use outflow_store_embedded::stepped::{
    ClerkPart, FAILED_PAUSE, KeeperPart, Parts, RecordPart, WriterPart,
};

use super::faults::Faults;

/// How soon a part works that has something to do, at most and mostly.
const SOON: Nanos = Nanos::from_millis(5);
/// How long it may take if the machine is busy.
const LATER: Nanos = Nanos::from_secs(3);
/// Of a thousand times, so often the machine is busy.
const BUSY_PERMILLE: u32 = 50;
/// How often the keeper looks around while something waits for its time.
const ROUND: Nanos = Nanos::from_secs(2);
/// How long the record waits if it has to.
const RECORD_WAITS: Nanos = Nanos::from_secs(20);
/// How often the record looks what has run out.
const SWEEP_EVERY: Nanos = Nanos::from_secs(3_600);
/// Operations of the disk between which others may work.
const BETWEEN_STEPS: u64 = 8;
/// Steps in one turn of the node: the others are still due then.
const STEPS_MAX: usize = 64;
/// Rounds in which everything is written at the end.
const LAST_ROUNDS: usize = 1_000;

/// When each part works next.
#[derive(Clone, Copy, Debug)]
struct Times {
    writer: Mono,
    /// After a commit that failed the writer rests until then.
    rests_until: Mono,
    /// When the first order of the next group came; further ones join it only
    /// within this moment.
    ordered_at: Option<Mono>,
    keeper: Mono,
    clerk: Mono,
    record: Mono,
    sweep: Mono,
}

/// A store whose process runs.
pub(super) struct Running {
    pub store: EmbeddedStore,
    writer: WriterPart,
    keeper: KeeperPart,
    clerk: ClerkPart,
    record: RecordPart,
    times: Times,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Writer,
    Keeper,
    Clerk,
    Record,
}

fn soon(now: Mono, entropy: &mut Entropy) -> Mono {
    let most = match Faults::strikes(BUSY_PERMILLE, entropy) {
        true => LATER,
        false => SOON,
    };
    now + Nanos(entropy.between(1, most.0))
}

impl Running {
    pub fn new(store: EmbeddedStore, parts: Parts, now: Mono) -> Self {
        Self {
            store,
            writer: parts.writer,
            keeper: parts.keeper,
            clerk: parts.clerk,
            record: parts.record,
            times: Times {
                writer: Mono::NEVER,
                rests_until: Mono(0),
                ordered_at: None,
                keeper: Mono::NEVER,
                clerk: Mono::NEVER,
                record: Mono::NEVER,
                sweep: now + SWEEP_EVERY,
            },
        }
    }

    /// When something is to be done next.
    pub fn next(&self) -> Mono {
        let times = &self.times;
        let parts = [times.writer, times.keeper, times.clerk, times.record];
        let parts = parts.into_iter().min().unwrap_or(Mono::NEVER);
        parts.min(times.sweep).min(self.store.next_completion())
    }

    /// Looks who has something to do, and decides when. The messages that the
    /// store says are done with.
    pub fn plan(&mut self, now: Mono, faults: &Faults, entropy: &mut Entropy) -> Vec<(Seq, State)> {
        let times = &mut self.times;
        if times.writer == Mono::NEVER && self.store.is_busy() {
            let begins = now.max(times.rests_until);
            times.writer = begins + faults.commit_time(entropy);
            // Half of the groups are what came at once, the others what came by
            // the time they are written.
            times.ordered_at = (entropy.between(0, 1) == 0).then_some(now);
        }
        if times.ordered_at.is_some_and(|at| at < now) {
            times.ordered_at = None;
            self.writer.gather();
        }
        if times.keeper == Mono::NEVER {
            if self.keeper.take() {
                times.keeper = soon(now, entropy);
            } else if self.keeper.is_waiting() {
                times.keeper = now + ROUND;
            }
        } else if times.keeper > now + SOON && self.keeper.take() {
            times.keeper = times.keeper.min(soon(now, entropy));
        }
        let ends = self.clerk.take();
        if times.clerk == Mono::NEVER && self.clerk.is_busy() {
            times.clerk = soon(now, entropy);
        }
        if times.record == Mono::NEVER {
            let due = self.record.next_batch();
            let waits = due != Mono::NEVER && Faults::strikes(faults.record_permille, entropy);
            times.record = if waits { due + RECORD_WAITS } else { due };
        }
        ends
    }

    /// Does what is due, in any order.
    pub fn advance(&mut self, now: Mono, faults: &Faults, mood: &Mood, entropy: &mut Entropy) {
        for _ in 0..STEPS_MAX {
            let times = &self.times;
            let due = [
                (Part::Writer, times.writer),
                (Part::Keeper, times.keeper),
                (Part::Clerk, times.clerk),
                (Part::Record, times.record.min(times.sweep)),
            ];
            let mut due = due.into_iter().filter(|(_, at)| *at <= now);
            let count = due.clone().count() as u64;
            if count == 0 {
                break;
            }
            let chosen = entropy.between(0, count - 1) as usize;
            let Some((part, _)) = due.nth(chosen) else {
                break;
            };
            match part {
                Part::Writer => self.commit(now, faults, mood, entropy),
                Part::Keeper => self.tidy(mood, entropy),
                Part::Clerk => {
                    self.clerk.step();
                    self.times.clerk = Mono::NEVER;
                    if self.clerk.is_busy() {
                        self.times.clerk = now + Nanos::from_millis(1);
                    }
                }
                Part::Record => {
                    self.record.step();
                    self.times.record = Mono::NEVER;
                    self.times.sweep = now + SWEEP_EVERY;
                }
            }
        }
    }

    /// The writer commits; the keeper may work in the middle of it.
    fn commit(&mut self, now: Mono, faults: &Faults, mood: &Mood, entropy: &mut Entropy) {
        self.times.ordered_at = None;
        self.times.writer = Mono::NEVER;
        let (keeper, steps) = (self.keeper.clone(), entropy.between(1, BETWEEN_STEPS));
        mood.between(steps, move || keeper.step());
        self.writer.gather();
        let took = self.writer.commit();
        mood.nothing_between();
        if !took {
            self.times.rests_until = now + FAILED_PAUSE;
        }
        // What came meanwhile is the next group.
        if self.writer.gather() {
            let begins = now.max(self.times.rests_until);
            self.times.writer = begins + faults.commit_time(entropy);
        }
    }

    /// The keeper works; the writer may commit in the middle of it.
    fn tidy(&mut self, mood: &Mood, entropy: &mut Entropy) {
        self.times.keeper = Mono::NEVER;
        let (writer, steps) = (self.writer.clone(), entropy.between(1, BETWEEN_STEPS));
        mood.between(steps, move || {
            writer.commit();
        });
        self.keeper.step();
        mood.nothing_between();
    }

    /// Everything at once, as far as it gets before the process dies.
    pub fn hurry(&mut self, entropy: &mut Entropy) {
        if entropy.between(0, 1) == 0 {
            self.keeper.step();
        }
        self.writer.gather();
        self.writer.commit();
        self.keeper.step();
    }

    /// Writes everything that was handed over.
    pub fn finish(&mut self) {
        for _ in 0..LAST_ROUNDS {
            if !self.writer.gather() {
                break;
            }
            self.writer.commit();
        }
        for _ in 0..LAST_ROUNDS {
            if !self.clerk.is_busy() {
                break;
            }
            self.clerk.step();
        }
    }
}
