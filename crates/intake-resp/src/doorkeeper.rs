//! Who may ask.

use outflow_core::class::Class;
use outflow_core::name::Name;

/// Knows tokens. The application asks its tokens of the API.
pub trait Doorkeeper: Send + Sync {
    /// What `token` opens; none if it is not known, or not for this. It is asked
    /// again every second, so a token that was withdrawn opens nothing, and must
    /// not wait: it is called from the executor.
    fn admit(&self, token: &str) -> Option<Pass>;
}

/// What a token opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// For whom its connections count.
    pub party: String,
    /// The only tenant it speaks for.
    pub tenant: Option<Name>,
    /// The only classes it may ask for; all if empty.
    pub classes: Vec<Class>,
}

impl Pass {
    /// Whether limits may be asked for in this class.
    pub fn may_class(&self, class: Class) -> bool {
        self.classes.is_empty() || self.classes.contains(&class)
    }

    /// Whose keys it uses.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_ref().map(Name::as_str)
    }
}
