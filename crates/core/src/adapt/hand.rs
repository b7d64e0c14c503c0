//! What operators do: hold a rate, let it go, forget what was learnt, change the
//! policy.

use super::incident::Incident;
use super::{Controller, Mode, Profile, Settings};
use crate::time::{Mono, Now};

impl Controller {
    /// An operator holds it at `rate`, until `until` or for good.
    pub fn pin(&mut self, now: &Now, rate: f64, until: Option<Mono>) {
        let rate = Settings::new(rate, self.settings.cap(), Profile::Seek).start();
        let until = until.map_or(u64::MAX, |until| self.tick(until));
        self.pinned = Some((rate, until));
        self.renew(self.at(now).tick);
    }

    /// Whether an operator holds it.
    pub const fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// The operator lets go.
    pub fn unpin(&mut self, now: &Now) {
        self.let_go(self.at(now).tick);
    }

    /// Forgets all that was learnt and starts as if new.
    pub fn reset(&mut self, now: &Now) {
        let epoch = self.epoch.wrapping_add(1);
        *self = Self::new(now, self.settings);
        self.epoch = epoch;
    }

    /// The operator changed the policy: what was learnt stays, the cap holds.
    pub fn set(&mut self, now: &Now, settings: Settings) {
        let at = self.at(now);
        let profile_changed = self.settings.profile() != settings.profile();
        self.settings = settings;
        if profile_changed {
            self.incident = Incident::default();
        }
        if self.rate > settings.cap() && self.is_stopped() {
            // The block goes on; then it is no faster than that.
            self.rate = settings.cap();
        } else if self.rate > settings.cap() {
            self.change(at, settings.cap(), Mode::Prove);
        }
    }

    /// The pin ends. What was sent under it was no probe.
    pub(super) fn let_go(&mut self, tick: u64) {
        self.pinned = None;
        self.block.probe = None;
        self.renew(tick);
    }

    pub(super) fn pin_at(&self, tick: u64) -> Option<f64> {
        self.pinned
            .and_then(|(rate, until)| (tick < until).then_some(rate))
    }
}
