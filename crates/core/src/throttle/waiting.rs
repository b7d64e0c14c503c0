//! How those who wait are served.

use super::Throttle;
use super::entry::Hold;
use super::line::Rank;
use super::parts::Parts;
use super::request::{Outcome, Owner, Refusal, Ticket, Verdict, Why};
use crate::class::Class;
use crate::time::{Mono, Nanos, Now};

/// Waiters that are looked at in one go; the rest has its turn at once after.
const SERVED_AT_ONCE: usize = 256;

/// Somebody who waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// Its place in every line. One who was passed often stands with the most
    /// urgent, whatever its class.
    pub rank: Rank,
    pub class: Class,
    pub deadline: Mono,
    /// For how long slots are held, and whose they are.
    pub held: (Nanos, Owner),
    pub parts: Parts,
    /// Whether it only waits for what a ledger says, and not for tokens.
    pub is_prompt: bool,
    pub since: Mono,
    /// The limit at which it stands.
    pub at: u32,
}

impl Throttle {
    /// Puts a waiter into the line of the limit that holds it.
    pub(super) fn queue(&mut self, waiter: Waiter, hold: Hold) -> Ticket {
        let (index, generation) = self.waiters.insert(waiter);
        self.waiting.force(&waiter.held.1, 1);
        self.deadlines.insert((waiter.deadline, index));
        self.stand(index, waiter.at, hold);
        Ticket { index, generation }
    }

    fn stand(&mut self, who: u32, at: u32, hold: Hold) {
        let Some(waiter) = self.waiters.get_mut(who) else {
            return;
        };
        waiter.at = at;
        let (rank, cost) = (waiter.rank, waiter.parts.of(at).map_or(0, |part| part.cost));
        let Some(entry) = self.entries.get_mut(at) else {
            return;
        };
        let line = entry.line_mut();
        line.unbook(rank);
        line.join(rank, who, cost);
        if line.head().is_some_and(|(head, _)| head == rank) {
            self.set_timer(at, hold.at);
        }
    }

    /// Takes a waiter out of the line it stands in; its bookings stay.
    fn step_out(&mut self, who: u32) {
        let Some(waiter) = self.waiters.get(who) else {
            return;
        };
        let cost = waiter.parts.of(waiter.at).map_or(0, |part| part.cost);
        if let Some(entry) = self.entries.get_mut(waiter.at) {
            entry.line_mut().leave(waiter.rank, cost);
            entry.tidy_line();
        }
    }

    /// Takes a waiter away altogether. The limits where something was kept for
    /// it are looked at again.
    fn remove(&mut self, now: &Now, who: u32) -> Option<(Ticket, Waiter)> {
        self.step_out(who);
        let generation = self.waiters.generation(who);
        let waiter = self.waiters.remove(who)?;
        self.waiting.give_back(&waiter.held.1, 1);
        self.deadlines.remove(&(waiter.deadline, who));
        for part in waiter.parts.iter() {
            let Some(entry) = self.entries.get_mut(part.entry) else {
                continue;
            };
            let was_booked = entry.line().is_some() && entry.line_mut().unbook(waiter.rank);
            entry.tidy_line();
            if (was_booked || part.entry == waiter.at) && entry.line().is_some() {
                self.set_timer(part.entry, now.mono);
            }
        }
        let ticket = Ticket {
            index: who,
            generation,
        };
        Some((ticket, waiter))
    }

    /// Serves those who stand at a limit as far as it goes.
    pub(super) fn serve(&mut self, now: &Now, id: u32, outcomes: &mut Vec<Outcome>) {
        self.apply_pause(now, id);
        for _ in 0..SERVED_AT_ONCE {
            let Some(entry) = self.entries.get(id) else {
                return;
            };
            let Some((rank, who)) = entry.line().and_then(|line| line.head()) else {
                self.set_timer(id, Mono::NEVER);
                return;
            };
            let Some(waiter) = self.waiters.get(who).copied() else {
                return;
            };
            match self.hold(now, rank, waiter.class, &waiter.parts) {
                None => self.grant(now, who, &waiter, outcomes),
                Some((part, hold)) if part.entry == id => {
                    self.set_timer(id, hold.at);
                    return;
                }
                Some((part, hold)) => self.move_on(now, who, &waiter, part.entry, hold),
            }
        }
        self.set_timer(id, now.mono);
    }

    fn grant(&mut self, now: &Now, who: u32, waiter: &Waiter, outcomes: &mut Vec<Outcome>) {
        // First, so that what is kept for it is not in its own way.
        let Some((ticket, _)) = self.remove(now, who) else {
            return;
        };
        let permit = self.take(now, waiter.class, &waiter.parts, waiter.held);
        self.note_waited(now, waiter.at, waiter.since);
        let verdict = Verdict::Granted(permit);
        outcomes.push(Outcome { ticket, verdict });
        self.note_passed(now, waiter.rank.class, &waiter.parts);
    }

    /// Another limit holds a waiter longer than the one at which it stands.
    fn move_on(&mut self, now: &Now, who: u32, waiter: &Waiter, to: u32, hold: Hold) {
        let (from, rank) = (waiter.at, waiter.rank);
        self.step_out(who);
        let cost = waiter.parts.of(from).map_or(0, |part| part.cost);
        if let Some(entry) = self.entries.get_mut(from)
            && entry.has_room(now, rank, waiter.class, cost)
        {
            entry.line_mut().book(rank, cost);
        }
        self.stand(who, to, hold);
        if self.settings.leased {
            // Nobody may have asked there since it was last refused, and what is
            // kept here must still be good when there is enough.
            self.feed(now, to);
            self.feed(now, from);
        }
    }

    /// Somebody of `class` got these limits. Those of a lower class who were
    /// passed too often stand first from now on.
    pub(super) fn note_passed(&mut self, now: &Now, class: Class, parts: &Parts) {
        for part in parts.iter() {
            let Some(entry) = self.entries.get_mut(part.entry) else {
                continue;
            };
            if entry.line().is_none() {
                continue;
            }
            let Some((_, who)) = entry.line_mut().passed(class) else {
                continue;
            };
            self.promote(now, who, part.entry);
        }
    }

    fn promote(&mut self, now: &Now, who: u32, at: u32) {
        let Some(waiter) = self.waiters.get(who).copied() else {
            return;
        };
        self.step_out(who);
        for part in waiter.parts.iter() {
            if let Some(entry) = self.entries.get_mut(part.entry)
                && entry.line().is_some()
            {
                entry.line_mut().unbook(waiter.rank);
                entry.tidy_line();
            }
        }
        if let Some(waiter) = self.waiters.get_mut(who) {
            waiter.rank.class = Class::Critical;
            if self.settings.leased {
                // It spends what was leased for those whom it goes before: until
                // it had leased its own, they would all stand still behind it.
                waiter.class = Class::Critical;
            }
        }
        let hold = Hold {
            at: now.mono,
            back_at: now.mono,
        };
        self.stand(who, at, hold);
    }

    /// The time of a waiter is over.
    pub(super) fn give_up(&mut self, now: &Now, who: u32, outcomes: &mut Vec<Outcome>) {
        let held = self
            .waiters
            .get(who)
            .and_then(|waiter| self.hold(now, waiter.rank, waiter.class, &waiter.parts));
        let Some((ticket, waiter)) = self.remove(now, who) else {
            return;
        };
        let Some((part, hold)) = held else {
            // Nothing holds it any more: it is granted in the last moment.
            let permit = self.take(now, waiter.class, &waiter.parts, waiter.held);
            let verdict = Verdict::Granted(permit);
            outcomes.push(Outcome { ticket, verdict });
            return;
        };
        let verdict = Verdict::Refused(Refusal {
            by: usize::from(part.want),
            why: Why::Limited,
            retry_after: Some(hold.back_at.since(now.mono)),
        });
        outcomes.push(Outcome { ticket, verdict });
    }

    /// Somebody who waits has gone. Whether they still waited.
    pub fn cancel(&mut self, now: &Now, ticket: Ticket) -> bool {
        self.waiters.is(ticket.index, ticket.generation) && self.remove(now, ticket.index).is_some()
    }

    /// Sets when those who wait at a limit are looked at next.
    pub(super) fn set_timer(&mut self, id: u32, at: Mono) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.line_at = at;
            self.arm(id);
        }
    }

    /// Sets the timer of a limit to the earliest of what it waits for.
    pub(super) fn arm(&mut self, id: u32) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let at = entry.line_at.min(entry.feed_at);
        if entry.timer == at {
            return;
        }
        if entry.timer != Mono::NEVER {
            self.timers.remove(&(entry.timer, id));
        }
        entry.timer = at;
        if at != Mono::NEVER {
            self.timers.insert((at, id));
        }
    }
}
