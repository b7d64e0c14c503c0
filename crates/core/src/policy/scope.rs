//! The kinds of things that can be limited.
//!
//! Their order is the order of the parts of a key: who sends stands before
//! where it goes, as in `account:ses-1/isp:google`.

use std::fmt;
use std::str::FromStr;

use crate::destination::DestinationKind;

/// One kind of thing that can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// Everything that is sent.
    Global = 0,
    /// Accounts that stand in for one another.
    Pool = 1,
    /// One account.
    Account = 2,
    /// One sending address.
    Ip = 3,
    /// One sending domain.
    SenderDomain = 4,
    /// One registered brand.
    Brand = 5,
    /// One tenant.
    Tenant = 6,
    /// One campaign. Tenants that use the same name share it; the product with
    /// tenant tells them apart.
    Campaign = 7,
    /// One class of urgency.
    Class = 8,
    /// One mailbox provider.
    Isp = 9,
    /// One mobile carrier.
    Carrier = 10,
    /// One push service.
    Push = 11,
    /// One host.
    Host = 12,
    /// One lane (queue): pool x destination.
    Lane = 13,
    /// One node.
    Worker = 14,
    /// One recipient.
    Recipient = 15,
    /// One key of the throttle, which no message has.
    Key = 16,
}

impl Scope {
    /// All scopes, in the order of the parts of a key.
    pub const ALL: [Self; 17] = [
        Self::Global,
        Self::Pool,
        Self::Account,
        Self::Ip,
        Self::SenderDomain,
        Self::Brand,
        Self::Tenant,
        Self::Campaign,
        Self::Class,
        Self::Isp,
        Self::Carrier,
        Self::Push,
        Self::Host,
        Self::Lane,
        Self::Worker,
        Self::Recipient,
        Self::Key,
    ];

    /// The word used in settings, the API and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Pool => "pool",
            Self::Account => "account",
            Self::Ip => "ip",
            Self::SenderDomain => "sender_domain",
            Self::Brand => "brand",
            Self::Tenant => "tenant",
            Self::Campaign => "campaign",
            Self::Class => "class",
            Self::Isp => "isp",
            Self::Carrier => "carrier",
            Self::Push => "push",
            Self::Host => "host",
            Self::Lane => "lane",
            Self::Worker => "worker",
            Self::Recipient => "recipient",
            Self::Key => "key",
        }
    }

    /// The scope of destinations of this kind; none while unresolved.
    pub const fn of_destination(kind: DestinationKind) -> Option<Self> {
        match kind {
            DestinationKind::Isp => Some(Self::Isp),
            DestinationKind::Carrier => Some(Self::Carrier),
            DestinationKind::Push => Some(Self::Push),
            DestinationKind::Host => Some(Self::Host),
            DestinationKind::Unresolved => None,
        }
    }

    /// Of which kind the destinations are that it names, if it names any.
    pub const fn destination_kind(self) -> Option<DestinationKind> {
        match self {
            Self::Isp => Some(DestinationKind::Isp),
            Self::Carrier => Some(DestinationKind::Carrier),
            Self::Push => Some(DestinationKind::Push),
            Self::Host => Some(DestinationKind::Host),
            _ => None,
        }
    }

    /// Whether names of this scope are the same in upper and lower case:
    /// destinations, domains and addresses are; tenants and accounts are not.
    pub const fn ignores_case(self) -> bool {
        matches!(
            self,
            Self::Isp
                | Self::Carrier
                | Self::Push
                | Self::Host
                | Self::Class
                | Self::SenderDomain
                | Self::Ip
        )
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope {text:?}: {}", self.hint())]
pub struct UnknownScope {
    /// What was written.
    pub text: String,
    /// The scope that was probably meant.
    pub nearest: Option<Scope>,
}

impl UnknownScope {
    fn hint(&self) -> String {
        match self.nearest {
            Some(scope) => format!("did you mean {scope}?"),
            None => format!("use one of {}", Scope::ALL.map(Scope::as_str).join(", ")),
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "queue" {
            return Ok(Self::Lane);
        }
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| UnknownScope {
                text: text.to_owned(),
                nearest: nearest(text),
            })
    }
}

/// The scope whose word takes the fewest edits, if that is less than half of it.
fn nearest(text: &str) -> Option<Scope> {
    let text = text.to_ascii_lowercase();
    Scope::ALL
        .into_iter()
        .map(|scope| (edits(&text, scope.as_str()), scope))
        .filter(|(edits, scope)| edits * 2 <= scope.as_str().len())
        .min()
        .map(|(_, scope)| scope)
}

/// How many letters must be put in, left out or changed to get from `a` to `b`.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        let mut left = i + 1;
        for (other, pair) in b.chars().zip(row.windows(2)) {
            let &[diagonal, above] = pair else { continue };
            left = (diagonal + usize::from(letter != other))
                .min(above + 1)
                .min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
