//! `/warm-ups`: new senders that send little at first and more each good day.
//!
//! Who is warmed up is in the settings; how far each is, is a document of the
//! registry. What a day allows holds beside the policies, as limits. Counts are
//! added up every five minutes, so a crash loses those of five minutes at most;
//! the limits themselves lose nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::detours::{Detour, WHOLE, Way};
use axum::Json;
use axum::extract::State;
use outflow_config::valid::warm_up::WarmUp;
use outflow_core::engine::explain::Obstacle;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::name::Name;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::{Match, Pattern};
use outflow_core::policy::scope::Scope;
use outflow_core::tally::{Counter, Window};
use outflow_core::time::Wall;
use outflow_core::warmup::{Counted, Progress, Verdict};
use outflow_ports::control::Bulk;
use outflow_ports::query::{LaneView, TallyView};
use outflow_ports::registry::{Change, Document, Kind};
use serde::Serialize;
use serde_json::json;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use crate::ask::{ask, on_disk};
use crate::auth::{May, Operate};
use crate::book::StartValues;
use crate::changes::Edit;
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Who acts, in the audit.
const ACTOR: &str = "rule:warm-up";
/// Counts are added up so often, over just so long.
const SAMPLED: Window = Window::FiveMinutes;

/// Where each sender stands.
pub struct WarmUps(Mutex<Vec<Kept>>);

struct Kept {
    warm_up: WarmUp,
    progress: Progress,
    sampled_at: Wall,
}

impl Kept {
    /// The limits of today; none if the plan is over.
    fn limits(&self) -> Option<Vec<LimitSpec>> {
        let quota = self.progress.quota(&self.warm_up.plan)?;
        let texts = [
            format!("{}/day@UTC", quota.day),
            format!("{}/h", quota.hour),
        ];
        let limits = texts.iter().filter_map(|text| LimitSpec::parse(text).ok());
        Some(limits.collect())
    }
}

fn beside(all: &[Kept]) -> BTreeMap<Match, Vec<LimitSpec>> {
    let limited = all.iter().filter_map(|kept| {
        let limits = kept.limits()?;
        Some((kept.warm_up.matches.clone(), limits))
    });
    limited.collect()
}

impl WarmUps {
    /// Goes on where the last process was, and says which limits hold.
    pub fn of(
        start: &StartValues,
        documents: &[Document],
        now: Wall,
    ) -> (Self, BTreeMap<Match, Vec<LimitSpec>>) {
        let kept = start.warm_ups.iter().map(|warm_up| {
            let id = warm_up.matches.to_string();
            let saved = documents.iter().find(|document| document.id == id);
            let saved = saved.and_then(|document| document.value.as_deref());
            let saved = saved.and_then(|value| serde_json::from_str::<Progress>(value).ok());
            // Another plan begins anew.
            let saved = saved.filter(|saved| saved.plan == warm_up.plan.name);
            let new = || Progress::new(&warm_up.plan, warm_up.first_day, now);
            Kept {
                progress: saved.unwrap_or_else(new),
                warm_up: warm_up.clone(),
                sampled_at: now,
            }
        });
        let kept: Vec<Kept> = kept.collect();
        let beside = beside(&kept);
        (Self(Mutex::new(kept)), beside)
    }
}

/// Does what is due by now, once.
pub async fn turn(state: &ApiState, now: Wall) -> Result<(), Problem> {
    let mut all = state.warm_ups.0.lock().await;
    if all.is_empty() {
        return Ok(());
    }
    let is_due = |kept: &Kept| now.since(kept.sampled_at) >= SAMPLED.length();
    if all.iter().any(is_due) {
        let tallies = ask(|then| state.query.tallies(then)).await?;
        for kept in all.iter_mut().filter(|kept| is_due(kept)) {
            let more = counted(state, &kept.warm_up, &tallies);
            kept.sampled_at = now;
            let WarmUp { plan, bar, .. } = &kept.warm_up;
            let verdict = kept.progress.go_on(plan, bar, now, more);
            save(state, kept, verdict, more, now).await?;
        }
    }
    state.book.set_beside(beside(&all), now);
    let lanes = ask(|then| state.query.lanes(then)).await?;
    for kept in &mut *all {
        put_behind(state, kept);
        let full: Vec<&LaneView> = lanes.iter().filter(|lane| is_full(kept, lane)).collect();
        if full.is_empty() {
            continue;
        }
        if kept.progress.note_full() {
            keep(state, kept, now).await?;
        }
        overflow(state, kept, &full).await?;
    }
    Ok(())
}

/// Writes down how far a sender is; a day that ended also into the audit.
async fn save(
    state: &ApiState,
    kept: &Kept,
    verdict: Option<Verdict>,
    more: Counted,
    now: Wall,
) -> Result<(), Problem> {
    let id = kept.warm_up.matches.to_string();
    let value = json!(kept.progress).to_string();
    if let Some(verdict) = verdict {
        let edit = Edit {
            kind: Kind::WarmUp,
            id,
            value: Some(value),
            expected: None,
            action: "warm_up.day",
            detail: json!({
                "plan": kept.progress.plan,
                "verdict": VerdictView::from(verdict),
                "next_day": kept.progress.day + 1,
                "next_quota": kept.progress.quota(&kept.warm_up.plan).map(|quota| quota.day),
            }),
        };
        state.change(ACTOR, edit).await?;
        return Ok(());
    }
    if more.is_nothing() {
        return Ok(());
    }
    keep(state, kept, now).await
}

/// Writes down how far a sender is.
async fn keep(state: &ApiState, kept: &Kept, now: Wall) -> Result<(), Problem> {
    let id = kept.warm_up.matches.to_string();
    let value = json!(kept.progress).to_string();
    let registry = Arc::clone(&state.registry);
    on_disk(move || {
        let change = Change {
            kind: Kind::WarmUp,
            id: &id,
            value: Some(&value),
            expected: None,
        };
        registry.keep(change, now)
    })
    .await??;
    Ok(())
}

/// The accounts that a warm-up is about, and their pools.
fn senders(state: &ApiState, warm_up: &WarmUp) -> Vec<(String, String)> {
    let snapshot = state.book.snapshot();
    let exact = |scope| match warm_up.matches.pattern(scope) {
        Some(Pattern::Exact(name)) => Some(name.clone()),
        _ => None,
    };
    let (account, ip) = (exact(Scope::Account), exact(Scope::Ip));
    let specs = snapshot.accounts.values().map(|entry| &entry.account.spec);
    let own = specs.filter(|spec| {
        let is_account = account.as_ref().is_some_and(|name| *name == spec.id);
        is_account || (ip.is_some() && spec.ip == ip)
    });
    own.map(|spec| (spec.id.to_string(), spec.pool.to_string()))
        .collect()
}

/// What was counted of a sender in the last five minutes.
fn counted(state: &ApiState, warm_up: &WarmUp, tallies: &[TallyView]) -> Counted {
    let mut all = Counted::default();
    for (account, _) in senders(state, warm_up) {
        let key = match &warm_up.destination {
            Some(place) => format!("account:{account}/{place}"),
            None => format!("account:{account}"),
        };
        let same = |view: &&TallyView| key.parse().is_ok_and(|key: LimitKey| *view.key == key);
        if let Some(view) = tallies.iter().find(same) {
            let count = |counter| view.count(SAMPLED, counter);
            all = all.plus(Counted {
                attempts: count(Counter::Attempts),
                accepted: count(Counter::Accepted),
                deferred: count(Counter::Deferred),
                bounced: count(Counter::Bounced),
                complained: count(Counter::Complained),
            });
        }
    }
    all
}

/// The pool for what is over the quota, if it has accounts.
fn warm_pool<'a>(state: &ApiState, kept: &'a Kept) -> Option<&'a Name> {
    let pool = kept.warm_up.overflow.as_ref();
    pool.filter(|pool| state.book.has_pool(pool))
}

/// While a plan is under way, messages to those who rarely read go behind those
/// to the others: through the warm pool, or else with class low.
fn put_behind(state: &ApiState, kept: &Kept) {
    let is_under_way = kept.limits().is_some();
    for (_, pool) in senders(state, &kept.warm_up) {
        let name = format!("warm-up/{}/{pool}", kept.warm_up.matches);
        if !is_under_way {
            state.detours.remove(&name);
            continue;
        }
        let way = match warm_pool(state, kept) {
            Some(pool) => Way::Pool(pool.clone()),
            None => Way::Low,
        };
        let detour = Detour {
            destination: kept.warm_up.destination.clone(),
            from: Some(pool.as_str().into()),
            class: None,
            only_unengaged: true,
            way,
            permille: WHOLE,
        };
        state.detours.set(&name, detour);
    }
}

/// Whether a limit is one of those that the plan of a warm-up asks for. Others on
/// the same sender, as its rate, open again soon: what waits there waits for it.
fn is_of(kept: &Kept, key: &LimitKey) -> bool {
    let terms = kept.warm_up.matches.terms().iter();
    let own = terms.map(|(scope, pattern)| (*scope, pattern.as_str()));
    let parts = key.parts().iter();
    let parts = parts.map(|(scope, name)| (*scope, name.as_str()));
    let limits = kept.limits().unwrap_or_default();
    parts.eq(own) && limits.iter().any(|limit| Facet::of(limit) == *key.facet())
}

/// Whether messages of a lane wait at the limits of a warm-up.
fn is_full(kept: &Kept, lane: &LaneView) -> bool {
    let is_ours = |obstacle: &Obstacle| match obstacle {
        Obstacle::Limit { key, .. } => is_of(kept, key),
        _ => false,
    };
    lane.waiting.iter().sum::<u64>() > 0 && lane.waiting_on.iter().any(is_ours)
}

/// Moves what waits at the limits of a warm-up to the pool that is warm.
async fn overflow(state: &ApiState, kept: &Kept, lanes: &[&LaneView]) -> Result<(), Problem> {
    let Some(to) = warm_pool(state, kept) else {
        return Ok(());
    };
    for lane in lanes {
        if lane.pool == *to {
            continue;
        }
        let Ok(matches) = Match::from_pairs([("lane", lane.name.as_str())]) else {
            continue;
        };
        let target = matches.to_string();
        let bulk = Bulk::Move { pool: to.clone() };
        let moved = ask(|then| state.control.bulk(bulk, matches, false, then)).await?;
        if moved > 0 {
            let detail = json!({ "to": to.as_str(), "at_most": moved });
            state
                .audit(ACTOR, "warm_up.overflow", target, detail)
                .await?;
        }
    }
    Ok(())
}

/// What was counted of a day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WarmUpCounts)]
pub struct CountedView {
    /// Messages that were handed over.
    attempts: u64,
    accepted: u64,
    deferred: u64,
    bounced: u64,
    complained: u64,
}

impl From<Counted> for CountedView {
    fn from(counted: Counted) -> Self {
        Self {
            attempts: counted.attempts,
            accepted: counted.accepted,
            deferred: counted.deferred,
            bounced: counted.bounced,
            complained: counted.complained,
        }
    }
}

/// What a day was worth.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WarmUpVerdict)]
pub struct VerdictView {
    /// Which day of the plan, from 1.
    day: u32,
    /// When it began, in UTC.
    date: Stamp,
    /// What might have been sent.
    quota: u32,
    counted: CountedView,
    /// Whether the plan went on.
    good: bool,
    /// Why, or why not.
    why: String,
}

impl From<Verdict> for VerdictView {
    fn from(verdict: Verdict) -> Self {
        let midnight = verdict.date.saturating_mul(86_400_000_000_000);
        Self {
            day: verdict.day + 1,
            date: Stamp(Wall(midnight)),
            quota: verdict.quota,
            counted: verdict.counted.into(),
            good: verdict.good,
            why: verdict.why,
        }
    }
}

/// A sender that is being warmed up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WarmUp)]
pub struct WarmUpView {
    /// Who, and where: `account:mx-7/isp:google`.
    sender: String,
    plan: String,
    /// Which day of the plan, from 1; null when it is over.
    day: Option<u32>,
    /// How many days it has.
    days: u32,
    /// What may be sent today; null when it is over.
    quota_per_day: Option<u32>,
    /// What may be sent in any hour; null when it is over.
    quota_per_hour: Option<u32>,
    /// What was counted today; up to a tenth too low, and five minutes old.
    today: CountedView,
    /// What the day before was worth; null if there was none.
    yesterday: Option<VerdictView>,
    started_at: Stamp,
    /// Where the rest goes; null if it waits.
    overflow_pool: Option<String>,
}

/// All senders that are being warmed up.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarmUpList {
    warm_ups: Vec<WarmUpView>,
}

impl From<&Kept> for WarmUpView {
    fn from(kept: &Kept) -> Self {
        let Kept {
            warm_up, progress, ..
        } = kept;
        let quota = progress.quota(&warm_up.plan);
        Self {
            sender: warm_up.matches.to_string(),
            plan: progress.plan.clone(),
            day: quota.map(|_| progress.day + 1),
            days: warm_up.plan.days(),
            quota_per_day: quota.map(|quota| quota.day),
            quota_per_hour: quota.map(|quota| quota.hour),
            today: progress.counted.into(),
            yesterday: progress.yesterday.clone().map(VerdictView::from),
            started_at: Stamp(progress.started_at),
            overflow_pool: warm_up.overflow.as_ref().map(ToString::to_string),
        }
    }
}

/// List senders that are being warmed up.
#[utoipa::path(
    get,
    path = "/warm-ups",
    tag = "warm-ups",
    responses((status = 200, description = "all of them", body = WarmUpList)),
)]
pub async fn list(_may: May<Operate>, State(state): State<ApiState>) -> Json<WarmUpList> {
    let all = state.warm_ups.0.lock().await;
    Json(WarmUpList {
        warm_ups: all.iter().map(WarmUpView::from).collect(),
    })
}
