//! What time brings, and what the engine asks for: due and expired messages,
//! and pages.

use std::collections::BTreeMap;

use outflow_core::engine::event::Event;
use outflow_core::handle::FlowId;
use outflow_core::message::Seq;
use outflow_core::time::Wall;
use outflow_ports::store::StoreDone;

use super::Index;
use super::slots::{Low, Stand};

/// Messages taken off a wheel at a time.
const RIPE_MAX: usize = 4_096;

/// Expired messages, by flow and by whether they were handed out.
type Expired = BTreeMap<(FlowId, bool), Vec<Seq>>;

impl Index {
    /// Takes what is ripe off the wheels, a bounded number.
    pub fn ripen(&mut self, now: Wall, done: &mut Vec<StoreDone>) {
        let mut taken: Vec<Low> = Vec::new();
        self.due.take(now, RIPE_MAX, &mut taken);
        for low in taken.drain(..) {
            self.come_due(now, low);
        }
        self.announce(done);
        self.expiry.take(now, RIPE_MAX, &mut taken);
        let mut expired = Expired::new();
        for low in taken {
            let Some(seq) = self.slots.find_low(low) else {
                continue;
            };
            let slot = self.live(seq);
            let Some(expires_at) = slot.map(|slot| slot.expires_at.wall()) else {
                continue;
            };
            if expires_at <= now {
                self.expire(seq, &mut expired);
            } else {
                self.expiry.insert(now, expires_at, seq);
            }
        }
        tell(expired, done);
        let (slots, living) = (&self.slots, self.slots.len());
        let is_meant = |low| slots.find_low(low).is_some();
        self.due.sweep(living, is_meant);
        self.expiry.sweep(living, is_meant);
    }

    fn come_due(&mut self, now: Wall, low: Low) {
        let Some(seq) = self.slots.find_low(low) else {
            return;
        };
        let slot = self.slots.get(seq);
        let Some(slot) = slot.filter(|slot| slot.stand == Stand::Later) else {
            return;
        };
        match self.more(seq, slot).and_then(|more| more.due_at) {
            Some(at) if at > now => self.due.insert(now, at, seq),
            _ => self.queue(seq, false),
        }
    }

    fn expire(&mut self, seq: Seq, expired: &mut Expired) {
        let Some(slot) = self.slots.get_mut(seq) else {
            return;
        };
        let flow = slot.flow();
        match slot.stand {
            Stand::Fresh | Stand::Due | Stand::Later => {
                self.put(seq, Stand::Expiring);
                expired.entry((flow, false)).or_default().push(seq);
            }
            Stand::Held => {
                slot.flags.set_overdue(true);
                expired.entry((flow, true)).or_default().push(seq);
            }
            Stand::Aside | Stand::Leaving => slot.flags.set_overdue(true),
            Stand::Expiring | Stand::Dead | Stand::Free => {}
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
            let first = flow.due.first(&self.slots);
            let Some(seq) = first.or_else(|| flow.fresh.first(&self.slots)) else {
                break;
            };
            let Some(head) = self.slots.get(seq).map(|slot| self.head(seq, slot)) else {
                break;
            };
            if head.expires_at <= now {
                // The wheel is coarse; who looks closely sees it earlier.
                self.expire(seq, &mut expired);
                continue;
            }
            self.put(seq, Stand::Held);
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
