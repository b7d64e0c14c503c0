//! Addresses, by type: what is not one reaches neither a header nor a command.
//!
//! An [`Address`] holds no line break, no space and no angle bracket, so that
//! `RCPT TO:<...>` says what it seems to say, whoever wrote the address.

use std::fmt;
use std::str::FromStr;

use outflow_core::message::Recipient;
use outflow_core::name::Name;
use outflow_ports::draft::{self, To};

const LOCAL_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
const DISPLAY_BYTES_MAX: usize = 256;

/// The address of a mailbox. Its domain is in lower case and ASCII; what stands
/// before the @ may be UTF-8, and then needs SMTPUTF8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    text: String,
    at: usize,
}

/// Why a text is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing was written.
    #[error("an address must not be empty")]
    Empty,
    /// There is no @.
    #[error("an address is written as in user@example.com")]
    NoAt,
    /// A line break, a space, an angle bracket or a control character.
    #[error("an address has no spaces, angle brackets or control characters")]
    Forbidden,
    /// What stands before the @.
    #[error("what stands before the @ is not what an address has there")]
    Local,
    /// What stands after the @.
    #[error("what stands after the @ is no domain")]
    Domain,
    /// What stands before the address.
    #[error("the name before the address is too long, or has a bracket or quote out of place")]
    Display,
}

impl Address {
    /// Reads `user@example.com`. A domain in other scripts becomes ASCII.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        let forbidden =
            |letter: char| letter.is_control() || letter.is_whitespace() || "<>".contains(letter);
        if text.contains(forbidden) {
            return Err(AddressError::Forbidden);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError::NoAt)?;
        if !is_local(local) {
            return Err(AddressError::Local);
        }
        let domain = match domain.strip_prefix('[') {
            Some(literal) => address_literal(literal).ok_or(AddressError::Domain)?,
            None => domain_to_ascii(domain).ok_or(AddressError::Domain)?,
        };
        Ok(Self {
            text: format!("{local}@{domain}"),
            at: local.len(),
        })
    }

    /// As it stands in a command or a header, without brackets.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What stands before the @.
    pub fn local(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
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

    /// Whether a server can be told of it without SMTPUTF8.
    pub fn is_ascii(&self) -> bool {
        self.text.is_ascii()
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// A domain in lower case and ASCII, if it is one.
pub fn domain_to_ascii(domain: &str) -> Option<String> {
    // Most are plain already, and IDNA takes its time.
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    let ascii = match domain.bytes().all(is_plain) && !domain.contains("xn--") {
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

/// `[192.0.2.1]` or `[IPv6:2001:db8::1]`, from behind the first bracket.
fn address_literal(rest: &str) -> Option<String> {
    let inside = rest.strip_suffix(']')?;
    let v6 = inside
        .get(..5)
        .filter(|tag| tag.eq_ignore_ascii_case("IPv6:"));
    match v6 {
        Some(_) => {
            let address: std::net::Ipv6Addr = inside.get(5..)?.parse().ok()?;
            Some(format!("[IPv6:{address}]"))
        }
        None => {
            let address: std::net::Ipv4Addr = inside.parse().ok()?;
            Some(format!("[{address}]"))
        }
    }
}

fn is_local(local: &str) -> bool {
    if local.is_empty() || local.len() > LOCAL_BYTES_MAX {
        return false;
    }
    let quoted = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    if let Some(inside) = quoted {
        let plain = |byte: u8| matches!(byte, b'!'..=b'~') && !b"\"\\<>".contains(&byte);
        return !inside.is_empty() && inside.bytes().all(plain);
    }
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_atext);
    local.split('.').all(is_atom)
}

fn is_atext(letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || "!#$%&'*+-/=?^_`{|}~".contains(letter)
        || (!letter.is_ascii() && !letter.is_control() && !letter.is_whitespace())
}

/// An address, perhaps with the name of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    display: Option<String>,
    address: Address,
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
        let (display, address) = rest.rsplit_once('<').ok_or(AddressError::Display)?;
        let display = display.trim_matches(' ');
        if display.chars().any(char::is_control) {
            return Err(AddressError::Forbidden);
        }
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

    /// The name of the person, if there is one.
    pub fn display(&self) -> Option<&str> {
        self.display.as_deref()
    }

    /// The address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The address alone.
    pub fn into_address(self) -> Address {
        self.address
    }
}

/// As it is parsed again.
impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.display {
            Some(display) => write!(f, "\"{display}\" <{}>", self.address),
            None => fmt::Display::fmt(&self.address, f),
        }
    }
}
