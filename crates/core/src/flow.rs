//! What makes two messages members of the same flow.
//!
//! Messages of one lane, class, tenant, campaign and sending domain face
//! exactly the same limits, in order. So limits are worked out once per flow,
//! and only flows are scheduled.

use crate::class::Class;
use crate::destination::Destination;
use crate::message::Channel;
use crate::name::Name;

/// Everything about a message that a limit, a pause or an account can match,
/// except its recipient.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Which accounts may send it.
    pub pool: Name,
    /// Who judges it.
    pub destination: Destination,
    /// How urgent it is.
    pub class: Class,
    /// Whose it is.
    pub tenant: Name,
    /// What it belongs to.
    pub campaign: Option<Name>,
    /// The domain it is sent from.
    pub sender_domain: Option<Name>,
    /// How it travels.
    pub channel: Channel,
}

impl FlowKey {
    /// A flow of the default pool, class and tenant.
    pub fn to(destination: Destination) -> Self {
        Self {
            pool: Name::from("default"),
            destination,
            class: Class::Normal,
            tenant: Name::from("default"),
            campaign: None,
            sender_domain: None,
            channel: Channel::Email,
        }
    }
}
