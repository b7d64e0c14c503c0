//! From times and rates to places on the drawing.

/// A straight line from one range to another.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    from: (f64, f64),
    to: (f64, f64),
}

impl Scale {
    /// `from.0` lies at `to.0`, `from.1` at `to.1`.
    pub fn new(from: (f64, f64), to: (f64, f64)) -> Self {
        Self { from, to }
    }

    /// Where a value lies; outside of the range at its end.
    pub fn at(&self, value: f64) -> f64 {
        let width = self.from.1 - self.from.0;
        let share = if width > 0.0 {
            (value - self.from.0) / width
        } else {
            0.0
        };
        self.to.0 + share.clamp(0.0, 1.0) * (self.to.1 - self.to.0)
    }
}

/// Round numbers from 0 to at most `top`, about five.
pub fn round_ticks(top: f64) -> Vec<f64> {
    if !(top.is_finite() && top > 0.0) {
        return vec![0.0];
    }
    let rough = top / 5.0;
    let magnitude = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * magnitude);
    let count = (top / step).floor() as u32;
    (0..=count).map(|n| f64::from(n) * step).collect()
}

/// The step between times on the axis, in milliseconds: about eight of them.
pub fn time_step(length: i64) -> i64 {
    const SECONDS: [i64; 14] = [
        1, 5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400,
    ];
    let enough = SECONDS.into_iter().map(|seconds| seconds * 1_000);
    let mut enough = enough.filter(|step| length / step <= 9);
    enough.next().unwrap_or(7 * 86_400_000)
}
