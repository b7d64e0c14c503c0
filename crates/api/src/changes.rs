//! Changes to what operators set: durable and audited before they take effect.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use outflow_ports::registry::{Audit, Change, Kind};
use serde_json::Value;

use crate::ask::on_disk;
use crate::events::Notice;
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// A change to one document.
#[derive(Debug)]
pub struct Edit {
    /// What it is about.
    pub kind: Kind,
    /// Its name among its kind.
    pub id: String,
    /// The new JSON; none takes the document away.
    pub value: Option<String>,
    /// Only if it has this version still; 0 if it must be new.
    pub expected: Option<u64>,
    /// What was done: `token.add`.
    pub action: &'static str,
    /// What it was and is now, without secrets.
    pub detail: Value,
}

impl ApiState {
    /// Makes a change durable, with its line of audit, and says so to those
    /// who listen. The new version.
    pub async fn change(&self, actor: &str, edit: Edit) -> Result<u64, Problem> {
        let registry = Arc::clone(&self.registry);
        let (at, actor) = (self.clock.now(), actor.to_owned());
        let notice = Notice::changed(edit.action, &edit.id, &actor, at);
        let version = on_disk(move || {
            registry.change(
                Change {
                    kind: edit.kind,
                    id: &edit.id,
                    value: edit.value.as_deref(),
                    expected: edit.expected,
                },
                Audit {
                    at,
                    actor: &actor,
                    action: edit.action,
                    target: &edit.id,
                    detail: &edit.detail.to_string(),
                },
            )
        })
        .await??;
        self.events.publish(notice);
        Ok(version)
    }

    /// Writes an action that changes no document into the audit.
    pub async fn audit(
        &self,
        actor: &str,
        action: &'static str,
        target: String,
        detail: Value,
    ) -> Result<(), Problem> {
        let registry = Arc::clone(&self.registry);
        let (at, actor) = (self.clock.now(), actor.to_owned());
        let notice = Notice::changed(action, &target, &actor, at);
        on_disk(move || {
            registry.audit(Audit {
                at,
                actor: &actor,
                action,
                target: &target,
                detail: &detail.to_string(),
            })
        })
        .await??;
        self.events.publish(notice);
        Ok(())
    }
}

/// The version that a change is made to: `If-Match` must name the one in force,
/// if it is sent. 0, for what the file set or nobody did, is left to the
/// registry, which still has a version of what was taken away.
pub fn expected(headers: &HeaderMap, version: u64) -> Result<Option<u64>, Problem> {
    if let Some(value) = headers.get(header::IF_MATCH) {
        let text = value.to_str().unwrap_or_default().trim();
        let wanted = text.trim_matches('"').parse::<u64>().ok();
        if text != "*" && wanted != Some(version) {
            let detail = format!("it is at version {version} now");
            return Err(Problem::new(Code::Conflict, detail));
        }
    }
    Ok((version > 0).then_some(version))
}
