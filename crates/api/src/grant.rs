//! What a token stands for, and how it is kept.
//!
//! A token reads `outflow_ID_SECRET`. Only its SHA-256 is stored: the secret
//! has 256 random bits, so nothing slower is needed, and a stolen registry
//! opens no door. The id finds the entry, the hash is compared in constant time.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_ports::registry::{Document, Kind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use utoipa::ToSchema;

use crate::stamp::Stamp;

const PREFIX: &str = "outflow_";
/// Tokens longer than this are none of ours.
const TOKEN_BYTES_MAX: usize = 128;

/// What a token may do; each includes what those below it may, but `metrics`,
/// which stands alone.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read metrics, nothing else.
    Metrics,
    /// Submit messages, ask about them and withdraw them.
    Submit,
    /// Also pause, replay and set policies.
    Operator,
    /// Everything.
    Admin,
}

impl Scope {
    /// The word used in settings and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Submit => "submit",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// What a token stands for, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What people call it; the audit names it, with its id.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// The only tenant it speaks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The only classes it may submit; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The only pools it may submit to; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// The only domains it may send from; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from_domains: Vec<String>,
    /// When it was made.
    pub created_at: Stamp,
    /// The SHA-256 of the token, in hexadecimal digits.
    pub sha256: String,
}

/// A token that was just made. Its text is shown once.
#[derive(Debug)]
pub struct Minted {
    /// Its public name.
    pub id: String,
    /// The token itself.
    pub token: String,
    /// What is stored of it.
    pub sha256: String,
}

/// The operating system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoEntropy;

/// Makes a new token.
pub fn mint() -> Result<Minted, NoEntropy> {
    let (mut id, mut secret) = ([0; 8], [0; 32]);
    getrandom::fill(&mut id).map_err(|_| NoEntropy)?;
    getrandom::fill(&mut secret).map_err(|_| NoEntropy)?;
    let id = hex(&id);
    let token = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
    let sha256 = hex(&hash(&token));
    Ok(Minted { id, token, sha256 })
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    (text.len() == 64).then_some(bytes)
}

/// A token in force.
#[derive(Debug)]
pub struct Known {
    /// Its public name.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What the audit calls it: its name, which others may have too or had
    /// before, and its id.
    pub actor: String,
    /// What it may do.
    pub scope: Scope,
    /// The only tenant it speaks for.
    pub tenant: Option<Name>,
    /// The only classes it may submit; all if empty.
    pub classes: Vec<Class>,
    /// The only pools it may submit to; all if empty.
    pub pools: Vec<String>,
    /// The only domains it may send from; all if empty.
    pub from_domains: Vec<String>,
    hash: [u8; 32],
}

impl Known {
    /// For whom counts what it occupies: its tenant, or itself if it has none.
    /// Ids of tokens are hexadecimal digits; a tenant of such a name shares with
    /// that token.
    pub fn party(&self) -> &str {
        self.tenant.as_ref().map_or(&self.id, Name::as_str)
    }

    /// Somebody with this scope and no bounds, whom no token stands for.
    pub(crate) fn unbound(scope: Scope) -> Self {
        Self {
            id: String::new(),
            name: "nobody".to_owned(),
            actor: "nobody".to_owned(),
            scope,
            tenant: None,
            classes: Vec::new(),
            pools: Vec::new(),
            from_domains: Vec::new(),
            hash: [0; 32],
        }
    }
}

/// All tokens in force, by id.
#[derive(Debug, Default)]
pub struct Tokens(BTreeMap<String, std::sync::Arc<Known>>);

impl Tokens {
    /// Those among the documents of the registry that are in force. A document
    /// that cannot be read opens nothing.
    pub fn of(documents: &[Document]) -> Self {
        let known = documents.iter().filter_map(known);
        Self(
            known
                .map(|known| (known.id.clone(), known.into()))
                .collect(),
        )
    }

    /// Whom `token` stands for.
    pub fn find(&self, token: &str) -> Option<std::sync::Arc<Known>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (id, _) = token.strip_prefix(PREFIX)?.split_once('_')?;
        let known = self.0.get(id)?;
        let is_it = known.hash.ct_eq(&hash(token));
        bool::from(is_it).then(|| std::sync::Arc::clone(known))
    }

    /// Whether the token with this id is in force.
    pub fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// How many administrators' tokens there are.
    pub fn admins(&self) -> usize {
        let admins = self.0.values();
        admins.filter(|known| known.scope == Scope::Admin).count()
    }
}

fn known(document: &Document) -> Option<Known> {
    if document.kind != Kind::Token {
        return None;
    }
    let grant: Grant = serde_json::from_str(document.value.as_deref()?).ok()?;
    let classes = grant.classes.iter().map(|class| class.parse());
    Some(Known {
        id: document.id.clone(),
        actor: format!("{} ({})", grant.name, document.id),
        name: grant.name,
        scope: grant.scope,
        tenant: grant.tenant.map(Name::from),
        classes: classes.collect::<Result<_, _>>().ok()?,
        pools: grant.pools,
        from_domains: grant.from_domains,
        hash: unhex(&grant.sha256)?,
    })
}
