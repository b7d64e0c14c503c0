//! What would be on a disk or in the node, in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outflow_core::account::AccountSpec;
use outflow_core::engine::command::{PauseId, Tune};
use outflow_core::engine::explain::Explanation;
use outflow_core::engine::standing::Standing;
use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::scope::Scope;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::suppression::Reason;
use outflow_core::tally::{Counter, Teller, Window};
use outflow_core::time::Wall;
use outflow_ports::control::{Bulk, Control, Touched};
use outflow_ports::intake::Then;
use outflow_ports::query::{
    Depth, Filter, LaneView, LimitView, LiveMessage, Page, Query, TallyView,
};
use outflow_ports::receipts::{
    CauseCount, Happening, Receipt, ReceiptFilter, Receipts, ReceiptsError,
};
use outflow_ports::registry::Audit;
use outflow_ports::suppression::{
    PAGE_MAX, Placed, Put, Suppression, SuppressionChange, SuppressionError, SuppressionFilter,
    SuppressionKey, Suppressions,
};

/// The list of a disk.
#[derive(Default)]
pub struct Disk {
    pub entries: Mutex<BTreeMap<SuppressionKey, Suppression>>,
    pub audits: Mutex<Vec<String>>,
    /// Nothing can be written while this is so.
    pub fails: AtomicBool,
}

impl Disk {
    fn may_write(&self) -> Result<(), SuppressionError> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(SuppressionError::Storage("no room".to_owned())),
            false => Ok(()),
        }
    }
}

fn is_meant(filter: &SuppressionFilter, entry: &Suppression) -> bool {
    let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|it| it == has);
    is(&filter.tenant, &entry.tenant)
        && is(&filter.recipient, &entry.recipient)
        && is(&filter.destination, &entry.destination)
        && filter.reason.is_none_or(|it| it == entry.reason)
        && filter.is_held.is_none_or(|it| it == entry.is_held)
        && filter.since.is_none_or(|it| entry.since >= it)
        && filter.until.is_none_or(|it| entry.since < it)
        && (!filter.is_learnt || entry.is_learnt())
}

impl Suppressions for Disk {
    fn put(
        &self,
        entries: &[Suppression],
        audit: Option<Audit<'_>>,
    ) -> Result<Put, SuppressionError> {
        self.may_write()?;
        let mut kept = self.entries.lock().expect("one at a time");
        let mut put = Put::default();
        for entry in entries {
            put.push(match kept.get_mut(&entry.key()) {
                Some(known) if !known.is_held => Placed::Known,
                Some(_) if entry.is_held || entry.is_learnt() => Placed::Held,
                Some(known) => {
                    known.is_held = false;
                    Placed::Approved
                }
                None => {
                    kept.insert(entry.key(), entry.clone());
                    Placed::New
                }
            });
        }
        if let Some(audit) = audit {
            let line = format!("{} {} {}", audit.action, audit.target, audit.detail);
            self.audits.lock().expect("one at a time").push(line);
        }
        Ok(put)
    }

    fn change(
        &self,
        filter: &SuppressionFilter,
        change: SuppressionChange,
    ) -> Result<Vec<(SuppressionKey, Wall)>, SuppressionError> {
        self.may_write()?;
        let mut kept = self.entries.lock().expect("one at a time");
        let meant = kept.values().filter(|entry| is_meant(filter, entry));
        let meant = meant.filter(|entry| match change {
            SuppressionChange::Remove => true,
            SuppressionChange::Hold => !entry.is_held,
            SuppressionChange::Approve => entry.is_held,
        });
        let meant: Vec<_> = meant
            .map(|entry| (entry.key(), entry.since))
            .take(PAGE_MAX)
            .collect();
        for (key, _) in &meant {
            if change == SuppressionChange::Remove {
                kept.remove(key);
            } else if let Some(entry) = kept.get_mut(key) {
                entry.is_held = change == SuppressionChange::Hold;
            }
        }
        Ok(meant)
    }

    fn list(
        &self,
        filter: &SuppressionFilter,
        after: Option<&SuppressionKey>,
        max: usize,
    ) -> Result<Vec<Suppression>, SuppressionError> {
        let kept = self.entries.lock().expect("one at a time");
        let found = kept
            .iter()
            .filter(|(key, entry)| after.is_none_or(|it| *key > it) && is_meant(filter, entry));
        Ok(found.map(|(_, entry)| entry.clone()).take(max).collect())
    }

    fn count(&self, filter: &SuppressionFilter) -> Result<u64, SuppressionError> {
        Ok(self.list(filter, None, usize::MAX)?.len() as u64)
    }

    fn load(&self, each: &mut dyn FnMut(&str, &str, Reason, Wall)) -> Result<(), SuppressionError> {
        for entry in self.list(&SuppressionFilter::default(), None, usize::MAX)? {
            if !entry.is_held {
                each(&entry.tenant, &entry.recipient, entry.reason, entry.since);
            }
        }
        Ok(())
    }
}

/// Receipts, and how many were shown.
#[derive(Default)]
pub struct Papers(pub Mutex<BTreeMap<Seq, Receipt>>, pub AtomicU64);

impl Receipts for Papers {
    fn get(&self, seq: Seq) -> Result<Option<Receipt>, ReceiptsError> {
        Ok(self.0.lock().expect("one at a time").get(&seq).cloned())
    }

    fn list(
        &self,
        _: &ReceiptFilter,
        before: Option<Seq>,
        max: usize,
    ) -> Result<Vec<Receipt>, ReceiptsError> {
        let papers = self.0.lock().expect("one at a time");
        let found = papers.values().rev();
        let found = found.filter(|it| before.is_none_or(|before| it.seq < before));
        let found: Vec<Receipt> = found.take(max).cloned().collect();
        self.1.fetch_add(found.len() as u64, Ordering::SeqCst);
        Ok(found)
    }

    fn events(&self, _: Seq) -> Result<Vec<Happening>, ReceiptsError> {
        Ok(Vec::new())
    }

    fn count(&self, _: &ReceiptFilter) -> Result<u64, ReceiptsError> {
        Ok(0)
    }

    fn causes(&self, _: &ReceiptFilter) -> Result<Vec<CauseCount>, ReceiptsError> {
        Ok(Vec::new())
    }
}

/// A node that counts what it is told, and says that it sent so many.
#[derive(Default)]
pub struct Node {
    pub heard: Mutex<Vec<Counter>>,
    /// Who told it.
    pub tellers: Mutex<Vec<Teller>>,
    pub feedback: Mutex<Vec<(Seq, Reply)>>,
    /// Attempts of the last quarter of an hour, attempts and bounces of the day.
    pub counts: Mutex<(u64, u64, u64)>,
    /// How often it was asked for them.
    pub asked: AtomicU64,
    /// Whether it does not answer.
    pub is_silent: AtomicBool,
}

impl Query for Node {
    fn message(&self, _: Seq, then: Then<Option<LiveMessage>>) {
        then(None);
    }

    fn explain(&self, _: Seq, then: Then<Option<(LiveMessage, Explanation)>>) {
        then(None);
    }

    fn messages(&self, _: Filter, _: Seq, _: usize, then: Then<Page<LiveMessage>>) {
        let items = Vec::new();
        then(Page { items, next: None });
    }

    fn lanes(&self, then: Then<Vec<LaneView>>) {
        then(Vec::new());
    }

    fn standings(&self, then: Then<Vec<Standing>>) {
        then(Vec::new());
    }

    fn limits(&self, then: Then<Vec<LimitView>>) {
        then(Vec::new());
    }

    fn tallies(&self, then: Then<Vec<TallyView>>) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.is_silent.load(Ordering::SeqCst) {
            return;
        }
        let (late, attempts, bounced) = *self.counts.lock().expect("one at a time");
        let mut counts = [[0; Counter::ALL.len()]; Window::ALL.len()];
        counts[Window::QuarterHour as usize][Counter::Attempts as usize] = late;
        counts[Window::Day as usize][Counter::Attempts as usize] = attempts;
        counts[Window::Day as usize][Counter::Bounced as usize] = bounced;
        let key = Arc::new(LimitKey::of(Scope::Isp, Name::from("google")));
        then(vec![TallyView { key, counts }]);
    }

    fn depth(&self, then: Then<Depth>) {
        then(Depth::default());
    }

    fn flows_of(&self, _: Name, then: Then<(u64, u64)>) {
        then((3, 7));
    }
}

impl Control for Node {
    fn set_policies(&self, _: Policies) {}
    fn set_account(&self, _: AccountSpec) {}
    fn remove_account(&self, _: Name) {}
    fn pause(&self, _: PauseId, _: Match, _: Option<Wall>) {}
    fn resume(&self, _: PauseId) {}

    fn cancel(&self, _: Seq, then: Then<Touched>) {
        then(Touched::Unknown);
    }

    fn retry(&self, _: Seq, then: Then<Touched>) {
        then(Touched::Unknown);
    }

    fn bulk(&self, _: Bulk, _: Match, _: bool, then: Then<u64>) {
        then(0);
    }

    fn heard(&self, _: FlowKey, _: Option<Name>, counter: Counter, teller: Teller) {
        self.heard.lock().expect("one at a time").push(counter);
        self.tellers.lock().expect("one at a time").push(teller);
    }

    fn feedback(&self, _: FlowKey, seq: Seq, reply: Reply) {
        self.feedback
            .lock()
            .expect("one at a time")
            .push((seq, reply));
    }

    fn tune(&self, _: LimitKey, _: Tune) {}

    fn forget(&self, _: Vec<Seq>) {}
}
