//! Writes the history: every ten seconds what was sent where, and the rates in
//! force where they changed or messages flowed.
//!
//! It runs beside the node and asks it one question a slice, none if nothing
//! was sent. What the process has not written when it is killed is lost: at
//! most the last slice.

use std::sync::Arc;
use std::time::Duration;

use outflow_api::Clock;
use outflow_core::reply::Enhanced;
use outflow_core::time::{NANOS_PER_SECOND, Nanos, Wall};
use outflow_pipeline::Handle;
use outflow_ports::history::{Attempts, History, RateInForce, Refusal, SLICE_S, Slice, beginning};
use outflow_ports::query::Query;
use outflow_ports::receipts::Receipts;
use outflow_telemetry::catalogue::{Event, Level};
use outflow_telemetry::history::{Counted, Refusals};
use outflow_telemetry::sink::Sink;
use outflow_telemetry::{Lately, without_addresses};

use super::metrics::asked;
use super::rates::Rates;
use super::wiring::SystemClock;

/// Texts that are looked up for one slice.
const TEXTS_MAX: usize = 50;

/// Writes the history.
pub struct Historian {
    /// Who counts.
    pub lately: Arc<Lately>,
    /// Who knows the limits.
    pub node: Handle,
    /// Who knows what far ends said.
    pub receipts: Arc<dyn Receipts>,
    /// Where it is kept.
    pub history: Arc<dyn History>,
    /// Where it is told if that fails.
    pub sink: Arc<dyn Sink>,
    /// What was last written of each limit.
    pub rates: Rates,
}

impl Historian {
    /// Writes at the end of each slice, and once more when `stopped` is done.
    pub async fn run(self, stopped: impl Future) {
        tokio::pin!(stopped);
        let mut this = self;
        let mut slice = beginning(SystemClock.now(), SLICE_S);
        loop {
            let end = Wall(slice.0.saturating_add(slice_nanos()));
            let left = end
                .since(SystemClock.now())
                .min(Nanos(slice_nanos().unsigned_abs()));
            let is_last = tokio::select! {
                () = tokio::time::sleep(Duration::from_nanos(left.0)) => false,
                _ = &mut stopped => true,
            };
            // Where it lies is the time at which it was counted, whatever the
            // wall clock does in between.
            let at = slice;
            let done = tokio::task::spawn_blocking(move || {
                this.write(at, is_last);
                this
            });
            match done.await {
                Ok(back) if !is_last => this = back,
                _ => return,
            }
            slice = beginning(SystemClock.now(), SLICE_S);
        }
    }

    fn write(&mut self, at: Wall, is_last: bool) {
        let counted = self.lately.take();
        let mut slices = Vec::with_capacity(counted.len());
        // A store that has stopped answers no more.
        let mut texts_left = if is_last { 0 } else { TEXTS_MAX };
        for one in &counted {
            self.add(at, one, &mut texts_left, &mut slices);
        }
        let rates = match counted.is_empty() || is_last {
            true => Vec::new(),
            // Asked at the end of the slice, in force from then on: a line must
            // not fall before what made it fall.
            false => self.rates(Wall(at.0.saturating_add(slice_nanos())), &counted),
        };
        if let Err(error) = self.history.write(&slices, &rates) {
            self.sink.emit(&Event::Noted {
                level: Level::Warn,
                part: "history",
                text: &format!("{error}; ten seconds of it are lost"),
            });
        }
    }

    fn add(&self, at: Wall, one: &Counted, texts_left: &mut usize, slices: &mut Vec<Slice>) {
        let [accepted, refused, deferred, bounced] = one.counts;
        let attempts = accepted + refused + deferred + bounced;
        let mut accounts = Vec::with_capacity(one.refused.len());
        for (account, refusals) in &one.refused {
            let said = match *texts_left {
                0 => String::new(),
                _ => self.said(refusals),
            };
            *texts_left = texts_left.saturating_sub(1);
            let attempts = Attempts {
                refused: refusals.count,
                ..Attempts::default()
            };
            accounts.push(Slice {
                at,
                destination: one.destination.clone(),
                account: Some(account.clone()),
                attempts,
                peak: 0,
                refusal: Some(Refusal {
                    at: refusals.at,
                    class: refusals.class.as_str().to_owned(),
                    code: refusals.code,
                    said,
                }),
            });
        }
        let first = accounts.iter().filter_map(|it| it.refusal.as_ref());
        slices.push(Slice {
            at,
            destination: one.destination.clone(),
            account: None,
            attempts: Attempts {
                attempts,
                accepted,
                refused,
                deferred,
                bounced,
            },
            peak: attempts,
            refusal: first.min_by_key(|it| it.at).cloned(),
        });
        slices.append(&mut accounts);
    }

    /// What the far end said, from the timeline of the message.
    fn said(&self, refusals: &Refusals) -> String {
        let seq = refusals.message.seq();
        let events = self.receipts.events(seq).unwrap_or_default();
        let events = match events.is_empty() {
            false => events,
            true => {
                let receipt = self.receipts.get(seq).ok().flatten();
                receipt.map(|receipt| receipt.events).unwrap_or_default()
            }
        };
        let same = |class| class == refusals.class;
        let mut errors = events.into_iter().filter_map(|event| event.error);
        let found = errors.rfind(|error| same(error.class));
        found.map_or_else(String::new, |error| {
            let code = error
                .enhanced
                .map_or_else(String::new, |Enhanced(class, subject, detail)| {
                    format!("{class}.{subject}.{detail} ")
                });
            code + &without_addresses(&error.text)
        })
    }

    /// The rates that changed, are gone, or were not written for long where
    /// messages flowed. A node that does not answer says nothing of them.
    fn rates(&mut self, at: Wall, counted: &[Counted]) -> Vec<RateInForce> {
        let Some(limits) = asked(|then| self.node.limits(then)) else {
            return Vec::new();
        };
        let limits = limits.into_iter().map(|limit| (limit.key, limit.rate));
        let is_busy = |place: &str| counted.iter().any(|it| it.destination == place);
        self.rates.rows(at, limits, is_busy)
    }
}

const fn slice_nanos() -> i64 {
    (SLICE_S as u64 * NANOS_PER_SECOND).cast_signed()
}
