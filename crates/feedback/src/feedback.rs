//! What was learnt of one message.

use outflow_core::reply::{Enhanced, Reply, Stage};

/// What happened to a message after it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It was given up.
    Bounce,
    /// It is late, and is still being tried.
    Delay,
    /// It was delivered, or handed on to where no reports come from.
    Delivered,
    /// Its recipient, or his provider, complained.
    Complaint,
    /// Its recipient wants no more of them.
    OptOut,
    /// Its recipient says that it was no spam after all.
    NotSpam,
    /// It failed a check of its sender.
    AuthenticationFailure,
    /// A person or a program answered it.
    AutoReply,
    /// Something else was reported.
    Other,
}

impl Kind {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::Bounce,
        Self::Delay,
        Self::Delivered,
        Self::Complaint,
        Self::OptOut,
        Self::NotSpam,
        Self::AuthenticationFailure,
        Self::AutoReply,
        Self::Other,
    ];

    /// The word used in the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bounce => "bounce",
            Self::Delay => "delay",
            Self::Delivered => "delivered",
            Self::Complaint => "complaint",
            Self::OptOut => "opt_out",
            Self::NotSpam => "not_spam",
            Self::AuthenticationFailure => "authentication_failure",
            Self::AutoReply => "auto_reply",
            Self::Other => "other",
        }
    }
}

/// What was learnt of one message to one recipient. Texts come from outside:
/// they are bounded and have no control characters, but may say anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// What happened.
    pub kind: Kind,
    /// To whom it finally went.
    pub recipient: Option<String>,
    /// To whom we sent it, where that differs.
    pub original_recipient: Option<String>,
    /// The status that the report gives.
    pub status: Option<Enhanced>,
    /// What the last server said, as it said it; its lines stay apart.
    pub diagnostic: Option<String>,
    /// The server that reports.
    pub reporting_mta: Option<String>,
    /// The server that refused.
    pub remote_mta: Option<String>,
    /// The address that the message came from, as the reporter saw it.
    pub source_ip: Option<String>,
    /// The reporter's own word for a complaint.
    pub feedback_type: Option<String>,
    /// The id that we gave the envelope.
    pub envelope_id: Option<String>,
    /// The original's Message-ID, without its brackets.
    pub message_id: Option<String>,
    /// The original's return address.
    pub return_path: Option<String>,
    /// The field of the original's header that we signed.
    pub signed: Option<String>,
}

impl Feedback {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            recipient: None,
            original_recipient: None,
            status: None,
            diagnostic: None,
            reporting_mta: None,
            remote_mta: None,
            source_ip: None,
            feedback_type: None,
            envelope_id: None,
            message_id: None,
            return_path: None,
            signed: None,
        }
    }

    /// The refusal as if it had been said to us, for whoever reads replies. A
    /// complaint is none.
    pub fn reply(&self) -> Option<Reply> {
        let usual = match (self.kind, self.status) {
            (Kind::Bounce, Some(Enhanced(4, ..))) | (Kind::Delay, _) => 450,
            (Kind::Bounce, _) => 550,
            _ => return None,
        };
        let said = self.diagnostic.as_deref().unwrap_or_default();
        let (code, text) = split_code(said);
        let (enhanced, text) = Enhanced::split(text);
        Some(Reply::Said {
            stage: Stage::Data,
            code: code.unwrap_or(usual),
            enhanced: enhanced.or(self.status),
            text: text.to_owned().into(),
            retry_after: None,
            allows: None,
        })
    }
}

/// Splits `550-5.1.1 Unknown` into the code and the rest. Some servers put
/// words before the code; then those go.
fn split_code(said: &str) -> (Option<u16>, &str) {
    for (at, _) in said.match_indices(['4', '5']) {
        let is_start = said
            .get(..at)
            .and_then(|before| before.chars().next_back())
            .is_none_or(|before| !before.is_ascii_alphanumeric() && before != '.');
        let code = said.get(at..at + 3);
        let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
        let rest = said.get(at + 3..).unwrap_or_default();
        let ends = rest.is_empty() || rest.starts_with([' ', '-', '\n']);
        if is_start
            && ends
            && let Some(code) = code.and_then(|code| code.parse().ok())
        {
            return (Some(code), rest.trim_start_matches([' ', '-', '\n']));
        }
    }
    (None, said)
}

/// A mail that reports something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it says, one for each recipient.
    pub feedback: Vec<Feedback>,
    /// The addresses that may say which message it is about: the original's
    /// own signed field and return address, and where the report was sent to.
    pub addresses: Vec<String>,
}
