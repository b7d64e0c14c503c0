//! What a key of the settings is: its name, the form of its value, its default
//! and what it means.
//!
//! One table of these (see [`crate::keys`]) is the schema that checks what
//! people write, the source of the reference and of the commented default file,
//! and the list from which a typing error is corrected.

use outflow_core::time::Nanos;

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What its value looks like.
    pub form: Form,
    /// The value in force if it is not written, as it would be written in TOML.
    pub default: Option<&'static str>,
    /// A value to show where there is no default.
    pub example: Option<&'static str>,
    /// Whether it stays out of the example of an account or policy, because it
    /// is another way to write something else, or rarely wanted.
    pub is_aside: bool,
    /// What it means, in a sentence or two.
    pub doc: &'static str,
}

impl Key {
    /// A key without default.
    pub const fn new(name: &'static str, form: Form, doc: &'static str) -> Self {
        Self {
            name,
            form,
            default: None,
            example: None,
            is_aside: false,
            doc,
        }
    }

    /// The same with a default.
    #[must_use]
    pub const fn default(mut self, toml: &'static str) -> Self {
        self.default = Some(toml);
        self
    }

    /// The same, left out of the example as a whole.
    #[must_use]
    pub const fn aside(mut self) -> Self {
        self.is_aside = true;
        self
    }

    /// The same with a value to show.
    #[must_use]
    pub const fn example(mut self, toml: &'static str) -> Self {
        self.example = Some(toml);
        self
    }
}

/// What a value looks like, and its bounds.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Any text, of at most so many characters, none of them a control.
    Text(usize),
    /// The path of a file or folder.
    Path,
    /// A name: text that is short and not `*`.
    Name,
    /// The name of something that has a URL of its own.
    Id,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number between two others.
    Whole(u64, u64),
    /// Any number between two others.
    Number(u32, u32),
    /// True or false.
    Flag,
    /// A length of time between two others.
    Span(Nanos, Nanos),
    /// A number of bytes between two others.
    Size(u64, u64),
    /// A share as `20%`, or as a number from 0 to 1.
    Share,
    /// A rate, or a share of another, as text or number.
    Rate,
    /// A rate that is neither spaced nor a share.
    PlainRate,
    /// An entry of a list of limits.
    Limit,
    /// Address and port.
    Listen,
    /// An IP address.
    Ip,
    /// The addresses that share their first bits.
    Network,
    /// The name of a host or a domain.
    Host,
    /// A URL with one of these schemes.
    Url(&'static [&'static str]),
    /// The name of an environment variable.
    Variable,
    /// A point of time, RFC 3339.
    Time,
    /// An answer of a far end: `451 4.3.0 Try later`, or a bare status.
    Reply,
    /// What a policy governs.
    Match,
    /// A secret.
    Secret,
    /// A table of these keys.
    Table(&'static [Key]),
    /// A list of at most so many.
    List(&'static Form, usize),
    /// One of several forms; the last one's complaint is told.
    Either(&'static [Form]),
}

impl Form {
    /// What to write, in a few words.
    pub fn wanted(&self) -> String {
        match self {
            Self::Text(max) => format!("text of at most {max} characters"),
            Self::Path => "a path".to_owned(),
            Self::Name => "a name of at most 128 characters".to_owned(),
            Self::Id => "a name of letters, digits and . _ - + @ :".to_owned(),
            Self::Word(words) => match words {
                [one] => format!("{one:?}"),
                [most @ .., last] => format!("{} or {last}", most.join(", ")),
                [] => "nothing".to_owned(),
            },
            Self::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Flag => "true or false".to_owned(),
            Self::Span(min, max) => format!(
                "a time from {} to {}, such as \"90s\", \"5m\", \"4h\" or \"2d\"",
                crate::figure::span_text(*min),
                crate::figure::span_text(*max)
            ),
            Self::Size(min, max) => format!(
                "a size from {} to {}, such as \"64MB\"",
                crate::figure::size_text(*min),
                crate::figure::size_text(*max)
            ),
            Self::Share => "a share such as \"20%\"".to_owned(),
            Self::Rate => {
                "a rate such as \"40/s\", \"40/s spaced\" or \"10%\", or a number for so many a second"
                    .to_owned()
            }
            Self::PlainRate => "a rate such as \"5/s\", or a number for so many a second".to_owned(),
            Self::Limit => {
                "a limit such as \"14/s burst 28\", \"600/min\" or \"50k/day@America/Los_Angeles\""
                    .to_owned()
            }
            Self::Listen => "an address and port such as \"127.0.0.1:8025\"".to_owned(),
            Self::Ip => "an IP address".to_owned(),
            Self::Network => "a network such as \"10.20.0.0/16\", or an IP address".to_owned(),
            Self::Host => "the name of a host".to_owned(),
            Self::Url(schemes) => format!("a URL that begins with {}://", schemes.join(":// or ")),
            Self::Variable => "the name of an environment variable".to_owned(),
            Self::Time => "a time such as \"2026-03-02T08:00:00Z\"".to_owned(),
            Self::Reply => "an answer such as \"451 4.3.0 Try later\", or 429".to_owned(),
            Self::Match => {
                "a table such as { isp = \"google\", ip = \"*\" }".to_owned()
            }
            Self::Secret => "the secret as text".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::List(form, max) => format!("a list of at most {max}, each {}", form.wanted()),
            Self::Either(forms) => {
                let forms: Vec<String> = forms.iter().map(Self::wanted).collect();
                forms.join(", or ")
            }
        }
    }
}
