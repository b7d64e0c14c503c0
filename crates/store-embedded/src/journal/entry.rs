//! What frames say: one entry each.
//!
//! Entries are read without copying; what only a receipt needs (errors,
//! accounts) is decoded by whoever writes that receipt.

use outflow_core::engine::action::{Attempt, Hasten, Hold, Record};
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::{Nanos, Wall};
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{In, Out};
pub use super::kinds::*;
use super::place::Place;
use super::words;

/// What is written of a message when it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<'a> {
    pub seq: Seq,
    pub flow: FlowId,
    pub accepted_at: Wall,
    pub expires_at: Wall,
    /// When it is to be sent, if it waits for that.
    pub due_at: Option<Wall>,
    pub recipient: u64,
    pub cost: u32,
    /// The hash of its idempotency key; 0 if it has none.
    pub key: u64,
    pub body: Place,
    /// What [`body_check`] says of the body: its place alone is not enough,
    /// since a body that nobody heard of may have stood there before a crash.
    pub body_check: u64,
    pub envelope: &'a [u8],
}

/// The check of a body.
pub fn body_check(body: &[u8]) -> u64 {
    xxh3_64(body)
}

/// What is written beside it when it is copied from an old segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    pub attempts: u16,
    /// Of these, after how many nobody knew whether it was taken.
    pub uncertain: u8,
    pub first_attempt_at: Wall,
    pub last_delay: Nanos,
    pub dead: bool,
}

impl Default for Tried {
    fn default() -> Self {
        Self {
            attempts: 0,
            uncertain: 0,
            first_attempt_at: Wall::NEVER,
            last_delay: Nanos::ZERO,
            dead: false,
        }
    }
}

/// A remembered idempotency key of a message that is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldKey {
    pub hash: u64,
    pub seq: Seq,
    pub accepted_at: Wall,
    pub until: Wall,
}

/// The end of a commit: all since the one before holds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Up to here this segment was durable before the commit was written.
    pub durable: u64,
    /// Where its first frame stands.
    pub start: u64,
    pub at: Wall,
    /// The boot clock, and which boot.
    pub boot_time: Nanos,
    pub boot_id: u64,
    /// The highest number given so far.
    pub last: Seq,
}

#[derive(Clone, Debug)]
pub enum Entry<'a> {
    Flow {
        flow: FlowId,
        key: FlowKey,
    },
    Message(Written<'a>),
    /// A message copied from an old segment; its earlier happenings follow.
    Kept {
        message: Written<'a>,
        tried: Tried,
        events: In<'a>,
    },
    Deferral {
        seq: Seq,
        at: Wall,
        until: Wall,
        /// The deferral before it.
        before: Place,
        tried: Option<Tried>,
        detail: In<'a>,
    },
    Settlement {
        seq: Seq,
        at: Wall,
        state: State,
        detail: In<'a>,
    },
    Dead {
        seq: Seq,
        at: Wall,
        attempts: u16,
        cause: DeathCause,
        detail: In<'a>,
    },
    Feedback {
        seq: Seq,
        at: Wall,
        detail: In<'a>,
    },
    /// All messages of a flow up to a number, except some, are cancelled.
    Cancelled {
        flow: FlowId,
        through: Seq,
        except: Vec<u64>,
        at: Wall,
    },
    Moved {
        flow: FlowId,
        to: FlowId,
        through: Seq,
        held: Vec<u64>,
        except: Vec<u64>,
    },
    Hastened {
        flow: FlowId,
        which: Hasten,
        at: Wall,
    },
    Reservation {
        key: &'a str,
        saved: &'a [u8],
        block: u32,
    },
    /// A limit whose count is of no use any more.
    Forgotten {
        key: &'a str,
    },
    Held {
        key: &'a str,
        hold: Hold,
    },
    Adapted {
        key: &'a str,
        lore: &'a [u8],
    },
    Forget {
        seqs: Vec<u64>,
    },
    Commit(Commit),
    /// Keys that outlive the segment of their message; `moved` if others were
    /// handed to the record.
    Keys {
        keys: Vec<OldKey>,
        moved: bool,
    },
    Body,
    /// Something stood here that could not be read when the store was salvaged.
    Filler,
}

fn maybe(at: i64) -> Option<Wall> {
    (at != i64::MAX).then_some(Wall(at))
}

impl<'a> Entry<'a> {
    /// What a frame says; none if it says nothing that this version knows.
    pub fn read(kind: u8, payload: &'a [u8]) -> Option<Self> {
        let mut from = In(payload);
        let from = &mut from;
        Some(match kind {
            FLOW => Self::Flow {
                flow: FlowId(from.u32()?),
                key: words::read_flow_key(from)?,
            },
            MESSAGE => Self::Message(Written::read(from)?),
            KEPT => Self::Kept {
                message: Written::read(from)?,
                tried: Tried::read(from)?,
                events: *from,
            },
            DEFERRAL => Self::read_deferral(from)?,
            SETTLEMENT => Self::Settlement {
                seq: Seq(from.u64()?),
                at: Wall(from.i64()?),
                state: words::state(from.u8()?)?,
                detail: *from,
            },
            DEAD => Self::Dead {
                seq: Seq(from.u64()?),
                at: Wall(from.i64()?),
                attempts: from.u16()?,
                cause: words::cause(from.u8()?)?,
                detail: *from,
            },
            FEEDBACK => Self::Feedback {
                seq: Seq(from.u64()?),
                at: Wall(from.i64()?),
                detail: *from,
            },
            CANCELLED => Self::Cancelled {
                flow: FlowId(from.u32()?),
                through: Seq(from.u64()?),
                at: Wall(from.i64()?),
                except: from.numbers()?,
            },
            MOVED => Self::Moved {
                flow: FlowId(from.u32()?),
                to: FlowId(from.u32()?),
                through: Seq(from.u64()?),
                held: from.numbers()?,
                except: from.numbers()?,
            },
            HASTENED => Self::Hastened {
                flow: FlowId(from.u32()?),
                at: Wall(from.i64()?),
                which: match from.u8()? {
                    0 => Hasten::One(Seq(from.u64()?)),
                    1 => Hasten::Through(Seq(from.u64()?)),
                    _ => return None,
                },
            },
            RESERVATION => Self::Reservation {
                block: from.u32()?,
                key: from.text()?,
                saved: from.bytes()?,
            },
            FORGOTTEN => Self::Forgotten { key: from.text()? },
            HELD => {
                let until = Wall(from.i64()?);
                let key = from.text()?;
                // Earlier versions held all that they held to nothing.
                let per_minute = from.u32().unwrap_or(0);
                let hold = Hold { until, per_minute };
                Self::Held { key, hold }
            }
            ADAPTED => Self::Adapted {
                key: from.text()?,
                lore: from.bytes()?,
            },
            FORGET => Self::Forget {
                seqs: from.numbers()?,
            },
            COMMIT => Self::Commit(Commit::read(from)?),
            KEYS => Self::read_keys(from)?,
            BODY => Self::Body,
            FILLER => Self::Filler,
            _ => return None,
        })
    }

    fn read_deferral(from: &mut In<'a>) -> Option<Self> {
        Some(Self::Deferral {
            seq: Seq(from.u64()?),
            at: Wall(from.i64()?),
            until: Wall(from.i64()?),
            before: Place(from.u64()?),
            tried: match from.u8()? {
                0 => None,
                1 => Some(Tried::read(from)?),
                _ => return None,
            },
            detail: *from,
        })
    }

    fn read_keys(from: &mut In<'a>) -> Option<Self> {
        let moved = from.u8()? != 0;
        let mut keys = Vec::new();
        while !from.is_empty() {
            keys.push(OldKey {
                hash: from.u64()?,
                seq: Seq(from.u64()?),
                accepted_at: Wall(from.i64()?),
                until: Wall(from.i64()?),
            });
        }
        Some(Self::Keys { keys, moved })
    }
}

impl<'a> Written<'a> {
    pub fn write(&self, out: &mut Out<'_>) {
        out.u64(self.seq.0)
            .u32(self.flow.0)
            .i64(self.accepted_at.0)
            .i64(self.expires_at.0)
            .i64(self.due_at.map_or(i64::MAX, |at| at.0))
            .u64(self.recipient)
            .u32(self.cost)
            .u64(self.key)
            .u64(self.body.0)
            .u64(self.body_check)
            .bytes(self.envelope);
    }

    fn read(from: &mut In<'a>) -> Option<Self> {
        Some(Self {
            seq: Seq(from.u64()?),
            flow: FlowId(from.u32()?),
            accepted_at: Wall(from.i64()?),
            expires_at: Wall(from.i64()?),
            due_at: maybe(from.i64()?),
            recipient: from.u64()?,
            cost: from.u32()?,
            key: from.u64()?,
            body: Place(from.u64()?),
            body_check: from.u64()?,
            envelope: from.bytes()?,
        })
    }
}

impl Tried {
    /// It shares a byte with `dead`, which was 0 or 1 in earlier versions.
    const UNCERTAIN_MAX: u8 = u8::MAX >> 1;

    pub fn write(&self, out: &mut Out<'_>) {
        out.u16(self.attempts)
            .i64(self.first_attempt_at.0)
            .u64(self.last_delay.0)
            .u8(self.uncertain.min(Self::UNCERTAIN_MAX) << 1 | u8::from(self.dead));
    }

    fn read(from: &mut In<'_>) -> Option<Self> {
        let mut tried = Self {
            attempts: from.u16()?,
            first_attempt_at: Wall(from.i64()?),
            last_delay: Nanos(from.u64()?),
            ..Self::default()
        };
        let marks = from.u8()?;
        (tried.uncertain, tried.dead) = (marks >> 1, marks & 1 != 0);
        Some(tried)
    }
}

impl Commit {
    pub const BYTES: usize = 48;

    pub fn write(&self, out: &mut Out<'_>) {
        out.u64(self.durable)
            .u64(self.start)
            .i64(self.at.0)
            .u64(self.boot_time.0)
            .u64(self.boot_id)
            .u64(self.last.0);
    }

    fn read(from: &mut In<'_>) -> Option<Self> {
        Some(Self {
            durable: from.u64()?,
            start: from.u64()?,
            at: Wall(from.i64()?),
            boot_time: Nanos(from.u64()?),
            boot_id: from.u64()?,
            last: Seq(from.u64()?),
        })
    }
}

/// What the engine's record needs besides to be replayed.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub at: Wall,
    /// The deferral of the message before this one.
    pub before: Place,
    /// Messages of the flow that a sweep does not reach.
    pub except: Vec<u64>,
}

/// Writes a record of the engine. Its kind.
pub fn kind_of(record: &Record) -> u8 {
    match record {
        Record::Deferral { .. } => DEFERRAL,
        Record::Settlement { .. } => SETTLEMENT,
        Record::Dead { .. } => DEAD,
        Record::Feedback { .. } => FEEDBACK,
        Record::Cancelled { .. } => CANCELLED,
        Record::Moved { .. } => MOVED,
        Record::Hastened { .. } => HASTENED,
        Record::Reservation { .. } => RESERVATION,
        Record::Forgotten { .. } => FORGOTTEN,
        Record::Held { .. } => HELD,
        Record::Adapted { .. } => ADAPTED,
    }
}

/// Writes what a record of the engine says.
pub fn write_record(out: &mut Out<'_>, record: &Record, context: &Context) {
    let at = context.at.0;
    match record {
        Record::Deferral {
            seq,
            until,
            attempt,
            ..
        } => {
            out.u64(seq.0).i64(at).i64(until.0).u64(context.before.0);
            write_attempt(out, attempt.as_deref());
        }
        Record::Settlement {
            seq,
            state,
            account,
            error,
            ..
        } => {
            out.u64(seq.0).i64(at).u8(*state as u8);
            words::write_detail(out, account.as_ref(), error.as_deref());
        }
        Record::Dead {
            seq,
            account,
            letter,
            ..
        } => {
            out.u64(seq.0).i64(at).u16(letter.attempts);
            out.u8(letter.cause as u8);
            words::write_detail(out, account.as_ref(), Some(&letter.error));
        }
        Record::Feedback { seq, error, .. } => {
            out.u64(seq.0).i64(at);
            words::write_detail(out, None, Some(error));
        }
        Record::Cancelled { flow, through } => {
            out.u32(flow.0).u64(through.0).i64(at);
            out.numbers(context.except.iter().copied());
        }
        Record::Moved {
            flow,
            to,
            through,
            held,
        } => {
            out.u32(flow.0).u32(to.0).u64(through.0);
            out.numbers(held.iter().map(|seq| seq.0));
            out.numbers(context.except.iter().copied());
        }
        Record::Hastened { flow, which } => {
            let (word, seq) = match which {
                Hasten::One(seq) => (0, seq),
                Hasten::Through(seq) => (1, seq),
            };
            out.u32(flow.0).i64(at).u8(word).u64(seq.0);
        }
        Record::Reservation { key, saved, block } => {
            let saved = serde_json::to_vec(saved).expect("numbers and words become JSON");
            out.u32(*block).text(&key.to_string()).bytes(&saved);
        }
        Record::Forgotten { key } => {
            out.text(&key.to_string());
        }
        Record::Held { key, hold } => {
            out.i64(hold.until.0).text(&key.to_string());
            out.u32(hold.per_minute);
        }
        Record::Adapted { key, lore } => {
            let lore = serde_json::to_vec(lore).expect("numbers and words become JSON");
            out.text(&key.to_string()).bytes(&lore);
        }
    }
}

fn write_attempt(out: &mut Out<'_>, attempt: Option<&Attempt>) {
    let Some(attempt) = attempt else {
        out.u8(0);
        words::write_detail(out, None, None);
        return;
    };
    let tried = Tried {
        attempts: attempt.attempts,
        uncertain: attempt.uncertain,
        first_attempt_at: attempt.first_attempt_at,
        last_delay: attempt.delay,
        dead: false,
    };
    tried.write(out.u8(1));
    words::write_detail(out, Some(&attempt.account), Some(&attempt.error));
}
