//! The controller, reply by reply.

#[path = "adapt/far_end.rs"]
mod far_end;
#[path = "adapt/gradient.rs"]
mod gradient;
#[path = "adapt/properties.rs"]
mod properties;
#[path = "adapt/restart.rs"]
mod restart;
#[path = "adapt/rules.rs"]
mod rules;

use outflow_core::adapt::{Cause, Controller, Profile, Settings, Signal};
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos, Now, Wall};

pub const SECOND: u64 = 1_000_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;

/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600 * SECOND as i64;

pub const REFUSED: Signal = Signal::Refused {
    cause: Cause::Rate,
    code: 421,
};

/// Both clocks, `nanos` after they were started at new year.
pub fn at(nanos: u64) -> Now {
    Now {
        mono: Mono(nanos),
        wall: Wall(NEW_YEAR) + Nanos(nanos),
        entropy: Entropy(0),
    }
}

pub fn seek(start: f64, cap: f64) -> Controller {
    Controller::new(&at(0), Settings::new(start, cap, Profile::Seek))
}

/// Sends `count` messages evenly over `span` from `from` on, each with this
/// reply after 100 ms.
pub fn feed(controller: &mut Controller, from: u64, span: u64, count: u64, signal: Signal) {
    for n in 0..count {
        let sent = from + span * n / count;
        controller.sent(&at(sent));
        controller.replied(&at(sent + SECOND / 10), Mono(sent), signal);
    }
}
