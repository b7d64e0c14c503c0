//! What time brings, and what the engine asks for: due and expired messages,
//! and pages.

use std::collections::BTreeMap;

use outflow_core::engine::event::Event;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::Wall;
use outflow_ports::store::StoreDone;

use super::image::Image;
use super::slab::{Place, Slot};

/// Items taken off the wheels at a time.
const RIPE_MAX: usize = 4_096;

/// Expired messages, by flow and by whether they were handed out.
type Expired = BTreeMap<(FlowId, bool), Vec<Seq>>;

impl Image {
    /// Takes what is ripe off the wheels, a bounded number.
    pub fn ripen(&mut self, now: Wall, done: &mut Vec<StoreDone>) {
        for _ in 0..RIPE_MAX {
            let Some((slot, seq)) = self.due.pop(now) else {
                break;
            };
            let meant = self.slab.get(slot).is_some_and(|entry| {
                entry.head.seq == seq
                    && entry.place == Place::Later
                    && entry.due_at.is_some_and(|at| at <= now)
            });
            if meant {
                self.queue(slot, false);
            }
        }
        self.announce(done);
        let mut expired = Expired::new();
        for _ in 0..RIPE_MAX {
            let Some((slot, seq)) = self.expiry.pop(now) else {
                break;
            };
            let entry = self.slab.get(slot);
            if entry.is_some_and(|entry| entry.head.seq == seq) {
                self.expire(slot, &mut expired);
            }
        }
        tell(expired, done);
    }

    fn expire(&mut self, slot: Slot, expired: &mut Expired) {
        let Some(entry) = self.slab.get_mut(slot) else {
            return;
        };
        let (flow, seq) = (entry.flow, entry.head.seq);
        match entry.place {
            Place::Fresh | Place::Due | Place::Later => {
                self.put(slot, Place::Expiring);
                expired.entry((flow, false)).or_default().push(seq);
            }
            Place::Held => {
                entry.overdue = true;
                expired.entry((flow, true)).or_default().push(seq);
            }
            Place::Aside | Place::Leaving => entry.overdue = true,
            Place::Expiring => {}
        }
    }

    /// Hands out up to `max` messages of a flow, due ones first.
    pub fn page(&mut self, now: Wall, id: FlowId, max: u32, done: &mut Vec<StoreDone>) {
        let mut heads = Vec::new();
        let mut expired = Expired::new();
        while heads.len() < max as usize {
            let Some(flow) = self.flow(id) else {
                break;
            };
            let Some(slot) = flow.due.first().or_else(|| flow.fresh.first()) else {
                break;
            };
            let Some(head) = self.slab.get(slot).map(|entry| entry.head) else {
                break;
            };
            if head.expires_at <= now {
                // The wheel is coarse; who looks closely sees it earlier.
                self.expire(slot, &mut expired);
                continue;
            }
            self.put(slot, Place::Held);
            heads.push(head);
        }
        tell(expired, done);
        done.push(StoreDone::Event(Event::Paged { flow: id, heads }));
    }
}

fn tell(expired: Expired, done: &mut Vec<StoreDone>) {
    for ((flow, held), seqs) in expired {
        done.push(StoreDone::Event(Event::Expired { flow, seqs, held }));
    }
}
