//! How a hidden rate moves with the clock: up and down with the day, or cut for
//! a while several times a day.

use outflow_core::time::{NANOS_PER_SECOND, Nanos, Wall};
use serde::Deserialize;

use crate::units::{Share, Span};

const DAY: i64 = 86_400 * NANOS_PER_SECOND as i64;

/// The shape of a day.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shape {
    /// How far the rate swings around its mean, with its peak at noon UTC.
    pub swing: Share,
    /// Times at which only a part of the rate is allowed.
    pub dips: Vec<Dip>,
}

/// A part of each day with less.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dip {
    /// When it begins, after midnight UTC.
    pub at: Span,
    /// How long it lasts.
    pub lasts: Span,
    /// What share of the rate is left.
    pub to: Share,
}

impl Shape {
    /// What share of the rate is allowed at `wall`.
    pub fn factor(&self, wall: Wall) -> f64 {
        let since_midnight = Nanos(wall.0.rem_euclid(DAY).unsigned_abs());
        let turn = since_midnight.as_secs_f64() / 86_400.0;
        let swing = 1.0 - self.swing.0 * (turn * std::f64::consts::TAU).cos();
        let dip = self
            .dips
            .iter()
            .filter(|dip| since_midnight >= dip.at.0 && since_midnight < dip.at.0 + dip.lasts.0)
            .map(|dip| dip.to.0)
            .fold(1.0, f64::min);
        swing * dip
    }
}
