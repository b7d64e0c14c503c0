//! What is known of a flow, an account or a pair of them when it is matched.

use super::aliases;
use super::scope::Scope;
use super::scope_set::ScopeSet;
use super::text::{ANY, Part};
use crate::account::AccountFacts;
use crate::flow::FlowKey;
use crate::name::Name;

/// What is known of whatever is matched; a scope that is not known matches
/// nothing, not even `*`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts<'a> {
    pub flow: Option<&'a FlowKey>,
    pub account: Option<AccountFacts<'a>>,
    pub worker: Option<&'a Name>,
}

impl<'a> Facts<'a> {
    /// Whether the name of `scope` is known.
    pub fn knows(&self, scope: Scope) -> bool {
        match scope {
            Scope::Global => true,
            Scope::Lane | Scope::Class => self.flow.is_some(),
            _ => self.given(scope).is_some(),
        }
    }

    /// Whether the name of `scope` is `wanted`, which is canonical. Does not
    /// allocate: a pause is matched against every flow.
    pub fn is(&self, scope: Scope, wanted: &str) -> bool {
        match (scope, self.flow) {
            (Scope::Global, _) => true,
            (Scope::Lane, Some(flow)) => is_lane(flow, wanted),
            (Scope::Class, Some(flow)) => flow.class.as_str() == wanted,
            _ => self
                .given(scope)
                .is_some_and(|name| aliases::is(scope, name.as_str(), wanted)),
        }
    }

    /// The parts of a key over `scopes`, if all are known. A recipient never
    /// is, and stands as `*`.
    pub fn parts(&self, scopes: ScopeSet) -> Option<Vec<Part>> {
        scopes
            .iter()
            .map(|scope| Some((scope, self.canonical(scope)?)))
            .collect()
    }

    fn canonical(&self, scope: Scope) -> Option<Name> {
        let name = match scope {
            Scope::Global | Scope::Recipient => return Some(Name::from(ANY)),
            Scope::Class => return Some(Name::from(self.flow?.class.as_str())),
            Scope::Lane => {
                let flow = self.flow?;
                Name::from(format!("{}/{}", flow.pool, flow.destination))
            }
            _ => self.given(scope)?.clone(),
        };
        Some(aliases::canonical(scope, &name))
    }

    /// The name as it was given, where it is one.
    fn given(&self, scope: Scope) -> Option<&'a Name> {
        match scope {
            Scope::Pool => match self.account {
                Some(account) => Some(account.pool),
                None => Some(&self.flow?.pool),
            },
            Scope::Account => Some(self.account?.id),
            Scope::Ip => self.account?.ip,
            Scope::Brand => self.account?.brand,
            Scope::SenderDomain => self.flow?.sender_domain.as_ref(),
            Scope::Tenant => Some(&self.flow?.tenant),
            Scope::Campaign => self.flow?.campaign.as_ref(),
            Scope::Isp | Scope::Carrier | Scope::Push | Scope::Host => {
                let destination = &self.flow?.destination;
                let is_its = Scope::of_destination(destination.kind) == Some(scope);
                is_its.then_some(&destination.name)
            }
            Scope::Worker => self.worker,
            Scope::Global | Scope::Class | Scope::Lane | Scope::Recipient | Scope::Key => None,
        }
    }
}

fn is_lane(flow: &FlowKey, wanted: &str) -> bool {
    let kind = flow.destination.kind;
    let scope = Scope::of_destination(kind).unwrap_or(Scope::Host);
    wanted
        .rsplit_once('/')
        .filter(|(pool, _)| *pool == flow.pool.as_str())
        .and_then(|(_, destination)| destination.split_once(':'))
        .is_some_and(|(word, name)| {
            word == kind.as_str() && aliases::is(scope, flow.destination.name.as_str(), name)
        })
}
