//! Policies that a fleet shares: written where all nodes look before they are in
//! force here, and put in force here when another node wrote them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outflow_core::policy::matcher::Match;
use outflow_ports::fleet::{Fleet, Shared, SharedDocument};
use outflow_ports::registry::Kind;
use serde_json::json;
use tokio::sync::Notify;

use crate::ask::{ask, on_disk};
use crate::book::policy::{PolicyEntry, StoredPolicy};
use crate::changes::Edit;
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// The longest time between two looks.
const LOOK: Duration = Duration::from_millis(400);
/// Who makes changes that come from other nodes, in the audit.
const ACTOR: &str = "fleet";

impl ApiState {
    /// Writes a policy where all nodes look. The caller has the turn.
    pub(crate) async fn share(&self, id: &str, value: Option<&str>) -> Result<(), Problem> {
        let Some(fleet) = &self.fleet else {
            return Ok(());
        };
        let version = publish(fleet, id.to_owned(), value.map(str::to_owned)).await?;
        // If others wrote meanwhile, what they wrote is read first.
        if self.book.version().map(|own| own + 1) == Some(version) {
            self.book.set_version(version);
        }
        Ok(())
    }
}

async fn publish(
    fleet: &Arc<dyn Fleet>,
    id: String,
    value: Option<String>,
) -> Result<u64, Problem> {
    let published = ask(|then| fleet.publish(id, value, then)).await?;
    published.map_err(|away| {
        let detail = format!("{away}; the policy is as it was on all nodes");
        Problem::later(Code::LedgerAway, 2, detail)
    })
}

/// Follows the fleet until `shutdown` comes: when `changed` says so, and every
/// now and then in case that got lost.
pub async fn run(state: ApiState, changed: Arc<Notify>, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    loop {
        // A ledger that is away says so itself.
        let _ = follow(&state).await;
        tokio::select! {
            () = &mut shutdown => return,
            () = changed.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Puts in force what other nodes wrote since this one looked. Whether anything
/// was new.
pub async fn follow(state: &ApiState) -> Result<bool, Problem> {
    let Some(fleet) = &state.fleet else {
        return Ok(false);
    };
    if state.book.is_at(fleet.latest()) {
        return Ok(false);
    }
    let _turn = state.book.write().await;
    let shared = ask(|then| fleet.read(then)).await?;
    let shared = shared.map_err(|away| Problem::later(Code::LedgerAway, 2, away.to_string()))?;
    let Shared { version, documents } = shared;
    let before = state.book.version();
    let own = own_documents(state).await?;
    if before.is_none() {
        share_own(fleet, &own, &documents).await?;
    }
    for document in documents {
        // What was written before this node last looked is in force, or was
        // changed here since by its own cooldown.
        if before.is_some_and(|before| document.version <= before) {
            continue;
        }
        if own.get(&document.id) != Some(&document.value) {
            adopt(state, &document).await?;
        }
    }
    state.book.set_version(version);
    state.book.enforce(state.clock.now());
    Ok(true)
}

async fn own_documents(state: &ApiState) -> Result<BTreeMap<String, Option<String>>, Problem> {
    let registry = Arc::clone(&state.registry);
    let documents = on_disk(move || registry.list(Kind::Policy)).await??;
    let documents = documents.into_iter();
    Ok(documents.map(|it| (it.id, it.value)).collect())
}

/// What was set on this node before it joined, and nobody shares yet.
async fn share_own(
    fleet: &Arc<dyn Fleet>,
    own: &BTreeMap<String, Option<String>>,
    shared: &[SharedDocument],
) -> Result<(), Problem> {
    for (id, value) in own {
        if value.is_some() && !shared.iter().any(|it| it.id == *id) {
            publish(fleet, id.clone(), value.clone()).await?;
        }
    }
    Ok(())
}

/// Makes a policy of another node durable and puts it in force.
async fn adopt(state: &ApiState, document: &SharedDocument) -> Result<(), Problem> {
    let Ok(matches) = document.id.parse::<Match>() else {
        return Ok(());
    };
    let stored = match &document.value {
        Some(value) => match serde_json::from_str::<StoredPolicy>(value) {
            Ok(stored) => Some(stored),
            // Written by a later version of this program.
            Err(_) => return Ok(()),
        },
        None => None,
    };
    let now = state.clock.now();
    let snapshot = state.book.snapshot();
    let before = snapshot.policies.get(&matches);
    let mut entry =
        stored.and_then(|stored| PolicyEntry::of(state.book.start(), &matches, stored, 0));
    if let Some(entry) = &entry
        && entry.at(&matches, now).is_none()
    {
        return Ok(());
    }
    let edit = Edit {
        kind: Kind::Policy,
        id: document.id.clone(),
        value: document.value.clone(),
        expected: None,
        action: "policy.shared",
        detail: json!({
            "before": before.and_then(|before| before.raw_at(&matches, now)),
            "after": entry.as_ref().and_then(|entry| entry.raw_at(&matches, now)),
            "version": document.version,
        }),
    };
    let version = state.change(ACTOR, edit).await?;
    if let Some(entry) = &mut entry {
        entry.version = version;
    }
    state.book.set_policy(&matches, entry, now);
    Ok(())
}
