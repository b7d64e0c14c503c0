//! Stretches of time in which a fault holds.

use outflow_core::time::Mono;

/// From a time up to, but without, another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first moment.
    pub from: Mono,
    /// The first moment after it.
    pub until: Mono,
}

impl Window {
    /// All of time.
    pub const ALWAYS: Self = Self {
        from: Mono(0),
        until: Mono::NEVER,
    };

    /// Whether `at` lies in it.
    pub fn holds(&self, at: Mono) -> bool {
        self.from <= at && at < self.until
    }
}

/// The window in which `at` lies, if any; of several the one that ends last.
pub fn around(windows: &[Window], at: Mono) -> Option<Window> {
    let holding = windows.iter().filter(|window| window.holds(at));
    holding.copied().max_by_key(|window| window.until)
}
