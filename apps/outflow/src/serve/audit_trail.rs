//! What rules did by themselves, written into the audit.
//!
//! The node's thread must not wait for the disk, so a thread of its own writes.
//! What it cannot take is counted and said in the log: the audit then lacks a
//! line, and nothing else does.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use outflow_api::notices::{adapted_detail, surge_detail, unwelcome_detail};
use outflow_core::engine::action::Alert;
use outflow_core::engine::learners::Adapted;
use outflow_core::time::Wall;
use outflow_ports::registry::{Audit, Registry};
use outflow_telemetry::catalogue::Event;
use outflow_telemetry::sink::Sink;

/// Lines that may wait for the disk.
const WAITING_MAX: usize = 4_096;

/// One line to come.
#[derive(Debug)]
struct Entry {
    at: Wall,
    actor: &'static str,
    action: &'static str,
    target: String,
    detail: String,
}

/// Writes what rules did into the audit.
#[derive(Debug)]
pub struct AuditTrail {
    entries: Mutex<SyncSender<Entry>>,
    now: fn() -> Wall,
}

impl AuditTrail {
    /// Begins to write.
    pub fn start(registry: Arc<dyn Registry>, now: fn() -> Wall) -> std::io::Result<Self> {
        let (entries, waiting) = sync_channel(WAITING_MAX);
        thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write(&*registry, &waiting))?;
        Ok(Self {
            entries: Mutex::new(entries),
            now,
        })
    }

    fn note(&self, actor: &'static str, action: &'static str, target: String, detail: String) {
        let entry = Entry {
            at: (self.now)(),
            actor,
            action,
            target,
            detail,
        };
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.try_send(entry) {
            // The log has the same line.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    fn adapted(&self, adapted: &Adapted) {
        let detail = adapted_detail(adapted).to_string();
        let action = adapted.turn.as_str();
        self.note("rule:control", action, adapted.key.to_string(), detail);
    }
}

impl Sink for AuditTrail {
    fn emit(&self, event: &Event<'_>) {
        match event {
            Event::Alert(Alert::Adapted(adapted)) => self.adapted(adapted),
            Event::Alert(Alert::Unwelcome {
                account,
                destination,
                welcome,
                reply,
            }) => {
                let target = format!("account:{account}/{destination}");
                let detail = unwelcome_detail(*welcome, reply).to_string();
                self.note("rule:control", "connections.capped", target, detail);
            }
            Event::Surge(surge) => {
                let (target, detail) = (surge.destination.clone(), surge_detail(surge));
                self.note(
                    "rule:surge",
                    "suppressions.hold",
                    target,
                    detail.to_string(),
                );
            }
            _ => {}
        }
    }
}

fn write(registry: &dyn Registry, waiting: &Receiver<Entry>) {
    while let Ok(entry) = waiting.recv() {
        let audit = Audit {
            at: entry.at,
            actor: entry.actor,
            action: entry.action,
            target: &entry.target,
            detail: &entry.detail,
        };
        if let Err(error) = registry.audit(audit) {
            eprintln!(
                "the audit lacks {} of {}: {error}",
                entry.action, entry.target
            );
        }
    }
}
