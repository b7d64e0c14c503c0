//! What the writer answers, and what follows from it.

use outflow_core::engine::event::Event;
use outflow_core::handle::AppendNo;
use outflow_core::time::{Now, Wall};
use outflow_ports::store::StoreDone;

use crate::clerk::Papers;
use crate::journal::entry::OldKey;
use crate::journal::place::Place;
use crate::journal::task::{Answer, Task};
use crate::store::EmbeddedStore;

/// Times of commits that are kept for whoever asks.
const COMMIT_TIMES_MAX: usize = 1_024;

impl EmbeddedStore {
    /// Takes one answer of the writer in.
    pub(crate) fn hear(&mut self, now: &Now, answer: Answer, done: &mut Vec<StoreDone>) {
        let (mut committed, mut lost): (Option<AppendNo>, Option<AppendNo>) = (None, None);
        let mut again = Vec::new();
        let mut failed = false;
        self.outstanding = self.outstanding.saturating_sub(answer.tasks.len());
        for (task, durable) in answer.tasks {
            if let Task::Append { no: Some(no), .. } = &task {
                let (this, other) = match durable {
                    true => (&mut committed, &mut lost),
                    false => (&mut lost, &mut committed),
                };
                tell(other.take(), !durable, done);
                *this = Some(*no);
            }
            if durable {
                self.apply(now, task, answer.through, done);
            } else {
                failed = true;
                again.extend(self.lose(task, done));
            }
        }
        tell(committed, true, done);
        tell(lost, false, done);
        if failed {
            self.begin_generation(answer.lost + 1);
        } else {
            self.through = answer.through;
            if self.commit_times.len() < COMMIT_TIMES_MAX {
                self.commit_times.push(answer.took);
            }
        }
        for task in again {
            self.order(task);
        }
        self.index.announce(done);
    }

    fn apply(&mut self, now: &Now, task: Task, through: u64, done: &mut Vec<StoreDone>) {
        match task {
            Task::Open { flow, key, place } => {
                self.opened(flow);
                self.index.open(flow, key, place);
            }
            Task::Accept {
                batch,
                messages,
                refused,
            } => {
                if refused {
                    return done.push(StoreDone::AcceptFailed { batch });
                }
                self.index.arrived(&messages);
                for it in messages.iter().filter(|it| !it.given.known) {
                    self.index.accept(now.wall, it);
                    self.reclaim.saw(it.root, it.body);
                }
                let given = messages.iter().map(|it| it.given).collect();
                done.push(StoreDone::Accepted { batch, given });
            }
            Task::Append {
                no,
                record,
                context,
                place,
            } => {
                match no {
                    Some(_) => self.index.arrived_of_limit(&record),
                    None => self.reclaim.answered(),
                }
                self.reclaim.saw(place, Place::NONE);
                self.index.apply(now.wall, record, &context, place);
            }
            Task::Forget { seqs } => self.index.forget(&seqs),
            Task::Turn => self.reclaim.turned(),
            Task::Keep { messages } => {
                self.reclaim.answered();
                for it in messages {
                    self.reclaim.saw(it.now, Place::NONE);
                    self.kept(&it);
                }
            }
            Task::Keys { keys, .. } => {
                if !keys.is_empty() {
                    let segment = (through >> 32) as u32;
                    self.index.keys.remembered.restated(&keys, segment);
                    self.reclaim.answered();
                }
            }
        }
    }

    /// A task did not reach the disk. What the store itself tries again.
    fn lose(&mut self, task: Task, done: &mut Vec<StoreDone>) -> Option<Task> {
        match task {
            Task::Open { flow, .. } => self.not_opened(flow),
            kept @ Task::Forget { .. } => {
                return Some(kept).filter(|_| self.orders.is_some());
            }
            Task::Keys { keys, moved } if keys.is_empty() => {
                let mark = Task::Keys { keys, moved };
                return Some(mark).filter(|_| self.orders.is_some());
            }
            Task::Accept {
                batch, messages, ..
            } => {
                self.index.arrived(&messages);
                for it in messages.iter().filter(|it| !it.given.known && it.key != 0) {
                    self.index.keys.release(it.key, it.given.seq);
                }
                done.push(StoreDone::AcceptFailed { batch });
            }
            Task::Append { no, record, .. } => {
                if no.is_some() {
                    self.index.arrived_of_limit(&record);
                    self.index.lose(&record);
                } else {
                    self.reclaim.answered();
                }
            }
            Task::Keep { messages } => self.reclaim.not_kept(messages),
            Task::Keys { keys, .. } => {
                self.index.keys.remembered.not_restated(&keys);
                self.reclaim.answered();
            }
            Task::Turn => self.reclaim.not_turned(),
        }
        None
    }

    /// Hands over what the record is to know.
    pub(crate) fn hand_over(&mut self, now: Wall) {
        let mut moved: Vec<OldKey> = Vec::new();
        self.index.keys.forget(now, &mut moved);
        if !moved.is_empty() && !self.keys_moved {
            self.keys_moved = true;
            let (keys, moved) = (Vec::new(), true);
            self.order(Task::Keys { keys, moved });
        }
        // At once, and not by way of the clerk: nothing else knows of them now,
        // and a caller may come again before the clerk gets there.
        let moved = moved.iter();
        let moved = moved.map(|it| (it.hash, it.seq, it.accepted_at, it.until));
        self.record.remember_keys(moved.collect());
        let finished = std::mem::take(&mut self.index.finished);
        let feedback = std::mem::take(&mut self.index.feedback);
        if let Some(clerk) = &self.clerk {
            clerk.hand_over(Papers {
                finished,
                feedback,
                through: self.through,
            });
        }
    }
}

fn tell(through: Option<AppendNo>, durable: bool, done: &mut Vec<StoreDone>) {
    if let Some(through) = through {
        done.push(StoreDone::Event(match durable {
            true => Event::Committed { through },
            false => Event::CommitFailed { through },
        }));
    }
}
