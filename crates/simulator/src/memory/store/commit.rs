//! Group commit: works on their way to the disk, one commit at a time.
//!
//! A commit that fails takes along everything that was handed over behind it:
//! so what is lost is always the end, and who appends it again keeps the order.
//! Only what nobody answers for (names of flows, letters to forget) is kept and
//! tried again.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::Seq;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::store::{BatchId, NewMessage, StoreDone};

use super::faults::Faults;
use super::image::Image;

/// Records in one commit, unless a single batch has more.
const GROUP_MAX: usize = 512;
/// Commits that end in one call.
const COMMITS_MAX: usize = 8;
/// The pause after a failed commit, if something is to be tried again.
const FAILED_PAUSE: Nanos = Nanos::from_millis(10);

/// Work on its way to the disk.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Open {
        flow: FlowId,
        key: Arc<FlowKey>,
    },
    /// Not written, but done in its turn.
    Close {
        flow: FlowId,
        request: u32,
    },
    Accept {
        batch: BatchId,
        first: Seq,
        messages: Vec<NewMessage>,
    },
    Append {
        no: AppendNo,
        record: Record,
    },
    Forget {
        seqs: Vec<Seq>,
    },
}

impl Work {
    fn records(&self) -> usize {
        match self {
            Self::Open { .. } | Self::Append { .. } | Self::Forget { .. } => 1,
            Self::Close { .. } => 0,
            Self::Accept { messages, .. } => messages.len().max(1),
        }
    }
}

/// A commit under way: so many works from the front.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    works: usize,
    ends_at: Mono,
}

/// How commits went so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commits {
    /// Commits that succeeded.
    pub done: u64,
    /// Commits that failed.
    pub failed: u64,
    /// Records that became durable.
    pub records: u64,
}

/// What is not durable yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    works: VecDeque<Work>,
    under_way: Option<UnderWay>,
    full_room_used: u32,
    pub commits: Commits,
    /// Both clocks at the last durable record.
    pub last_record: Option<(Mono, Wall)>,
}

impl Tail {
    pub fn push(&mut self, now: Mono, work: Work, faults: &mut Faults) {
        self.works.push_back(work);
        if self.under_way.is_none() {
            self.start(now, faults);
        }
    }

    fn start(&mut self, now: Mono, faults: &mut Faults) {
        let mut records = 0;
        let mut works = 0;
        for work in &self.works {
            if works > 0 && records + work.records() > GROUP_MAX {
                break;
            }
            records += work.records();
            works += 1;
        }
        self.under_way = (works > 0).then(|| UnderWay {
            works,
            ends_at: now + faults.commit_time(),
        });
    }

    pub fn next_completion(&self) -> Mono {
        self.under_way
            .map_or(Mono::NEVER, |under_way| under_way.ends_at)
    }

    /// Ends the commits whose time has come.
    pub fn complete(
        &mut self,
        now: &Now,
        faults: &mut Faults,
        image: &mut Image,
        done: &mut Vec<StoreDone>,
    ) {
        for _ in 0..COMMITS_MAX {
            let Some(under_way) = self.under_way.take_if(|it| it.ends_at <= now.mono) else {
                break;
            };
            if faults.commit_fails(now.mono) || !self.has_room(now.mono, under_way.works, faults) {
                self.fail(image, done);
                self.start(now.mono + FAILED_PAUSE, faults);
                continue;
            }
            let is_full = faults.is_full(now.mono);
            self.commits.done += 1;
            let mut through = None;
            for _ in 0..under_way.works {
                let Some(work) = self.works.pop_front() else {
                    break;
                };
                match work {
                    Work::Accept { batch, .. } if is_full => {
                        done.push(StoreDone::AcceptFailed { batch });
                    }
                    work => self.apply(now, work, image, done, &mut through),
                }
            }
            if let Some(through) = through {
                done.push(StoreDone::Event(Event::Committed { through }));
            }
            image.announce(done);
            self.start(now.mono, faults);
        }
    }

    /// Whether the records of a commit have room; messages do not count, they
    /// are refused on a full disk.
    fn has_room(&mut self, now: Mono, works: usize, faults: &Faults) -> bool {
        if !faults.is_full(now) {
            self.full_room_used = 0;
            return true;
        }
        let small = self.works.iter().take(works);
        let small = small.filter(|work| !matches!(work, Work::Accept { .. } | Work::Close { .. }));
        let wanted = u32::try_from(small.count()).unwrap_or(u32::MAX);
        let used = self.full_room_used.saturating_add(wanted);
        if used > faults.full_room {
            return false;
        }
        self.full_room_used = used;
        true
    }

    fn apply(
        &mut self,
        now: &Now,
        work: Work,
        image: &mut Image,
        done: &mut Vec<StoreDone>,
        through: &mut Option<AppendNo>,
    ) {
        self.commits.records += work.records() as u64;
        if work.records() > 0 {
            self.last_record = Some((now.mono, now.wall));
        }
        match work {
            Work::Open { flow, key } => image.open(flow, key),
            Work::Close { flow, request } => image.close(flow, request),
            Work::Accept {
                batch,
                first,
                messages,
            } => {
                if messages.iter().any(|it| image.flow(it.flow).is_none()) {
                    done.push(StoreDone::AcceptFailed { batch });
                    return;
                }
                let numbered = messages.iter().zip(first.0..);
                let given = numbered
                    .map(|(message, seq)| image.accept(now.wall, Seq(seq), message))
                    .collect();
                done.push(StoreDone::Accepted { batch, given });
            }
            Work::Append { no, record } => {
                image.apply(now.wall, &record);
                *through = Some(no);
            }
            Work::Forget { seqs } => image.forget(&seqs),
        }
    }

    fn fail(&mut self, image: &mut Image, done: &mut Vec<StoreDone>) {
        self.commits.failed += 1;
        let mut kept = VecDeque::new();
        let mut through = None;
        for work in self.works.drain(..) {
            match work {
                kept_on @ (Work::Open { .. } | Work::Close { .. } | Work::Forget { .. }) => {
                    kept.push_back(kept_on);
                }
                Work::Accept { batch, .. } => done.push(StoreDone::AcceptFailed { batch }),
                Work::Append { no, record } => {
                    image.lose(&record);
                    through = Some(no);
                }
            }
        }
        self.works = kept;
        if let Some(through) = through {
            done.push(StoreDone::Event(Event::CommitFailed { through }));
        }
    }

    /// Loses all that is not durable; the first works of a commit under way may
    /// have reached the disk, though nobody heard of it.
    pub fn crash(&mut self, now: &Now, faults: &mut Faults, image: &mut Image) {
        let works = self.under_way.take().map_or(0, |it| it.works);
        let (mut unheard, mut through) = (Vec::new(), None);
        for _ in 0..faults.torn(works) {
            if let Some(work) = self.works.pop_front() {
                self.apply(now, work, image, &mut unheard, &mut through);
            }
        }
        self.works.clear();
    }
}
