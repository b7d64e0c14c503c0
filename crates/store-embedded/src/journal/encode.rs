//! Tasks as frames.
//!
//! Bodies go first, so that the entries can say where they stand. Messages of
//! one batch that share a body in memory share it on the disk.

use std::collections::HashMap;
use std::sync::Arc;

use super::codec::Out;
use super::entry::{self, Tried, Written};
use super::frame;
use super::place::Place;
use super::task::{Keep, Numbered, Task};
use super::words;
use crate::library::Library;
use crate::timeline;

/// Frames that are not sealed yet; kept from group to group.
#[derive(Default)]
pub struct Buffers {
    pub bodies: Vec<u8>,
    pub envelopes: Vec<u8>,
    /// Where each body begins and ends in its buffer, and its check, in order.
    starts: Vec<(usize, usize, u64)>,
    /// Bodies of this batch, by where they are in memory.
    known: HashMap<(usize, usize), usize>,
    /// For each message that is written, which body it has.
    of_message: Vec<usize>,
}

impl Buffers {
    pub fn clear(&mut self) {
        self.bodies.clear();
        self.envelopes.clear();
        self.starts.clear();
        self.known.clear();
        self.of_message.clear();
    }

    /// Writes the bodies of a batch.
    pub fn add_bodies(&mut self, messages: &[Numbered]) {
        self.known.clear();
        for it in messages.iter().filter(|it| !it.given.known) {
            let body = &it.message.body;
            let address = (Arc::as_ptr(body).cast::<u8>() as usize, body.len());
            let (starts, bodies) = (&mut self.starts, &mut self.bodies);
            let which = *self.known.entry(address).or_insert_with(|| {
                let start = frame::begin(bodies, entry::BODY);
                bodies.extend_from_slice(body);
                frame::end(bodies, start);
                starts.push((start, bodies.len(), entry::body_check(body)));
                starts.len() - 1
            });
            self.of_message.push(which);
        }
    }

    /// Writes the entries of tasks whose bodies will stand at `offset` of body
    /// segment `segment`. Where each will stand is noted relative to the
    /// beginning of the buffer.
    pub fn add_entries(
        &mut self,
        tasks: &mut [Task],
        segment: u32,
        offset: u64,
        library: &Library,
    ) {
        let mut bodies = self.of_message.iter();
        for task in tasks {
            match task {
                Task::Accept { messages, .. } => {
                    for it in messages.iter_mut().filter(|it| !it.given.known) {
                        let body = bodies.next().and_then(|which| self.starts.get(*which));
                        let (start, end, check) = body.copied().unwrap_or_default();
                        it.body = Place::new(segment, offset + start as u64, (end - start) as u64);
                        it.root = message(&mut self.envelopes, it, check);
                    }
                }
                Task::Open { flow, key, place } => {
                    *place = framed(&mut self.envelopes, entry::FLOW, |out| {
                        words::write_flow_key(out.u32(flow.0), key);
                    });
                }
                Task::Append {
                    record,
                    context,
                    place,
                    ..
                } => {
                    *place = framed(&mut self.envelopes, entry::kind_of(record), |out| {
                        entry::write_record(out, record, context);
                    });
                }
                Task::Forget { seqs } => {
                    framed(&mut self.envelopes, entry::FORGET, |out| {
                        out.numbers(seqs.iter().map(|seq| seq.0));
                    });
                }
                Task::Keep { messages } => {
                    for it in messages {
                        it.now = kept(&mut self.envelopes, it, library).unwrap_or(Place::NONE);
                    }
                }
                Task::Turn => {}
                Task::Keys { keys, moved } => {
                    framed(&mut self.envelopes, entry::KEYS, |out| {
                        out.u8(u8::from(*moved));
                        for key in keys {
                            out.u64(key.hash).u64(key.seq.0);
                            out.i64(key.accepted_at.0).i64(key.until.0);
                        }
                    });
                }
            }
        }
    }
}

/// The places of tasks, once it is known where their frames begin.
pub fn settle_places(tasks: &mut [Task], segment: u32, offset: u64) {
    let settle = |place: &mut Place| {
        if place.size() > 0 {
            *place = Place::new(segment, offset + place.offset(), place.size());
        }
    };
    for task in tasks {
        match task {
            Task::Accept { messages, .. } => {
                let written = messages.iter_mut().filter(|it| !it.given.known);
                written.for_each(|it| settle(&mut it.root));
            }
            Task::Keep { messages } => messages.iter_mut().for_each(|it| settle(&mut it.now)),
            Task::Open { place, .. } | Task::Append { place, .. } => settle(place),
            Task::Forget { .. } | Task::Keys { .. } | Task::Turn => {}
        }
    }
}

fn framed(buffer: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Out<'_>)) -> Place {
    let start = frame::begin(buffer, kind);
    write(&mut Out(buffer));
    frame::end(buffer, start);
    Place::new(0, start as u64, (buffer.len() - start) as u64)
}

fn message(buffer: &mut Vec<u8>, it: &Numbered, body_check: u64) -> Place {
    let written = Written {
        seq: it.given.seq,
        flow: it.message.flow,
        accepted_at: it.given.accepted_at,
        expires_at: it.message.expires_at,
        due_at: it.message.not_before,
        recipient: it.message.recipient.0,
        cost: it.message.cost,
        key: it.key,
        body: it.body,
        body_check,
        envelope: &it.message.envelope,
    };
    framed(buffer, entry::MESSAGE, |out| written.write(out))
}

/// A message of an old segment, with what happened to it so far.
fn kept(buffer: &mut Vec<u8>, it: &Keep, library: &Library) -> Option<Place> {
    let (root, events) = timeline::read(library, it.root, it.latest).ok()?;
    let message = Written {
        flow: it.flow,
        due_at: it.due_at,
        ..root.written()?
    };
    let tried: Tried = it.tried;
    Some(framed(buffer, entry::KEPT, |out| {
        message.write(out);
        tried.write(out);
        for event in &events {
            words::write_happening(out, event);
        }
    }))
}
