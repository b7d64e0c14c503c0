//! Places for connections, as all listeners of the server hand them out.

pub mod places;
