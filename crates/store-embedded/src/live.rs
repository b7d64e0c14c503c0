//! Receipts, and what happened so far to messages that have none yet.
//!
//! Where a live message stands is known to the store's own thread only. Who
//! asks leaves a question there, is answered at the next turn, and reads from
//! the journal by itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use outflow_core::message::Seq;
use outflow_ports::receipts::{
    CauseCount, Happening, Receipt, ReceiptFilter, Receipts, ReceiptsError,
};

use crate::journal::place::Place;
use crate::library::Library;
use crate::open::Wake;
use crate::record::Record;
use crate::store::EmbeddedStore;
use crate::timeline;

/// How long a question waits for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often, and after how long, a receipt is looked for that is being made.
const LOOKS_MAX: u32 = 500;
const LOOK: Duration = Duration::from_millis(1);
/// Questions that may wait at once.
const ASKS_MAX: usize = 10_000;
/// Questions answered in one turn.
const ANSWERS_MAX: usize = 256;

type Where = Option<(Place, Place)>;

/// Questions to the store's thread.
pub(crate) struct Asks {
    waiting: Mutex<Vec<(Seq, Sender<Where>)>>,
    any: AtomicBool,
    wake: Wake,
}

impl Asks {
    pub fn new(wake: Wake) -> Self {
        Self {
            waiting: Mutex::default(),
            any: AtomicBool::new(false),
            wake,
        }
    }

    /// Where the entry and the last deferral of a live message stand.
    fn ask(&self, seq: Seq) -> Result<Where, ReceiptsError> {
        let (sender, answer) = channel();
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(|it| it.into_inner());
            if waiting.len() >= ASKS_MAX {
                return Err(ReceiptsError("too many ask at once".into()));
            }
            waiting.push((seq, sender));
        }
        self.any.store(true, Ordering::Release);
        (self.wake)();
        let answer = answer.recv_timeout(PATIENCE);
        answer.map_err(|_| ReceiptsError("the store did not answer in time".into()))
    }
}

impl EmbeddedStore {
    /// Answers who asked where a message stands, a bounded number.
    pub(crate) fn answer_asks(&mut self) {
        if !self.asks.any.swap(false, Ordering::Acquire) {
            return;
        }
        let mut waiting = self
            .asks
            .waiting
            .lock()
            .unwrap_or_else(|it| it.into_inner());
        for _ in 0..ANSWERS_MAX {
            let Some((seq, sender)) = waiting.pop() else {
                return;
            };
            let found = self.index.slots.get(seq).map(|slot| {
                let more = self.index.more(seq, slot);
                (slot.root, more.map_or(Place::NONE, |more| more.latest))
            });
            // Who does not listen any more needs no answer.
            let _ = sender.send(found);
        }
        self.asks.any.store(true, Ordering::Release);
        (self.asks.wake)();
    }
}

/// Receipts of settled messages, and timelines of live ones.
pub struct LiveReceipts {
    record: Record,
    library: Arc<Library>,
    asks: Arc<Asks>,
    /// Messages that are done with and whose receipts are being made.
    unwritten: Arc<AtomicUsize>,
}

impl LiveReceipts {
    pub(crate) fn new(
        record: Record,
        library: Arc<Library>,
        asks: Arc<Asks>,
        unwritten: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            record,
            library,
            asks,
            unwritten,
        }
    }
}

impl Receipts for LiveReceipts {
    /// A message leaves the index when its end is durable, and has a receipt a
    /// moment later: who asks in between waits for that.
    fn get(&self, seq: Seq) -> Result<Option<Receipt>, ReceiptsError> {
        for _ in 0..LOOKS_MAX {
            let none_missing = self.unwritten.load(Ordering::Acquire) == 0;
            let receipt = Receipts::get(&self.record, seq)?;
            if receipt.is_some() || none_missing {
                return Ok(receipt);
            }
            thread::sleep(LOOK);
        }
        Ok(None)
    }

    fn list(
        &self,
        filter: &ReceiptFilter,
        before: Option<Seq>,
        max: usize,
    ) -> Result<Vec<Receipt>, ReceiptsError> {
        Receipts::list(&self.record, filter, before, max)
    }

    fn events(&self, seq: Seq) -> Result<Vec<Happening>, ReceiptsError> {
        match self.asks.ask(seq)? {
            Some((root, latest)) => match timeline::read(&self.library, root, latest) {
                Ok((_, events)) => Ok(events),
                Err(error) => Err(ReceiptsError(error.to_string())),
            },
            None => Receipts::events(&self.record, seq),
        }
    }

    fn count(&self, filter: &ReceiptFilter) -> Result<u64, ReceiptsError> {
        Receipts::count(&self.record, filter)
    }

    fn causes(&self, filter: &ReceiptFilter) -> Result<Vec<CauseCount>, ReceiptsError> {
        Receipts::causes(&self.record, filter)
    }
}
