//! Mitigations that are taken back, step by step.
//!
//! How far one is depends on the time alone; here each step is told to the
//! engine and written into the audit, once, also over restarts.

use outflow_core::policy::matcher::Match;
use outflow_core::policy::ramp::Phase;
use outflow_core::time::Wall;
use outflow_ports::registry::Kind;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::book::policy::{PolicyEntry, StoredPolicy, written};
use crate::changes::Edit;
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Who takes mitigations back, in the audit.
const ACTOR: &str = "server";

/// A mitigation that is being taken back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Ramp)]
pub struct RampView {
    /// Steps taken, from 1.
    step: u32,
    /// The rate in force.
    rate: String,
    /// When the next step comes.
    next_at: Stamp,
    /// The rate from then on; null if the base holds again then.
    next_rate: Option<String>,
    /// When the base holds again.
    over_at: Stamp,
}

impl RampView {
    /// How far the override of a policy is taken back, if it is.
    pub fn of(matches: &Match, entry: &PolicyEntry, now: Wall) -> Option<Self> {
        let Phase::Ramping(ramping) = entry.phase(matches, now) else {
            return None;
        };
        Some(Self {
            step: ramping.step,
            rate: written(ramping.rate, false),
            next_at: Stamp(ramping.next_at),
            next_rate: ramping.next.map(|rate| written(rate, false)),
            over_at: Stamp(ramping.over_at),
        })
    }

    /// The same in words.
    pub fn sentence(&self, base: &str) -> String {
        let Self {
            rate,
            next_at,
            over_at,
            ..
        } = self;
        let next = match &self.next_rate {
            Some(next) => format!("{next} from {next_at}"),
            None => "the base".to_owned(),
        };
        format!(
            "ramping back: {rate} now, {next} next; the base holds from {over_at}, and is {base}"
        )
    }
}

/// The step up to which a mitigation is taken back: 0 while it holds, none when
/// it is over.
fn step(matches: &Match, entry: &PolicyEntry, now: Wall) -> Option<u32> {
    match entry.phase(matches, now) {
        Phase::Holds => Some(0),
        Phase::Ramping(ramping) => Some(ramping.step),
        Phase::Over => None,
    }
}

/// Takes mitigations back as far as it is time: durably, then at the engine.
pub(crate) async fn take_back(state: &ApiState, now: Wall) -> Result<(), Problem> {
    let is_due = |matches: &Match, entry: &PolicyEntry| {
        entry.over.is_some() && step(matches, entry, now) != Some(entry.step)
    };
    let snapshot = state.book.snapshot();
    if !snapshot.policies.iter().any(|(m, e)| is_due(m, e)) {
        return Ok(());
    }
    let _turn = state.book.write().await;
    let snapshot = state.book.snapshot();
    for (matches, entry) in &snapshot.policies {
        if is_due(matches, entry) {
            take_one_back(state, matches, entry, now).await?;
        }
    }
    Ok(())
}

async fn take_one_back(
    state: &ApiState,
    matches: &Match,
    entry: &PolicyEntry,
    now: Wall,
) -> Result<(), Problem> {
    let step = step(matches, entry, now);
    let stored = match step {
        Some(step) => StoredPolicy {
            step,
            ..entry.stored()
        },
        None => StoredPolicy {
            base: entry.own_base(),
            ..StoredPolicy::default()
        },
    };
    let value = json!(stored).to_string();
    let mut after = PolicyEntry::of(state.book.start(), matches, stored, 0);
    let in_force = after.as_ref().and_then(|after| after.raw_at(matches, now));
    let before = entry.raw_told(matches);
    let detail = match RampView::of(matches, entry, now) {
        Some(ramp) => json!({
            "before": before, "base": entry.base, "ramp": ramp, "after": in_force,
        }),
        None => json!({ "before": before, "after": in_force }),
    };
    let edit = Edit {
        kind: Kind::Policy,
        id: matches.to_string(),
        value: Some(value),
        expected: Some(entry.version),
        action: match step {
            Some(_) => "policy.ramp",
            None => "policy.cooldown_over",
        },
        detail,
    };
    let version = state.change(ACTOR, edit).await?;
    if let Some(after) = &mut after {
        after.version = version;
    }
    state.book.set_policy(matches, after, now);
    Ok(())
}
