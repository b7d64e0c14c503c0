//! Stores that break one promise each, and the case that speaks of it.

use std::sync::Arc;

use outflow_core::engine::SavedLimit;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Head, Seq};
use outflow_core::time::{Mono, Now, Wall};
use outflow_ports::conformance::store;
use outflow_ports::intake::Given;
use outflow_ports::parcel::ParcelRef;
use outflow_ports::store::{Found, Recovered, Store, StoreDone, StoreWork};

use super::conformance::{Virtual, Wraps};
use crate::memory::store::{Faults, MemoryStore, Settings};

/// What a broken store does, on its way in and out.
trait Flaw: Default {
    fn submit(
        &mut self,
        work: StoreWork,
        early: &mut Vec<StoreDone>,
        inner: &MemoryStore,
    ) -> Option<StoreWork> {
        let _ = (early, inner);
        Some(work)
    }

    fn complete(&mut self, done: &mut Vec<StoreDone>) {
        let _ = done;
    }

    fn recover(recovered: Recovered) -> Recovered {
        recovered
    }
}

struct Broken<F> {
    inner: MemoryStore,
    flaw: F,
    early: Vec<StoreDone>,
}

impl<F: Flaw> Wraps for Broken<F> {
    fn wrap(inner: MemoryStore) -> Self {
        Self {
            inner,
            flaw: F::default(),
            early: Vec::new(),
        }
    }

    fn inner(&mut self) -> &mut MemoryStore {
        &mut self.inner
    }

    fn unwrap(self) -> MemoryStore {
        self.inner
    }
}

impl<F: Flaw> Store for Broken<F> {
    fn recover(&mut self, now: &Now) -> Recovered {
        F::recover(self.inner.recover(now))
    }

    fn submit(&mut self, now: &Now, work: StoreWork) {
        if let Some(work) = self.flaw.submit(work, &mut self.early, &self.inner) {
            self.inner.submit(now, work);
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<StoreDone>) {
        done.append(&mut self.early);
        let mut said = Vec::new();
        self.inner.complete(now, &mut said);
        self.flaw.complete(&mut said);
        done.append(&mut said);
    }

    fn next_completion(&self) -> Mono {
        self.inner.next_completion()
    }

    fn last_seq(&self) -> Seq {
        self.inner.last_seq()
    }

    fn ahead(&self, flow: FlowId, seq: Seq) -> Option<u64> {
        self.inner.ahead(flow, seq)
    }

    fn parcel(&self, seq: Seq) -> Option<ParcelRef> {
        self.inner.parcel(seq)
    }

    fn find(&self, seq: Seq) -> Option<Found> {
        self.inner.find(seq)
    }

    fn flow_key(&self, flow: FlowId) -> Option<&Arc<FlowKey>> {
        self.inner.flow_key(flow)
    }

    fn scan(&self, from: Seq, looks: usize, found: &mut dyn FnMut(Found)) -> Option<Seq> {
        self.inner.scan(from, looks, found)
    }

    fn deferred(&self, found: &mut dyn FnMut(FlowId, u64)) {
        self.inner.deferred(found);
    }
}

fn exercise<F: Flaw>(case: &str) {
    let make = || Virtual::<Broken<F>>::new(Settings::default(), Faults::default());
    assert!(store::exercise_one(case, make), "there is no such case");
}

/// Acknowledges messages when they are handed over.
#[derive(Default)]
struct Eager;

impl Flaw for Eager {
    fn submit(
        &mut self,
        work: StoreWork,
        early: &mut Vec<StoreDone>,
        inner: &MemoryStore,
    ) -> Option<StoreWork> {
        if let StoreWork::Accept { batch, messages } = &work {
            let first = inner.last_seq().0 + 1;
            let given = (first..).take(messages.len()).map(|seq| Given {
                seq: Seq(seq),
                accepted_at: Wall(0),
                known: false,
            });
            let given = given.collect();
            early.push(StoreDone::Accepted {
                batch: *batch,
                given,
            });
        }
        Some(work)
    }

    fn complete(&mut self, done: &mut Vec<StoreDone>) {
        done.retain(|done| !matches!(done, StoreDone::Accepted { .. }));
    }
}

#[test]
#[should_panic(expected = "an acknowledged message is lost in a crash")]
fn acknowledging_too_early_is_found_out() {
    exercise::<Eager>("a crash at every point");
}

/// Confirms records when they are handed over.
#[derive(Default)]
struct Hasty;

impl Flaw for Hasty {
    fn submit(
        &mut self,
        work: StoreWork,
        early: &mut Vec<StoreDone>,
        _: &MemoryStore,
    ) -> Option<StoreWork> {
        if let StoreWork::Append { no, .. } = &work {
            early.push(StoreDone::Event(Event::Committed { through: *no }));
        }
        Some(work)
    }

    fn complete(&mut self, done: &mut Vec<StoreDone>) {
        done.retain(|done| !matches!(done, StoreDone::Event(Event::Committed { .. })));
    }
}

#[test]
#[should_panic(expected = "a settled message comes back after a crash")]
fn confirming_too_early_is_found_out() {
    exercise::<Hasty>("a crash at every point");
}

/// Hands the first message of a page out again, as the last of the next.
#[derive(Default)]
struct Twice(Option<Head>);

impl Flaw for Twice {
    fn complete(&mut self, done: &mut Vec<StoreDone>) {
        for done in done {
            if let StoreDone::Event(Event::Paged { heads, .. }) = done {
                let again = self.0.take();
                self.0 = heads.first().copied();
                if let (Some(last), Some(again)) = (heads.last_mut(), again) {
                    *last = again;
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "each message once")]
fn handing_out_twice_is_found_out() {
    exercise::<Twice>("pages are in order");
}

/// Loses settlements of messages and says they are durable.
#[derive(Default)]
struct Forgetful(Vec<AppendNo>);

impl Flaw for Forgetful {
    fn submit(
        &mut self,
        work: StoreWork,
        _: &mut Vec<StoreDone>,
        _: &MemoryStore,
    ) -> Option<StoreWork> {
        match work {
            StoreWork::Append {
                no,
                record: Record::Settlement { .. },
            } => {
                self.0.push(no);
                None
            }
            work => Some(work),
        }
    }

    fn complete(&mut self, done: &mut Vec<StoreDone>) {
        let committed = self.0.drain(..).map(|through| Event::Committed { through });
        done.extend(committed.map(StoreDone::Event));
    }
}

#[test]
#[should_panic(expected = "only the living count")]
fn a_lost_settlement_is_found_out() {
    exercise::<Forgetful>("a settlement is for good");
}

/// Reports a failed commit for the first lost record only.
#[derive(Default)]
struct Terse(AppendNo);

impl Flaw for Terse {
    fn complete(&mut self, done: &mut Vec<StoreDone>) {
        for done in done {
            match done {
                StoreDone::Event(Event::CommitFailed { through }) => through.0 = self.0.0 + 1,
                StoreDone::Event(Event::Committed { through }) => self.0 = *through,
                _ => {}
            }
        }
    }
}

#[test]
#[should_panic(expected = "waited in vain for a failed commit")]
fn a_half_told_failure_is_found_out() {
    exercise::<Terse>("a failed commit tells all");
}

/// Forgets the last block of every reservation.
#[derive(Default)]
struct Generous;

impl Flaw for Generous {
    fn recover(mut recovered: Recovered) -> Recovered {
        for SavedLimit {
            saved,
            reserved_since,
        } in recovered.limits.values_mut()
        {
            *reserved_since = 0;
            saved.unspent = 0;
        }
        recovered
    }
}

#[test]
#[should_panic(expected = "a restart sends faster")]
fn a_forgotten_reservation_is_found_out() {
    exercise::<Generous>("a restart never sends faster");
}
