//! How a node ends: intake stops, what is in flight finishes, records become
//! durable.

/// Where a node stands on its way to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Takes messages and sends them.
    #[default]
    Running,
    /// Takes nothing, sends nothing new, waits for replies and commits.
    Draining,
    /// Everything is settled: the process may end.
    Done,
}
