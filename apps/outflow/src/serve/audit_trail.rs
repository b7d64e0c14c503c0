//! What rules did by themselves, written into the audit.
//!
//! The node's thread must not wait for the disk, so a thread of its own writes.
//! What it cannot take is counted and said in the log: the audit then lacks a
//! line, and nothing else does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use outflow_api::notices::{adapted_detail, refusal_detail, surge_detail, unwelcome_detail};
use outflow_core::engine::action::Alert;
use outflow_core::engine::learners::Adapted;
use outflow_core::time::Wall;
use outflow_ports::registry::{Audit, Registry};
use outflow_telemetry::catalogue::{Event, Level};
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
    /// Lines that there was no room for, and that the log has not told of.
    lost: Arc<AtomicU64>,
    now: fn() -> Wall,
}

impl AuditTrail {
    /// Begins to write; what is lost is told to `log`.
    pub fn start(
        registry: Arc<dyn Registry>,
        log: Arc<dyn Sink>,
        now: fn() -> Wall,
    ) -> std::io::Result<Self> {
        let (entries, waiting) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let scribe = Scribe {
            registry,
            log,
            lost: Arc::clone(&lost),
        };
        thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || scribe.write(&waiting))?;
        Ok(Self {
            entries: Mutex::new(entries),
            lost,
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
        if entries.try_send(entry).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
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
            Event::Alert(Alert::Refused(refusal)) => {
                let detail = refusal_detail(refusal).to_string();
                let target = refusal.about.to_string();
                self.note("rule:classify", "sending.refused", target, detail);
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

/// The thread that writes.
struct Scribe {
    registry: Arc<dyn Registry>,
    log: Arc<dyn Sink>,
    lost: Arc<AtomicU64>,
}

impl Scribe {
    fn write(&self, waiting: &Receiver<Entry>) {
        while let Ok(entry) = waiting.recv() {
            let audit = Audit {
                at: entry.at,
                actor: entry.actor,
                action: entry.action,
                target: &entry.target,
                detail: &entry.detail,
            };
            if let Err(error) = self.registry.audit(audit) {
                let (action, target) = (entry.action, &entry.target);
                self.tell(&format!("the audit lacks {action} of {target}: {error}"));
            }
            match self.lost.swap(0, Ordering::Relaxed) {
                0 => {}
                lost => self.tell(&format!(
                    "the audit lacks {lost} lines: more came than the disk took"
                )),
            }
        }
    }

    fn tell(&self, text: &str) {
        self.log.emit(&Event::Noted {
            level: Level::Warn,
            part: "audit",
            text,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    use outflow_core::time::Wall;
    use outflow_ports::registry::{
        Audit, AuditEntry, Change, Document, Kind, Registry, RegistryError,
    };
    use outflow_telemetry::catalogue::Event;
    use outflow_telemetry::sink::Sink;

    use super::{AuditTrail, WAITING_MAX};

    /// A disk that writes a line when it is told to.
    struct SlowDisk {
        begun: Sender<()>,
        go_on: Mutex<Receiver<()>>,
    }

    impl Registry for SlowDisk {
        fn list(&self, _: Kind) -> Result<Vec<Document>, RegistryError> {
            Ok(Vec::new())
        }

        fn get(&self, _: Kind, _: &str) -> Result<Option<Document>, RegistryError> {
            Ok(None)
        }

        fn change(&self, _: Change<'_>, _: Audit<'_>) -> Result<u64, RegistryError> {
            Ok(0)
        }

        fn keep(&self, _: Change<'_>, _: Wall) -> Result<u64, RegistryError> {
            Ok(0)
        }

        fn audit(&self, _: Audit<'_>) -> Result<(), RegistryError> {
            let _ = self.begun.send(());
            let _ = self.go_on.lock().expect("nobody panics").recv();
            Ok(())
        }

        fn audit_entries(
            &self,
            _: std::ops::Range<Wall>,
            _: Option<u64>,
            _: usize,
        ) -> Result<Vec<AuditEntry>, RegistryError> {
            Ok(Vec::new())
        }
    }

    #[derive(Debug)]
    struct Told(Mutex<Sender<String>>);

    impl Sink for Told {
        fn emit(&self, event: &Event<'_>) {
            if let Event::Noted { text, .. } = event {
                let told = self.0.lock().expect("nobody panics");
                let _ = told.send((*text).to_owned());
            }
        }
    }

    #[test]
    fn lines_that_are_lost_are_counted_and_told() {
        let ((begun, begins), (go_on, waits), (tell, told)) = (channel(), channel(), channel());
        let disk = SlowDisk {
            begun,
            go_on: Mutex::new(waits),
        };
        let log = Arc::new(Told(Mutex::new(tell)));
        let trail = AuditTrail::start(Arc::new(disk), log, || Wall(0)).expect("a thread");
        let note = || trail.note("rule:x", "limit.cut", "y".to_owned(), "{}".to_owned());
        note();
        begins.recv().expect("the first line is being written");
        (0..WAITING_MAX + 3).for_each(|_| note());
        go_on.send(()).expect("it waits");
        let said = told.recv().expect("it says so");
        assert!(said.contains("lacks 3 lines"), "{said}");
    }
}
