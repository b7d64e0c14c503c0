//! Medians and percentiles: the machine is shared, so single rounds say little.

/// The middle of some figures.
pub fn median(figures: &[f64]) -> f64 {
    percentile(figures, 50.0)
}

/// What so many in a hundred do not exceed.
pub fn percentile(figures: &[f64], percent: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let at = (last as f64 * percent / 100.0).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// With one digit behind the point, as people read it.
pub fn short(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}

/// With three digits behind the point.
pub fn exact(figure: f64) -> f64 {
    (figure * 1_000.0).round() / 1_000.0
}
