//! Changes over many flows, in slices.
//!
//! A policy change, a resume or a mass cancel may touch every flow there is. It
//! is put on a list and goes on in slices, so that no step is long and sends go
//! on meanwhile.

use super::Engine;
use super::action::{Hasten, Record};
use super::command::PauseId;
use super::flows::Withdrawn;
use crate::handle::{AccountId, FlowId};
use crate::message::{Seq, State};
use crate::name::Name;
use crate::policy::matcher::Match;
use crate::retry::dead_letter::LastError;
use crate::time::{Mono, Now, Wall};

/// Flows in one slice.
const SLICE: usize = 1_000;

/// A change on its way over the flows.
#[derive(Debug)]
pub(super) struct Sweep {
    work: Work,
    /// The next flow (or gate) to be visited.
    next: usize,
}

#[derive(Debug)]
enum Work {
    /// Limits are worked out anew.
    Relimit,
    /// Pauses are matched anew.
    Pauses,
    /// Gates are served again: sending was held.
    Gates,
    /// The store is asked for messages again: it failed.
    Pages,
    /// What matches is cancelled.
    Cancel { matches: Match, through: Seq },
    /// What matches and waits for its time is due now.
    Hasten { matches: Match, through: Seq },
    /// What matches goes to another pool.
    Move {
        matches: Match,
        pool: Name,
        through: Seq,
    },
}

impl Sweep {
    const fn of(work: Work) -> Self {
        Self { work, next: 0 }
    }

    pub const fn relimit() -> Self {
        Self::of(Work::Relimit)
    }

    /// Whether it works limits out and has not begun.
    pub fn is_fresh_relimit(&self) -> bool {
        matches!(self.work, Work::Relimit) && self.next == 0
    }

    pub const fn gates() -> Self {
        Self::of(Work::Gates)
    }

    pub const fn pages() -> Self {
        Self::of(Work::Pages)
    }

    pub const fn cancel(matches: Match, through: Seq) -> Self {
        Self::of(Work::Cancel { matches, through })
    }

    pub const fn hasten(matches: Match, through: Seq) -> Self {
        Self::of(Work::Hasten { matches, through })
    }

    pub const fn relocate(matches: Match, pool: Name, through: Seq) -> Self {
        Self::of(Work::Move {
            matches,
            pool,
            through,
        })
    }
}

/// A pause in force.
#[derive(Debug)]
pub(super) struct Pause {
    pub matches: Match,
    pub until: Option<Mono>,
}

impl Engine {
    /// Goes on with the first change on the list, one slice of it.
    pub(super) fn sweep(&mut self, now: &Now) {
        let Some(mut sweep) = self.sweeps.pop_front() else {
            return;
        };
        let end = match sweep.work {
            Work::Gates => self.counter.desk.lanes_end(),
            _ => self.counter.flows.end(),
        };
        let slice_end = end.min(sweep.next + SLICE);
        for index in sweep.next..slice_end {
            self.visit(now, &sweep.work, index);
        }
        sweep.next = slice_end;
        if sweep.next < end {
            self.sweeps.push_front(sweep);
        }
    }

    fn visit(&mut self, now: &Now, work: &Work, index: usize) {
        let id = FlowId(index as u32);
        match work {
            Work::Gates => {
                if let Some(lane) = self.counter.desk.lane_numbered(index) {
                    self.schedule.mark(lane.gate);
                }
            }
            Work::Relimit => {
                if self
                    .counter
                    .flows
                    .get(id)
                    .is_some_and(|flow| flow.lane.is_some())
                {
                    self.reattach(now, id);
                    self.offer(id);
                }
            }
            Work::Pauses => {
                self.review_pauses(id);
                self.offer(id);
            }
            Work::Pages => self.offer(id),
            Work::Cancel { matches, through } => self.cancel_flow(matches, id, *through),
            Work::Hasten { matches, through } => {
                if self.matches(matches, id) {
                    let which = Hasten::Through(*through);
                    self.counter.append(Record::Hastened { flow: id, which });
                }
            }
            Work::Move {
                matches,
                pool,
                through,
            } => {
                self.move_flow(now, matches, id, pool, *through);
            }
        }
    }

    pub(super) fn pause(&mut self, now: &Now, id: PauseId, matches: Match, until: Option<Wall>) {
        self.resume(id);
        let until = until.map(|wall| now.mono_at(wall));
        if let Some(at) = until {
            self.pause_ends.insert((at, id));
        }
        self.pauses.insert(id, Pause { matches, until });
        self.review_all_pauses();
    }

    pub(super) fn resume(&mut self, id: PauseId) {
        if let Some(pause) = self.pauses.remove(&id) {
            if let Some(at) = pause.until {
                self.pause_ends.remove(&(at, id));
            }
            self.review_all_pauses();
        }
    }

    fn review_all_pauses(&mut self) {
        let accounts: Vec<AccountId> = self.counter.desk.accounts().map(|(id, _)| id).collect();
        for id in accounts {
            self.review_account_pauses(id);
        }
        self.review_pair_pauses();
        self.sweeps.push_back(Sweep::of(Work::Pauses));
    }

    pub(super) fn review_account_pauses(&mut self, id: AccountId) {
        let Some(account) = self.counter.desk.account(id) else {
            return;
        };
        let facts = account.spec.facts();
        let paused = self
            .pauses
            .values()
            .any(|pause| pause.matches.matches_account(&facts));
        if paused != account.paused {
            self.counter.desk.set_paused(id, paused);
        }
    }

    /// Counts the pauses that match a flow, and parks it or lets it go.
    pub(super) fn review_pauses(&mut self, id: FlowId) {
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        let matching = self
            .pauses
            .values()
            .filter(|p| p.matches.matches_flow(&flow.key))
            .count();
        let before = std::mem::replace(&mut flow.pauses, matching as u32);
        if flow.lane.is_some() {
            match (before, matching) {
                (0, 1..) => self.schedule.park(id),
                (1.., 0) => self.schedule.unpark(id),
                _ => {}
            }
        }
        self.counter.flows.let_end(id);
    }

    /// Withdraws one message, unless it is on its way: it ends in `state`.
    pub(super) fn withdraw(
        &mut self,
        id: FlowId,
        seq: Seq,
        state: State,
        error: Option<Box<LastError>>,
    ) {
        let Some(flow) = self.counter.flows.get_mut(id) else {
            return;
        };
        let before = flow.heads.len();
        flow.heads.retain(|head| head.seq != seq);
        let was_held = flow.heads.len() < before;
        if was_held || !self.counter.permits.is_in_flight(id, seq) {
            if !was_held {
                flow.withdraw(Withdrawn::One(seq));
            }
            self.counter.append(Record::Settlement {
                flow: id,
                seq,
                state,
                account: None,
                error,
            });
        }
        if was_held {
            self.reconsider(id);
        }
    }

    fn cancel_flow(&mut self, matches: &Match, id: FlowId, through: Seq) {
        for seq in self.take_heads(matches, id, through).unwrap_or_default() {
            let state = State::Cancelled;
            self.counter.append(Record::Settlement {
                flow: id,
                seq,
                state,
                account: None,
                error: None,
            });
        }
        if self.matches(matches, id) {
            if let Some(flow) = self.counter.flows.get_mut(id) {
                flow.withdraw(Withdrawn::Cancelled { through });
            }
            self.counter.append(Record::Cancelled { flow: id, through });
            self.reconsider(id);
        }
    }

    /// Whether a message that the store handed over was withdrawn meanwhile;
    /// what was said of it is then written.
    pub(super) fn is_withdrawn(&mut self, id: FlowId, seq: Seq, said: &[Withdrawn]) -> bool {
        let said = said.iter().find(|said| match said {
            Withdrawn::One(one) => *one == seq,
            Withdrawn::Cancelled { through } | Withdrawn::Moved { through, .. } => seq <= *through,
        });
        match said {
            None => return false,
            Some(Withdrawn::One(_)) => {}
            Some(Withdrawn::Cancelled { .. }) => self.counter.append(Record::Settlement {
                flow: id,
                seq,
                state: State::Cancelled,
                account: None,
                error: None,
            }),
            Some(Withdrawn::Moved { to, .. }) => self.counter.append(Record::Moved {
                flow: id,
                to: *to,
                through: Seq(0),
                held: vec![seq],
            }),
        }
        true
    }

    fn move_flow(&mut self, now: &Now, matches: &Match, id: FlowId, pool: &Name, through: Seq) {
        let Some(mut key) = self.counter.flows.get(id).map(|flow| (*flow.key).clone()) else {
            return;
        };
        if !matches.matches_flow(&key) || key.pool == *pool {
            return;
        }
        key.pool = pool.clone();
        let mut actions = std::mem::take(&mut self.counter.actions);
        let to = self.open_flow(now, key, &mut actions);
        self.counter.actions = actions;
        let held = self.take_heads(matches, id, through).unwrap_or_default();
        if let Some(flow) = self.counter.flows.get_mut(id)
            && flow.withdraw(Withdrawn::Moved { to, through })
        {
            self.counter.hold_flow(to);
        }
        self.counter.append(Record::Moved {
            flow: id,
            to,
            through,
            held,
        });
        self.reconsider(id);
    }

    fn matches(&self, matches: &Match, id: FlowId) -> bool {
        self.counter
            .flows
            .get(id)
            .is_some_and(|flow| matches.matches_flow(&flow.key))
    }

    /// Takes the heads up to `through` out of a flow that matches.
    fn take_heads(&mut self, matches: &Match, id: FlowId, through: Seq) -> Option<Vec<Seq>> {
        let flow = self.counter.flows.get_mut(id)?;
        if !matches.matches_flow(&flow.key) {
            return None;
        }
        let taken = flow
            .heads
            .iter()
            .map(|head| head.seq)
            .filter(|&seq| seq <= through)
            .collect();
        flow.heads.retain(|head| head.seq > through);
        Some(taken)
    }
}
