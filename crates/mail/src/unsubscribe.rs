//! How a recipient takes himself off a list: `List-Unsubscribe` (RFC 2369) and,
//! with one click, `List-Unsubscribe-Post` (RFC 8058). The large mailbox
//! providers ask for both from whoever sends much.

use outflow_ports::letter;

use crate::address::Address;

const URL_BYTES_MAX: usize = 900;

/// What is said of leaving the list, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsubscribe {
    url: Option<String>,
    mailto: Option<String>,
    one_click: bool,
}

/// Why it cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsubscribeError {
    /// Neither a page nor an address.
    #[error("unsubscribe needs a url, a mailto or both")]
    Nothing,
    /// The page is not an `https` URL in ASCII.
    #[error(
        "unsubscribe.url is an https URL of at most 900 ASCII letters, without <, > and spaces"
    )]
    Url,
    /// The address is none.
    #[error("unsubscribe.mailto is an address, perhaps with ?subject=...")]
    Mailto,
    /// One click without a page.
    #[error("unsubscribe.one_click needs a url to which the click is posted")]
    NoPage,
}

impl Unsubscribe {
    /// Checks what a letter says.
    pub fn new(said: &letter::Unsubscribe) -> Result<Self, UnsubscribeError> {
        if said.url.is_none() && said.mailto.is_none() {
            return Err(UnsubscribeError::Nothing);
        }
        if said.one_click && said.url.is_none() {
            return Err(UnsubscribeError::NoPage);
        }
        let url = said.url.as_deref();
        if url.is_some_and(|url| !is_plain(url) || !starts_with_https(url)) {
            return Err(UnsubscribeError::Url);
        }
        let mailto = said.mailto.as_deref().map(mailto).transpose()?;
        Ok(Self {
            url: url.map(str::to_owned),
            mailto,
            one_click: said.one_click,
        })
    }

    /// The value of `List-Unsubscribe`: the page first.
    pub fn list(&self) -> impl Iterator<Item = &str> {
        let url = self.url.as_deref();
        url.into_iter().chain(self.mailto.as_deref())
    }

    /// Whether `List-Unsubscribe-Post` is said.
    pub fn one_click(&self) -> bool {
        self.one_click
    }
}

fn starts_with_https(url: &str) -> bool {
    let start = url.get(..8);
    start.is_some_and(|start| start.eq_ignore_ascii_case("https://")) && url.len() > 8
}

/// Printable ASCII that cannot end the brackets around it.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'!'..=b'~') && !b"<>".contains(&byte);
    text.len() <= URL_BYTES_MAX && text.bytes().all(plain)
}

fn mailto(text: &str) -> Result<String, UnsubscribeError> {
    let text = text.strip_prefix("mailto:").unwrap_or(text);
    let address = text.split('?').next().unwrap_or_default();
    let address = Address::parse(address).map_err(|_| UnsubscribeError::Mailto)?;
    let query = text.split_once('?').map(|(_, query)| query);
    let mailto = match query {
        Some(query) => format!("mailto:{address}?{query}"),
        None => format!("mailto:{address}"),
    };
    // A comma would end the entry of the list.
    match is_plain(&mailto) && !mailto.contains(',') {
        true => Ok(mailto),
        false => Err(UnsubscribeError::Mailto),
    }
}
