//! The last commit is written again before it is believed.
//!
//! What a start reads comes from the machine's memory, which may hold more than
//! the disk does: a process may have been killed between its write and its
//! sync, or its sync may have failed, and then the system counts what was not
//! written as written and never tries again. All commits before the last were
//! synced before it was begun. So the last one and its bodies are written once
//! more, to where they stand, and synced.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::disk::{File, read_range};
use crate::journal::entry::Entry;
use crate::journal::frame::Frame;
use crate::journal::segment::Kind;
use crate::library::{Library, Shelf};

/// Parts of files that were read and may not be on the disk.
#[derive(Default)]
pub struct InDoubt(Vec<(Arc<dyn File>, u64, u64)>);

impl InDoubt {
    /// The bodies of new messages among these frames.
    pub fn of(frames: &[Frame<'_>], library: &Library) -> Self {
        let mut segments: BTreeMap<u32, (Shelf, u64, u64)> = BTreeMap::new();
        for frame in frames {
            let Some(Entry::Message(message)) = Entry::read(frame.kind, frame.payload) else {
                continue;
            };
            let body = message.body;
            // A segment that was rewritten has other offsets, and was synced
            // whole before it got its name.
            let shelf = library.shelf(Kind::Body, body.segment());
            let Some(shelf) = shelf.filter(|shelf| shelf.moved.is_none()) else {
                continue;
            };
            let (start, end) = (body.offset(), body.offset() + shelf.frame_bytes(body));
            let entry = segments.entry(body.segment());
            let (_, first, last) = entry.or_insert((shelf, start, end));
            (*first, *last) = ((*first).min(start), (*last).max(end));
        }
        let parts = segments.into_values();
        Self(
            parts
                .map(|(shelf, start, end)| (shelf.file, start, end))
                .collect(),
        )
    }

    /// The bytes of a file from `start` up to `end`.
    pub fn add(&mut self, file: &Arc<dyn File>, start: u64, end: u64) {
        self.0.push((Arc::clone(file), start, end));
    }

    /// Writes all of it again and syncs.
    pub fn write_again(&self) -> io::Result<()> {
        for (file, start, end) in &self.0 {
            let bytes = read_range(&**file, *start, *end)?;
            file.write_at(&bytes, *start)?;
            file.sync()?;
        }
        Ok(())
    }
}
