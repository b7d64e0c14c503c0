//! Messages of which something is lost end as dead letters, so that nothing is
//! sent that is not whole, or on nobody's account.

use std::collections::BTreeSet;
use std::path::Path;

use outflow_core::engine::action::Record;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::dead_letter::{DeadLetter, LastError};
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Nanos;

use super::envelopes::End;
use super::{SalvageError, Salvaged, at};
use crate::boot::{BootClock, LastRecord, SystemBoot};
use crate::disk::Disk;
use crate::index::slots::Stand;
use crate::journal::codec::Out;
use crate::journal::entry::{self, COMMIT, Commit, Context};
use crate::journal::frame;
use crate::journal::place::{Place, position};
use crate::journal::segment::{HEADER, Kind};
use crate::recovery::Recovery;

/// Writes the segment behind those that were copied. Up to where the journal
/// counts.
pub fn write(
    found: &Recovery,
    to: &dyn Disk,
    end: &End,
    lost: Vec<Seq>,
    salvaged: &mut Salvaged,
) -> Result<u64, SalvageError> {
    let index = &found.index;
    let no_content = "its content was lost: the store was damaged and salvaged";
    let no_flow = "whom it belongs to was lost: the store was damaged and salvaged";
    let is_lost: BTreeSet<Seq> = lost.into_iter().collect();
    let mut frames = Vec::new();
    let mut last = end.last.max(found.last_seq());
    for (seq, slot) in index.slots.iter(Seq(0)) {
        last = last.max(seq);
        let flow = index.flow(slot.flow());
        let is_nameless = flow.is_none_or(|flow| flow.named == Place::NONE);
        if slot.stand == Stand::Dead {
            salvaged.dead_letters += 1;
            if is_lost.contains(&seq) {
                salvaged.ended.push(seq.0);
            }
            continue;
        }
        let text = match (is_lost.contains(&seq), is_nameless) {
            (true, _) => no_content,
            (false, true) => no_flow,
            (false, false) => {
                salvaged.messages += 1;
                continue;
            }
        };
        salvaged.ended.push(seq.0);
        salvaged.dead_letters += 1;
        let attempts = index.more(seq, slot).map_or(0, |more| more.tried.attempts);
        add_end(&mut frames, slot.flow(), seq, attempts, text);
    }
    let now = SystemBoot.wall();
    let past = found.last_record.unwrap_or(LastRecord {
        wall: now,
        boot: crate::boot::BootTime {
            id: SystemBoot.id(),
            time: SystemBoot.time(),
        },
    });
    let commit = Commit {
        durable: HEADER,
        start: HEADER,
        at: past.wall,
        boot_time: Nanos(past.boot.time.0),
        boot_id: past.boot.id,
        last,
    };
    let start = frame::begin(&mut frames, COMMIT);
    commit.write(&mut Out(&mut frames));
    frame::end(&mut frames, start);
    frame::seal(&mut frames, end.header.epoch, HEADER);
    let name = Kind::Envelope.name(end.header.number);
    let file = to.open(&name).map_err(at(Path::new(&name)))?;
    file.write_at(&frames, HEADER)
        .and_then(|()| file.sync())
        .map_err(at(Path::new(&name)))?;
    Ok(position(end.header.number, HEADER + frames.len() as u64))
}

fn add_end(
    frames: &mut Vec<u8>,
    flow: outflow_core::handle::FlowId,
    seq: Seq,
    attempts: u16,
    text: &str,
) {
    let at = SystemBoot.wall();
    let letter = DeadLetter {
        first_attempt_at: at,
        last_attempt_at: at,
        attempts,
        cause: DeathCause::StorageDamaged,
        error: LastError {
            code: None,
            enhanced: None,
            class: ReplyClass::Other,
            rule: Name::from("storage"),
            text: text.to_owned(),
        },
    };
    let record = Record::Dead {
        flow,
        seq,
        account: None,
        letter: Box::new(letter),
    };
    let context = Context {
        at,
        ..Context::default()
    };
    let start = frame::begin(frames, entry::kind_of(&record));
    entry::write_record(&mut Out(frames), &record, &context);
    frame::end(frames, start);
}
