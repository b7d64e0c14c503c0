//! What was found, how bad it is, and what to do about it.

use serde::Serialize;

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Who may send for the domain.
    Spf,
    /// Keys for signatures.
    Dkim,
    /// What receivers do with what is neither.
    Dmarc,
    /// Who takes mail for the domain.
    Mx,
    /// Where bounces go.
    Bounces,
    /// Names of sending addresses.
    ReverseDns,
    /// What we call ourselves.
    Helo,
    /// Certificates.
    Tls,
    /// How bulk mail is left.
    Unsubscribe,
    /// Rates against what providers are known to take.
    Limits,
    /// How far new addresses are.
    WarmUp,
    /// Brands and campaigns for text messages to the US.
    #[serde(rename = "10dlc")]
    TenDlc,
}

impl Check {
    /// The word in tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spf => "spf",
            Self::Dkim => "dkim",
            Self::Dmarc => "dmarc",
            Self::Mx => "mx",
            Self::Bounces => "bounces",
            Self::ReverseDns => "reverse_dns",
            Self::Helo => "helo",
            Self::Tls => "tls",
            Self::Unsubscribe => "unsubscribe",
            Self::Limits => "limits",
            Self::WarmUp => "warm_up",
            Self::TenDlc => "10dlc",
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, but not everywhere or not for long.
    Warn,
    /// Mail is refused or lost because of it.
    Fail,
    /// It could not be found out.
    Unknown,
}

impl Status {
    /// The word in tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
        }
    }
}

/// A DNS record to publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// At which name.
    pub name: String,
    /// `TXT`, `PTR`, `A`, `MX`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What it says.
    pub value: String,
}

impl Record {
    /// A record.
    pub fn new(name: impl Into<String>, kind: &'static str, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            value: value.into(),
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// How bad it is.
    pub status: Status,
    /// What was found, in one sentence.
    pub what: String,
    /// What to do, in one sentence; nothing if all is well.
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub action: String,
    /// The exact record to publish, where it can be computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
}

/// Findings of one check while it looks.
#[derive(Debug)]
pub(crate) struct Findings {
    check: Check,
    pub all: Vec<Finding>,
}

impl Findings {
    pub const fn of(check: Check) -> Self {
        Self {
            check,
            all: Vec::new(),
        }
    }

    /// Whether nothing was found that is not as it should be.
    pub fn are_good(&self) -> bool {
        let mut all = self.all.iter();
        all.all(|finding| finding.status == Status::Ok)
    }

    pub fn ok(&mut self, what: impl Into<String>) {
        self.add(Status::Ok, what.into(), String::new());
    }

    pub fn warn(&mut self, what: impl Into<String>, action: impl Into<String>) -> &mut Self {
        self.add(Status::Warn, what.into(), action.into())
    }

    pub fn fail(&mut self, what: impl Into<String>, action: impl Into<String>) -> &mut Self {
        self.add(Status::Fail, what.into(), action.into())
    }

    pub fn unknown(&mut self, what: impl Into<String>, action: impl Into<String>) -> &mut Self {
        self.add(Status::Unknown, what.into(), action.into())
    }

    /// The record to publish for the last finding.
    pub fn publish(&mut self, record: Record) {
        if let Some(last) = self.all.last_mut() {
            last.record = Some(record);
        }
    }

    fn add(&mut self, status: Status, what: String, action: String) -> &mut Self {
        self.all.push(Finding {
            check: self.check,
            status,
            what,
            action,
            record: None,
        });
        self
    }
}

/// At most so many characters of what a stranger wrote.
pub(crate) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    match text.chars().count() > CHARS_MAX {
        true => {
            let start: String = text.chars().take(CHARS_MAX).collect();
            format!("\"{start}...\"")
        }
        false => format!("\"{text}\""),
    }
}
