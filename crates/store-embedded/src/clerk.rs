//! Who writes receipts: reads what a receipt needs back from the journal and
//! hands it to the record. In production that is a thread.
//!
//! The store hands over 80 bytes for each message that is done with. If the
//! record falls behind, those wait here; beyond a number the store takes no new
//! messages, so this queue is bounded by that number and what was alive.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use outflow_core::message::{Seq, State};
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::Wall;
use outflow_ports::receipts::{Happening, Receipt};

use crate::index::Finished;
use crate::journal::entry::Entry;
use crate::journal::segment::Kind;
use crate::journal::words::{self, Detail};
use crate::library::Library;
use crate::record::{KeptReceipts, Record};
use crate::timeline;

/// Receipts handed over at once.
const SLICE: usize = 1_000;
/// Receipts that the record may still have to write before more are made.
const BACKLOG_MAX: usize = 50_000;
/// How long to wait for the record before looking again.
const PATIENCE: Duration = Duration::from_millis(50);

/// What is handed to the clerk, in the order of the journal.
#[derive(Default)]
pub struct Papers {
    pub finished: Vec<Finished>,
    pub feedback: Vec<(Seq, Wall, LastError)>,
    /// Everything up to here is in these papers or in earlier ones.
    pub through: u64,
}

/// A handle to the clerk; its thread, if it has one, ends when it is dropped.
pub struct Clerk {
    papers: Option<Sender<Papers>>,
    thread: Option<JoinHandle<()>>,
    waiting: Arc<AtomicUsize>,
}

impl Clerk {
    /// A clerk and the desk at which the papers arrive.
    pub fn new(record: Record, library: Arc<Library>, receipts: KeptReceipts) -> (Self, Desk) {
        let (sender, papers) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let desk = Desk {
            papers,
            record,
            library,
            receipts,
            waiting: Arc::clone(&waiting),
        };
        let clerk = Self {
            papers: Some(sender),
            thread: None,
            waiting,
        };
        (clerk, desk)
    }

    /// Has the desk worked at by a thread.
    pub fn start(&mut self, desk: Desk) -> io::Result<()> {
        let thread = thread::Builder::new()
            .name("outflow-clerk".into())
            .spawn(move || desk.run())?;
        self.thread = Some(thread);
        Ok(())
    }

    pub fn hand_over(&self, papers: Papers) {
        self.waiting
            .fetch_add(papers.finished.len(), Ordering::Relaxed);
        if let Some(sender) = &self.papers {
            // A clerk that is gone leaves the record behind; the journal keeps
            // what it needs to catch up at the next start.
            let _ = sender.send(papers);
        }
    }

    /// The number of messages that wait for their receipt, as it goes on.
    pub fn unwritten(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.waiting)
    }

    /// Messages that wait for their receipt.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.papers = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Papers that are being worked at.
pub struct Open {
    papers: Papers,
    /// How many of the finished are done.
    done: usize,
}

impl Open {
    /// Begins with these.
    pub const fn new(papers: Papers) -> Self {
        Self { papers, done: 0 }
    }
}

/// How far a step got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// There is more in these papers.
    Some,
    /// The record has too much to write; nothing was done.
    Waits,
    /// These papers are done with.
    All,
}

/// Where papers become receipts.
pub struct Desk {
    papers: Receiver<Papers>,
    record: Record,
    library: Arc<Library>,
    receipts: KeptReceipts,
    waiting: Arc<AtomicUsize>,
}

impl Desk {
    fn run(self) {
        while let Ok(papers) = self.papers.recv() {
            let mut open = Open::new(papers);
            loop {
                match self.step(&mut open) {
                    Written::Some => {}
                    Written::Waits => {
                        self.record.wait_applied(u64::MAX, PATIENCE);
                    }
                    Written::All => break,
                }
            }
        }
    }

    /// The next papers, if there are any.
    pub fn next(&self) -> Option<Papers> {
        self.papers.try_recv().ok()
    }

    /// Writes a slice of these papers.
    pub fn step(&self, open: &mut Open) -> Written {
        let papers = &mut open.papers;
        let slice = papers.finished.get(open.done..).unwrap_or_default();
        let slice = slice.get(..SLICE).unwrap_or(slice);
        if !slice.is_empty() {
            if self.record.backlog() > BACKLOG_MAX {
                return Written::Waits;
            }
            let is_kept = |it: &&Finished| self.receipts.keeps(&it.key.tenant, it.state);
            let kept = slice.iter().filter(is_kept);
            let receipts = kept.map(|it| self.receipt(it)).collect();
            let is_last = open.done + slice.len() == papers.finished.len();
            if !papers.feedback.is_empty() {
                self.record.settle(receipts, 0);
            } else if is_last {
                self.record.settle(receipts, papers.through);
            } else {
                let before = slice.last().map_or(0, |it| it.end.position());
                self.record.settle(receipts, before);
            }
            // Only now can the record answer for them.
            self.waiting.fetch_sub(slice.len(), Ordering::Release);
            open.done += slice.len();
            if !is_last {
                return Written::Some;
            }
        }
        let is_covered = papers.feedback.is_empty() && !papers.finished.is_empty();
        for (seq, at, error) in std::mem::take(&mut papers.feedback) {
            self.record.feedback(seq, at, error);
        }
        // Feedback is added to receipts, so it comes behind them; and the
        // record covers the journal only when it has both.
        if !is_covered {
            self.record.settle(Vec::new(), papers.through);
        }
        Written::All
    }

    fn receipt(&self, it: &Finished) -> Receipt {
        let read = timeline::read(&self.library, it.root, it.latest).ok();
        let (root, mut events) = match read {
            Some((root, events)) => (Some(root), events),
            None => (None, Vec::new()),
        };
        let written = root.as_ref().and_then(timeline::Root::written);
        let end = self.end(it);
        let last = events.iter().rev();
        let mut last = last.filter_map(|event| event.error.as_ref().map(|error| (event, error)));
        let last = last
            .next()
            .map(|(event, error)| (event.account.clone(), error.clone()));
        let (last_account, last_error) = last.unzip();
        events.push(Happening {
            at: it.at,
            what: it.state.as_str().to_owned(),
            account: end.detail.account.clone(),
            until: None,
            error: end.detail.error.clone(),
        });
        Receipt {
            seq: it.seq,
            key: (*it.key).clone(),
            state: it.state,
            accepted_at: written.map_or(it.at, |written| written.accepted_at),
            settled_at: it.at,
            attempts: end.attempts.unwrap_or_else(|| attempts(it)),
            account: end.detail.account.or(last_account.flatten()),
            error: end.detail.error.or(last_error),
            cause: end.cause,
            envelope: written.map_or_else(Vec::new, |written| written.envelope.to_vec()),
            events,
        }
    }

    /// What the record that ended a message says.
    fn end(&self, it: &Finished) -> End {
        let Ok((kind, payload)) = self.library.read(Kind::Envelope, it.end) else {
            return End::default();
        };
        match Entry::read(kind, &payload) {
            Some(Entry::Settlement { mut detail, .. }) => End {
                detail: words::read_detail(&mut detail).unwrap_or_default(),
                ..End::default()
            },
            Some(Entry::Dead {
                mut detail,
                cause,
                attempts,
                ..
            }) => End {
                detail: words::read_detail(&mut detail).unwrap_or_default(),
                attempts: Some(attempts),
                cause: Some(cause),
            },
            _ => End::default(),
        }
    }
}

/// A message that was delivered or bounced was tried once more than its
/// deferrals count.
fn attempts(it: &Finished) -> u16 {
    let tried = matches!(it.state, State::Delivered | State::Bounced);
    it.attempts.saturating_add(u16::from(tried))
}

#[derive(Default)]
struct End {
    detail: Detail,
    attempts: Option<u16>,
    cause: Option<outflow_core::retry::schedule::DeathCause>,
}
