//! DKIM: a domain vouches for a mail (RFC 6376, RFC 8463).
//!
//! A [`Keyring`] holds the keys of many domains and is never changed: who wants
//! other keys loads another ring and swaps the `Arc`. A mail is signed by the
//! keys of its author's domain, or of the nearest domain above it, so that DMARC
//! finds the signature aligned; a domain may have an RSA and an Ed25519 key, and
//! then both sign. Fields that readers see are signed once more than they occur,
//! so that nobody can add another.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mail_auth::common::crypto::{Algorithm, Ed25519Key, RsaKey, Sha256, SigningKey};
use mail_auth::common::headers::{HeaderWriter, Writable};
use mail_auth::dkim::DkimSigner;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

use crate::address::domain_to_ascii;
use crate::compose::Mail;
use crate::lines;

/// The most bytes of a key file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Fields that are signed if they are there, and signed as absent if not: those
/// that decide what a reader sees.
const SEALED: [&str; 9] = [
    "From",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Reply-To",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];
/// Fields that are signed if they are there. A relay may add them.
const SIGNED: [&str; 7] = [
    "Message-ID",
    "Sender",
    "In-Reply-To",
    "References",
    "List-Id",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
];

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DkimError {
    /// The file.
    #[error("the DKIM key {path} cannot be read: {error}")]
    File {
        /// Where it is.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// What is in it.
    #[error(
        "the DKIM key of {domain} is no private key in PEM: make one with \
         `openssl genrsa -out dkim.pem 2048`, or `openssl genpkey -algorithm ed25519`"
    )]
    NoKey {
        /// Whose key.
        domain: String,
    },
    /// The kind of key.
    #[error("the DKIM key of {domain} is neither RSA of at least 2048 bits nor Ed25519")]
    Kind {
        /// Whose key.
        domain: String,
    },
    /// The name of a domain or selector.
    #[error("{0:?} is no domain, or no selector")]
    Name(String),
    /// It would not sign.
    #[error("the mail cannot be signed for {domain}: {text}")]
    Sign {
        /// Whose key.
        domain: String,
        /// What the library says.
        text: String,
    },
}

enum Secret {
    Rsa(RsaKey<Sha256>),
    Ed25519(Ed25519Key),
}

/// One key of a domain.
pub struct DkimKey {
    domain: String,
    selector: String,
    secret: Secret,
    left_out: Vec<String>,
}

impl fmt::Debug for DkimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DkimKey({}._domainkey.{})", self.selector, self.domain)
    }
}

impl DkimKey {
    /// Reads a private key from a PEM file.
    pub fn from_file(domain: &str, selector: &str, path: &Path) -> Result<Self, DkimError> {
        let failed = |error| DkimError::File {
            path: path.to_owned(),
            error,
        };
        let length = fs::metadata(path).map_err(failed)?.len();
        if length > FILE_BYTES_MAX {
            return Err(failed(io::Error::other("it is too large for a key")));
        }
        let pem = fs::read(path).map_err(failed)?;
        Self::from_pem(domain, selector, &pem)
    }

    /// Reads a private key in PEM: RSA (PKCS#1 or PKCS#8) or Ed25519 (PKCS#8).
    pub fn from_pem(domain: &str, selector: &str, pem: &[u8]) -> Result<Self, DkimError> {
        let name = |text: &str| domain_to_ascii(text).ok_or(DkimError::Name(text.to_owned()));
        let (domain, selector) = (name(domain)?, name(selector)?);
        let der = PrivateKeyDer::from_pem_slice(pem);
        let Ok(der) = der else {
            return Err(DkimError::NoKey { domain });
        };
        let secret = match &der {
            PrivateKeyDer::Pkcs8(inside) => {
                let bytes = inside.secret_pkcs8_der();
                let ed25519 = Ed25519Key::from_pkcs8_maybe_unchecked_der(bytes);
                ed25519.map(Secret::Ed25519).ok()
            }
            _ => None,
        };
        let secret = match secret {
            Some(secret) => Some(secret),
            None => RsaKey::from_key_der(der).map(Secret::Rsa).ok(),
        };
        let Some(secret) = secret else {
            return Err(DkimError::Kind { domain });
        };
        Ok(Self {
            domain,
            selector,
            secret,
            left_out: Vec::new(),
        })
    }

    /// Leaves fields unsigned that a relay is known to replace, such as
    /// Message-ID and Date.
    pub fn without(mut self, fields: &[&str]) -> Self {
        self.left_out = fields.iter().map(|&field| field.to_owned()).collect();
        self
    }

    /// The domain that vouches.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The public half as it stands in DNS, at `selector._domainkey.domain`.
    pub fn record(&self) -> String {
        use base64::Engine;
        let engine = base64::engine::general_purpose::STANDARD;
        match &self.secret {
            Secret::Rsa(key) => {
                let key = engine.encode(with_algorithm(&key.public_key()));
                format!("v=DKIM1; k=rsa; p={key}")
            }
            Secret::Ed25519(key) => {
                format!("v=DKIM1; k=ed25519; p={}", engine.encode(key.public_key()))
            }
        }
    }

    /// A signature over a mail, as a header field with its line end.
    pub fn sign(&self, bytes: &[u8]) -> Result<String, DkimError> {
        match &self.secret {
            Secret::Rsa(key) => self.sign_with(Lent(key), bytes),
            Secret::Ed25519(key) => self.sign_with(Lent(key), bytes),
        }
    }

    fn sign_with(&self, key: impl SigningKey, bytes: &[u8]) -> Result<String, DkimError> {
        let signer = DkimSigner::from_key(key)
            .domain(self.domain.as_str())
            .selector(self.selector.as_str())
            .headers(self.fields(bytes));
        let signature = signer.sign(bytes).map_err(|error| DkimError::Sign {
            domain: self.domain.clone(),
            text: error.to_string(),
        })?;
        Ok(signature.to_header())
    }

    /// What is signed of this mail. The signer signs a named field as often as
    /// it occurs; each further mention stands for one that must not be added.
    fn fields(&self, bytes: &[u8]) -> Vec<&'static str> {
        let header = bytes.get(..lines::body_start(bytes)).unwrap_or_default();
        let names: Vec<&str> = lines::fields(header).filter_map(lines::name).collect();
        let is_there = |field: &str| names.iter().any(|name| name.eq_ignore_ascii_case(field));
        let is_left_out = |field: &str| {
            let mut left_out = self.left_out.iter();
            left_out.any(|other| other.eq_ignore_ascii_case(field))
        };
        let mut fields = Vec::new();
        for field in SEALED.into_iter().chain(SIGNED) {
            let times = match (is_there(field), SEALED.contains(&field)) {
                _ if is_left_out(field) => 0,
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            };
            fields.extend(std::iter::repeat_n(field, times));
        }
        fields
    }
}

/// An RSA public key as receivers expect it: a SubjectPublicKeyInfo, which says
/// that it is RSA, around the bare key.
fn with_algorithm(key: &[u8]) -> Vec<u8> {
    /// SEQUENCE { OBJECT IDENTIFIER rsaEncryption, NULL }
    const RSA: [u8; 15] = [
        0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
    ];
    let tagged = |tag: u8, content: &[u8]| {
        let length = u32::try_from(content.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes();
        let zeros = length.iter().take_while(|byte| **byte == 0).count();
        let significant = length.get(zeros..).unwrap_or_default();
        let mut out = vec![tag];
        match significant {
            [] => out.push(0),
            [short] if *short < 0x80 => out.push(*short),
            long => {
                out.push(0x80 | long.len() as u8);
                out.extend_from_slice(long);
            }
        }
        out.extend_from_slice(content);
        out
    };
    let bits = [&[0], key].concat();
    tagged(0x30, &[&RSA[..], &tagged(0x03, &bits)].concat())
}

/// A key that stays where it is while it signs.
struct Lent<'a, K>(&'a K);

impl<K: SigningKey> SigningKey for Lent<'_, K> {
    type Hasher = K::Hasher;

    fn sign(&self, input: impl Writable) -> mail_auth::Result<Vec<u8>> {
        self.0.sign(input)
    }

    fn algorithm(&self) -> Algorithm {
        self.0.algorithm()
    }
}

/// The keys of an account.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    by_domain: BTreeMap<String, Vec<Arc<DkimKey>>>,
    always: Vec<Arc<DkimKey>>,
}

impl Keyring {
    /// Signs mail whose author is of the key's domain or of one below it.
    pub fn add(&mut self, key: DkimKey) {
        let keys = self.by_domain.entry(key.domain.clone()).or_default();
        keys.push(Arc::new(key));
    }

    /// Signs all mail, whoever its author is.
    pub fn add_for_all(&mut self, key: DkimKey) {
        self.always.push(Arc::new(key));
    }

    /// Whether nothing is ever signed.
    pub fn is_empty(&self) -> bool {
        self.by_domain.is_empty() && self.always.is_empty()
    }

    /// The keys that sign for this author's domain.
    pub fn keys(&self, author_domain: &str) -> impl Iterator<Item = &DkimKey> {
        let mut domain = Some(author_domain);
        let mut own: &[Arc<DkimKey>] = &[];
        while let Some(name) = domain {
            if let Some(keys) = self.by_domain.get(name) {
                own = keys;
                break;
            }
            domain = name.split_once('.').map(|(_, above)| above);
        }
        own.iter().chain(&self.always).map(|key| &**key)
    }

    /// Puts the signatures before a mail.
    pub fn sign(&self, mail: &mut Mail) -> Result<(), DkimError> {
        let mut signatures = String::new();
        for key in self.keys(&mail.author_domain) {
            signatures.push_str(&key.sign(&mail.bytes)?);
        }
        if !signatures.is_empty() {
            let mut bytes = signatures.into_bytes();
            bytes.append(&mut mail.bytes);
            mail.bytes = bytes;
        }
        Ok(())
    }
}
