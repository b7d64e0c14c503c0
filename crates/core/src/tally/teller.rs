//! Who tells what became of a message later, and for whom that counts.

/// Who tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teller {
    /// A far end, by an address that we signed, or somebody who speaks for all
    /// tenants: it counts for all that the message was sent by and to.
    FarEnd,
    /// A tenant, of its own mail. Nobody can check that, so it counts for that
    /// tenant and slows nobody else.
    Tenant,
}
