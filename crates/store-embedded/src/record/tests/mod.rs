//! What any keeper of receipts and documents must do, and what this one does
//! when it is stopped, locked out, or opened by another release.

mod answers;
mod durability;
mod history;
mod registry;
mod speed;
mod suppressions;
mod tables;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Channel, Seq, State};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::Enhanced;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::{Nanos, Wall};
use outflow_ports::receipts::{Happening, Receipt};

use super::{Record, RecordSettings};
use crate::boot::{BootClock, SystemBoot};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// A directory that goes away with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let no = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outflow-record-{}-{no}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("record.db")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Those of the audit stay: many here are of 1970.
fn settings() -> RecordSettings {
    RecordSettings {
        audit_for: Nanos::MAX,
        ..RecordSettings::default()
    }
}

fn open(path: &Path) -> Record {
    Record::open(path, settings()).unwrap()
}

/// Keeps everything in memory until it is closed.
fn open_lazy(path: &Path) -> Record {
    let batch_time = Nanos::from_secs(3_600);
    let settings = RecordSettings {
        batch_time,
        batch_rows: 1_000_000,
        ..settings()
    };
    Record::open(path, settings).unwrap()
}

/// Writes at once.
fn open_eager(path: &Path) -> Record {
    let settings = RecordSettings {
        batch_time: Nanos::ZERO,
        ..settings()
    };
    Record::open(path, settings).unwrap()
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "never came: {what}");
        std::thread::yield_now();
    }
}

/// So long ago, to the millisecond.
fn ago(secs: u64) -> Wall {
    let at = SystemBoot.wall().0 - Nanos::from_secs(secs).0 as i64;
    Wall(at / 1_000_000 * 1_000_000)
}

fn error(code: u16, text: &str) -> LastError {
    LastError {
        code: Some(code),
        enhanced: Some(Enhanced(4, 7, 28)),
        class: ReplyClass::Rate,
        rule: Name::from("gmail-rate"),
        text: text.to_owned(),
    }
}

fn happening(at: Wall, what: &str) -> Happening {
    Happening {
        at,
        what: what.to_owned(),
        account: None,
        until: None,
        error: None,
    }
}

fn receipt(seq: u64, state: State) -> Receipt {
    let (accepted_at, settled_at) = (ago(600), ago(60));
    let failed = state != State::Delivered;
    Receipt {
        seq: Seq(seq),
        key: FlowKey {
            pool: Name::from("bulk"),
            destination: Destination::isp("google"),
            class: Class::High,
            tenant: Name::from("acme"),
            campaign: Some(Name::from("spring")),
            sender_domain: Some(Name::from("mail.acme.example")),
            channel: Channel::Email,
        },
        state,
        accepted_at,
        settled_at,
        attempts: 3,
        account: Some("ses-1".to_owned()),
        error: failed.then(|| error(421, "Too much, \"too\" fast: é\n")),
        cause: (state == State::Dead).then_some(DeathCause::Age),
        envelope: vec![0, 1, 2, 255],
        events: vec![
            happening(accepted_at, "accepted"),
            Happening {
                account: Some("ses-1".to_owned()),
                until: Some(settled_at),
                error: Some(error(450, "later")),
                ..happening(ago(300), "deferred")
            },
            happening(settled_at, state.as_str()),
        ],
    }
}
