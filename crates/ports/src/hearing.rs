//! What others tell of messages later: reports by mail, and events that a
//! program passes on. Calls may wait for a disk.

use outflow_core::message_id::MessageId;
use outflow_core::time::Wall;

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It bounced for good: there is no such mailbox.
    Bounce,
    /// Somebody complained.
    Complaint,
    /// It was opened.
    Open,
    /// Something in it was clicked.
    Click,
    /// Its recipient wants no more.
    OptOut,
}

impl Told {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Bounce,
        Self::Complaint,
        Self::Open,
        Self::Click,
        Self::OptOut,
    ];

    /// The word used in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bounce => "bounce",
            Self::Complaint => "complaint",
            Self::Open => "open",
            Self::Click => "click",
            Self::OptOut => "opt_out",
        }
    }
}

/// An event that a program passes on.
#[derive(Clone, Debug)]
pub struct Tale {
    /// What happened.
    pub told: Told,
    /// To which message.
    pub message: Option<MessageId>,
    /// To whom it went, in lower case; needed if the message is not named.
    pub recipient: Option<String>,
    /// Whose mail it is about, if no message is named.
    pub tenant: String,
    /// When.
    pub at: Wall,
    /// What was said.
    pub reason: String,
}

/// What became of what was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hearsay {
    /// So many things were told.
    pub read: u64,
    /// So many were about messages of ours.
    pub matched: u64,
    /// So many recipients were put on the suppression list by it.
    pub suppressed: u64,
}

impl Hearsay {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.read += other.read;
        self.matched += other.matched;
        self.suppressed += other.suppressed;
    }
}

/// Why nothing could be done with what was told.
#[derive(Debug, thiserror::Error)]
#[error("what was told could not be looked up or kept: {0}")]
pub struct HearingError(pub String);

/// Hears what others tell of messages.
pub trait Hearing: Send + Sync {
    /// The message whose return address this is, if we made it.
    fn return_address(&self, address: &str) -> Option<MessageId>;

    /// A report by mail. `about` is the message of the return address that it
    /// came to; `tenant`, if there is one, is the only one whose messages it
    /// may speak of.
    fn mail(
        &self,
        mail: &[u8],
        about: Option<MessageId>,
        tenant: Option<&str>,
    ) -> Result<Hearsay, HearingError>;

    /// Events. `tenant`, if there is one, is the only one whose messages they
    /// may speak of.
    fn tales(&self, tales: &[Tale], tenant: Option<&str>) -> Result<Hearsay, HearingError>;
}
