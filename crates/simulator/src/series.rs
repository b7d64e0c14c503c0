//! A run over time, in a bounded number of bins.
//!
//! Bins start narrow; when there are too many, neighbours are merged and the
//! width doubles. So the length of a run need not be known beforehand, and a
//! chart always has between 256 and 512 points.

use outflow_core::class::Class;
use outflow_core::time::Nanos;
use serde::Serialize;

const BINS: usize = 512;
const NARROWEST: Nanos = Nanos::from_millis(10);

/// What happened in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Messages accepted.
    pub offered: u64,
    /// Messages handed to a transport.
    pub sent: u64,
    /// The most that waited, by class.
    pub depth: [u64; Class::COUNT],
}

/// A run over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Series {
    /// The width of a bin in nanoseconds.
    pub width_ns: u64,
    /// All bins from the start.
    pub bins: Vec<Bin>,
    #[serde(skip)]
    depth: [u64; Class::COUNT],
}

impl Default for Series {
    fn default() -> Self {
        Self {
            width_ns: NARROWEST.0,
            bins: Vec::new(),
            depth: [0; Class::COUNT],
        }
    }
}

impl Series {
    /// The bin of `at`. Bins between the last one and it keep the depth.
    fn bin(&mut self, at: Nanos) -> Option<&mut Bin> {
        while (at.0 / self.width_ns) as usize >= BINS {
            self.widen();
        }
        let index = (at.0 / self.width_ns) as usize;
        let idle = Bin {
            depth: self.depth,
            ..Bin::default()
        };
        if self.bins.len() <= index {
            self.bins.resize(index + 1, idle);
        }
        self.bins.get_mut(index)
    }

    fn widen(&mut self) {
        self.width_ns *= 2;
        let pairs = self.bins.chunks(2);
        self.bins = pairs
            .map(|pair| {
                pair.iter().fold(Bin::default(), |sum, bin| Bin {
                    offered: sum.offered + bin.offered,
                    sent: sum.sent + bin.sent,
                    depth: std::array::from_fn(|class| {
                        let of = |bin: &Bin| bin.depth.get(class).copied().unwrap_or(0);
                        of(&sum).max(of(bin))
                    }),
                })
            })
            .collect();
    }

    /// A message was accepted.
    pub fn offered(&mut self, at: Nanos) {
        if let Some(bin) = self.bin(at) {
            bin.offered += 1;
        }
    }

    /// A message was handed to a transport.
    pub fn sent(&mut self, at: Nanos) {
        if let Some(bin) = self.bin(at) {
            bin.sent += 1;
        }
    }

    /// So many messages of a class wait now.
    pub fn depth(&mut self, at: Nanos, class: Class, waiting: u64) {
        if let Some(bin) = self.bin(at)
            && let Some(depth) = bin.depth.get_mut(class.index())
        {
            *depth = (*depth).max(waiting);
        }
        if let Some(depth) = self.depth.get_mut(class.index()) {
            *depth = waiting;
        }
    }

    /// The run is over at `at`.
    pub fn finish(&mut self, at: Nanos) {
        self.bin(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_fits_and_loses_nothing() {
        let mut series = Series::default();
        for second in 0..100_000 {
            series.offered(Nanos::from_secs(second));
            series.depth(Nanos::from_secs(second), Class::Low, second % 7);
        }
        series.finish(Nanos::from_secs(100_000));
        assert!(
            (256..=512).contains(&series.bins.len()),
            "{}",
            series.bins.len()
        );
        let sum: u64 = series.bins.iter().map(|bin| bin.offered).sum();
        assert_eq!(sum, 100_000);
        assert!(series.bins.iter().all(|bin| bin.depth[3] <= 6));
    }

    #[test]
    fn depth_lasts_until_it_changes() {
        let mut series = Series::default();
        series.depth(Nanos::ZERO, Class::High, 5);
        series.finish(Nanos::from_millis(95));
        assert!(series.bins.iter().all(|bin| bin.depth[1] == 5));
        assert_eq!(series.bins.len(), 10);
    }
}
