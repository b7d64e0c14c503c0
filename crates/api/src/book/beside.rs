//! Limits that hold beside the policies, such as those of a warm-up.

use outflow_core::limit::spec::LimitSpec;
use outflow_core::policy::matcher::{Match, Pattern};
use outflow_core::policy::policy::Policy;
use outflow_core::policy::set::Policies;

/// The policy about exactly `matches` with `limits` beside its own. A list of
/// limits takes the place of one that a wider policy has, so that one is kept
/// as well.
pub(super) fn with(policies: &Policies, matches: &Match, limits: &[LimitSpec]) -> Policy {
    let own = policies.get(matches).cloned();
    let mut policy = own.unwrap_or_else(|| Policy::new(matches.clone()));
    if policy.limits.is_empty() {
        let wider = policies
            .iter()
            .filter(|wider| is_wider(&wider.matches, matches) && !wider.limits.is_empty());
        let wider = wider.max_by_key(|wider| wider.matches.exact().len());
        policy
            .limits
            .extend(wider.into_iter().flat_map(|it| it.limits.clone()));
    }
    policy.limits.extend(limits.iter().cloned());
    policy
}

/// Whether a match is over the same scopes and governs all that another does.
fn is_wider(wider: &Match, matches: &Match) -> bool {
    let mut terms = wider.terms().iter().zip(matches.terms());
    wider.scopes() == matches.scopes()
        && terms.all(|((_, wide), (_, own))| *wide == Pattern::Any || wide == own)
}
