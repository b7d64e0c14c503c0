//! Addresses, by type: what is not one never reaches a header or an envelope.

use std::fmt;

use outflow_core::message::Recipient;
use outflow_core::name::Name;
use outflow_ports::draft::{self, To};

const LOCAL_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
const DISPLAY_BYTES_MAX: usize = 256;

/// The address of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
    at: usize,
}

/// Why a text is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing was written.
    #[error("must not be empty")]
    Empty,
    /// There is no @.
    #[error("is not an address: write it as in user@example.com")]
    NoAt,
    /// A line break, a NUL or another control character.
    #[error("has a control character in it, such as a line break")]
    Control,
    /// What stands before the @.
    #[error("has something before the @ that an address cannot have there")]
    Local,
    /// What stands after the @.
    #[error("has no valid domain after the @")]
    Domain,
    /// What stands before the address.
    #[error("has a name that is too long, or an angle bracket out of place")]
    Display,
}

impl Address {
    /// Reads `user@example.com`. The domain becomes lower case and ASCII.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(AddressError::Control);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError::NoAt)?;
        if !is_local(local) {
            return Err(AddressError::Local);
        }
        let domain = domain_to_ascii(domain).ok_or(AddressError::Domain)?;
        Ok(Self {
            text: format!("{local}@{domain}"),
            at: local.len(),
        })
    }

    /// As it stands in an envelope.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What stands after the @.
    pub fn domain(&self) -> &str {
        self.text.get(self.at + 1..).unwrap_or_default()
    }

    /// The key under which limits know this recipient.
    pub fn recipient(&self) -> Recipient {
        draft::recipient(&self.text)
    }

    /// As the recipient of a message.
    pub fn into_recipient(self) -> To {
        To {
            domain: Name::from(self.domain()),
            address: self.text,
        }
    }

    /// Gives the text away.
    pub fn into_string(self) -> String {
        self.text
    }
}

/// A domain in lower case and ASCII, if it is one.
pub fn domain_to_ascii(domain: &str) -> Option<String> {
    let plain = domain
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    let ascii = match plain {
        true => domain.to_owned(),
        false => idna::domain_to_ascii(domain).ok()?,
    };
    let is_label = |label: &str| {
        let letters = label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        letters
            && (1..=LABEL_BYTES_MAX).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let fits = ascii.len() <= DOMAIN_BYTES_MAX && ascii.split('.').all(is_label);
    fits.then_some(ascii)
}

fn is_local(local: &str) -> bool {
    if local.is_empty() || local.len() > LOCAL_BYTES_MAX {
        return false;
    }
    let quoted = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    if let Some(inside) = quoted {
        return !inside.is_empty()
            && inside
                .bytes()
                .all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
    }
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_atext);
    local.split('.').all(is_atom)
}

fn is_atext(letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || "!#$%&'*+-/=?^_`{|}~".contains(letter)
        || (!letter.is_ascii() && !letter.is_whitespace())
}

/// An address, perhaps with the name of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    display: Option<String>,
    /// The address.
    pub address: Address,
}

impl Mailbox {
    /// Reads `user@example.com` or `A Person <user@example.com>`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim_matches(' ');
        let Some(rest) = text.strip_suffix('>') else {
            let address = Address::parse(text)?;
            return Ok(Self {
                display: None,
                address,
            });
        };
        if text.chars().any(char::is_control) {
            return Err(AddressError::Control);
        }
        let (display, address) = rest.rsplit_once('<').ok_or(AddressError::Display)?;
        let display = display.trim_matches(' ');
        let quoted = display
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let display = quoted.unwrap_or(display);
        if display.len() > DISPLAY_BYTES_MAX || display.contains(['<', '>', '"', '\\']) {
            return Err(AddressError::Display);
        }
        Ok(Self {
            display: (!display.is_empty()).then(|| display.to_owned()),
            address: Address::parse(address)?,
        })
    }
}

/// As it stands in a header field, before encoding.
impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.display {
            Some(display) => write!(f, "\"{display}\" <{}>", self.address.as_str()),
            None => f.write_str(self.address.as_str()),
        }
    }
}
