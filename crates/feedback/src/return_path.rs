//! Return addresses that say which message a report is about.
//!
//! `bounce+TAG@example.com`: the tag carries the message's id and a signature,
//! so that nobody can have a message of ours counted as bounced, or a recipient
//! suppressed, by guessing. The tag is 47 letters and digits whose case does not
//! matter, so that the left side keeps below its 64 octets.
//!
//! The header of a mail carries such an address too, `report+TAG@example.com`,
//! for reports that give the header back. A header is shown to more people than
//! an envelope: whoever was forwarded the mail can read it. So it is signed for a
//! purpose of its own, and mail to it is taken from nobody; it counts in a report
//! that somebody hands over who may speak for the message.
//!
//! Keys change: the first one signs, all of them are taken.

use std::fmt;

use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use outflow_core::time::Wall;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::base32;
use crate::feedback::Report;

/// The form of the tag: this, six bytes of time, six of number, the signature.
const VERSION: u8 = 1;
const ID_BYTES: usize = 12;
const SIGNATURE_BYTES: usize = 16;
/// What an address is for.
#[derive(Clone, Copy)]
enum Purpose {
    /// Reports are sent to it.
    Envelope,
    /// It stands in the header.
    Field,
}

impl Purpose {
    /// What stands before the tag.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Envelope => "bounce+",
            Self::Field => "report+",
        }
    }

    /// What is signed besides the id, so that no other signature by the same key
    /// can stand in for one of these.
    const fn signed(self) -> &'static [u8] {
        match self {
            Self::Envelope => b"outflow return path\0",
            Self::Field => b"outflow report field\0",
        }
    }
}

/// Shorter keys can be guessed.
pub const KEY_BYTES_MIN: usize = 16;
/// No more keys are tried.
pub const KEYS_MAX: usize = 8;

/// Why there can be no return addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReturnPathError {
    /// No key, or too many.
    #[error("return addresses need 1 to {KEYS_MAX} keys")]
    Keys,
    /// A key that can be guessed.
    #[error("a key of return addresses has at least {KEY_BYTES_MIN} bytes")]
    ShortKey,
    /// A domain that is none.
    #[error("{0:?} is not a domain that mail can return to")]
    Domain(String),
}

/// Makes return addresses, and knows its own again.
#[derive(Clone)]
pub struct ReturnPaths {
    domain: String,
    keys: Vec<hmac::Key>,
}

impl fmt::Debug for ReturnPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReturnPaths({}, {} keys)", self.domain, self.keys.len())
    }
}

impl ReturnPaths {
    /// Addresses at `domain`. The first key signs.
    pub fn new(domain: &str, keys: &[&[u8]]) -> Result<Self, ReturnPathError> {
        let is_label = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        if domain.is_empty() || domain.len() > 255 || !domain.bytes().all(is_label) {
            return Err(ReturnPathError::Domain(domain.chars().take(255).collect()));
        }
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(ReturnPathError::Keys);
        }
        if keys.iter().any(|key| key.len() < KEY_BYTES_MIN) {
            return Err(ReturnPathError::ShortKey);
        }
        let key = |key: &&[u8]| hmac::Key::new(hmac::HMAC_SHA256, key);
        Ok(Self {
            domain: domain.to_ascii_lowercase(),
            keys: keys.iter().map(key).collect(),
        })
    }

    /// The return address of a message.
    pub fn address(&self, id: MessageId) -> String {
        self.made_for(Purpose::Envelope, id)
    }

    /// The address that stands in the header of a message.
    pub fn field(&self, id: MessageId) -> String {
        self.made_for(Purpose::Field, id)
    }

    fn made_for(&self, purpose: Purpose, id: MessageId) -> String {
        let mut tag = vec![VERSION];
        tag.extend_from_slice(&id_bytes(id));
        if let Some(key) = self.keys.first() {
            tag.extend_from_slice(&signature(key, purpose, &id_bytes(id)));
        }
        let (prefix, tag) = (purpose.prefix(), base32::encode(&tag));
        format!("{prefix}{tag}@{}", self.domain)
    }

    /// The message whose return address this is; nothing if we did not make it,
    /// or made it for the header. How long that takes does not depend on how
    /// nearly right it is.
    pub fn verify(&self, address: &str) -> Option<MessageId> {
        self.verify_for(Purpose::Envelope, address)
    }

    fn verify_for(&self, purpose: Purpose, address: &str) -> Option<MessageId> {
        let (left, domain) = address.rsplit_once('@')?;
        let (prefix, tag) = left.split_at_checked(purpose.prefix().len())?;
        let is_it = prefix.eq_ignore_ascii_case(purpose.prefix());
        if !is_it || !domain.eq_ignore_ascii_case(&self.domain) {
            return None;
        }
        if tag.len() > 64 {
            return None;
        }
        let tag = base32::decode(tag)?;
        let (version, rest) = tag.split_first()?;
        let (id, signed) = rest.split_at_checked(ID_BYTES)?;
        if *version != VERSION || signed.len() != SIGNATURE_BYTES {
            return None;
        }
        let is_ours = self.keys.iter().fold(0_u8, |found, key| {
            found | signature(key, purpose, id).ct_eq(signed).unwrap_u8()
        });
        if is_ours == 0 {
            return None;
        }
        let (ms, seq) = id.split_at_checked(6)?;
        let accepted_at = i64::try_from(number(ms)).ok()?.checked_mul(1_000_000)?;
        Some(MessageId::new(Wall(accepted_at), Seq(number(seq))))
    }

    /// The message that a report is about, if one of its addresses is ours. For
    /// reports of somebody who may speak for it: addresses of the header count.
    pub fn find(&self, report: &Report) -> Option<MessageId> {
        report.addresses.iter().find_map(|it| {
            let sent_to = self.verify_for(Purpose::Envelope, it);
            sent_to.or_else(|| self.verify_for(Purpose::Field, it))
        })
    }
}

fn id_bytes(id: MessageId) -> [u8; ID_BYTES] {
    let mut bytes = [0; ID_BYTES];
    let ms = id.accepted_ms().to_be_bytes();
    let seq = id.seq().0.to_be_bytes();
    let low = ms.iter().skip(2).chain(seq.iter().skip(2));
    bytes.iter_mut().zip(low).for_each(|(to, from)| *to = *from);
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// As much of the signature as is used. Half of it is still out of reach.
fn signature(key: &hmac::Key, purpose: Purpose, id: &[u8]) -> [u8; SIGNATURE_BYTES] {
    let mut context = hmac::Context::with_key(key);
    context.update(purpose.signed());
    context.update(id);
    let whole = context.sign();
    let mut kept = [0; SIGNATURE_BYTES];
    let whole = whole.as_ref().iter();
    kept.iter_mut()
        .zip(whole)
        .for_each(|(to, from)| *to = *from);
    kept
}
