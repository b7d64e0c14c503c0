//! Ledgers that break one promise each, and the case that speaks of it.

use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::time::{Mono, Now};
use outflow_ports::conformance::ledger::{self, Harness};
use outflow_ports::ledger::{Ledger, LedgerWork};

use super::conformance::Virtual;
use crate::memory::ledger::{LedgerLink, LinkFaults};

/// What a broken ledger makes of an answer.
type Flaw = fn(LeaseAnswer) -> LeaseAnswer;

struct Link(LedgerLink, Flaw);

impl Ledger for Link {
    fn submit(&mut self, now: &Now, work: LedgerWork) {
        self.0.submit(now, work);
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        self.0.complete(now, done);
        for event in done {
            if let Event::Granted { answer, .. } = event {
                *answer = (self.1)(*answer);
            }
        }
    }

    fn next_completion(&self) -> Mono {
        self.0.next_completion()
    }
}

struct Broken {
    inner: Virtual,
    flaw: Flaw,
    /// Whether a loss of state goes unnoticed: all limits are as new.
    forgets: bool,
}

impl Harness for Broken {
    type Link = Link;

    fn link(&mut self) -> Link {
        Link(self.inner.link(), self.flaw)
    }

    fn now(&self) -> Now {
        self.inner.now()
    }

    fn advance(&mut self, to: Mono) {
        self.inner.advance(to);
    }

    fn lose_state(&mut self) {
        if self.forgets {
            self.inner.forget_all();
        } else {
            self.inner.lose_state();
        }
    }
}

fn exercise(case: &str, flaw: Flaw, forgets: bool) {
    let make = || Broken {
        inner: Virtual::new(LinkFaults::default()),
        flaw,
        forgets,
    };
    assert!(ledger::exercise_one(case, make), "there is no such case");
}

fn live_longer(answer: LeaseAnswer) -> LeaseAnswer {
    match answer {
        LeaseAnswer::Leased {
            tokens,
            life,
            wait,
            spacing,
            receipt,
            owed,
        } => LeaseAnswer::Leased {
            tokens,
            life: life.times(4),
            wait,
            spacing,
            receipt,
            owed,
        },
        other => other,
    }
}

fn grant_more(answer: LeaseAnswer) -> LeaseAnswer {
    match answer {
        LeaseAnswer::Leased {
            tokens,
            life,
            wait,
            spacing,
            receipt,
            owed,
        } => LeaseAnswer::Leased {
            tokens: tokens + 1,
            life,
            wait,
            spacing,
            receipt,
            owed,
        },
        other => other,
    }
}

#[test]
#[should_panic(expected = "is exceeded")]
fn an_unpaid_life_is_found_out() {
    exercise("buckets hold for all", live_longer, false);
}

#[test]
#[should_panic(expected = "is exceeded")]
fn overlapping_runs_are_found_out() {
    exercise("spaced tokens are spaced for all", live_longer, false);
}

#[test]
#[should_panic(expected = "is exceeded")]
fn an_undebited_token_is_found_out() {
    exercise("windows hold for all", grant_more, false);
}

#[test]
#[should_panic(expected = "a loss is worth a burst")]
fn an_unnoticed_loss_is_found_out() {
    exercise("lost state is no fresh burst", |answer| answer, true);
}
