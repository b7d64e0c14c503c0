//! What metrics, logs, the reference and the examples must hold to.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod examples;
mod history;
mod logs;
mod page;
mod reference;

use std::path::PathBuf;

use outflow_core::class::Class;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::Enhanced;
use outflow_core::time::{Nanos, Wall};
use outflow_telemetry::catalogue::{AttemptOutcome, Attempted};
use outflow_telemetry::sink::Slot;

/// 2023-11-14T22:13:20Z.
const AT: Wall = Wall(1_700_000_000_000_000_000);

fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn key(destination: &str) -> FlowKey {
    FlowKey {
        class: Class::High,
        tenant: Name::from("acme"),
        campaign: Some(Name::from("q4 \"sale\"")),
        ..FlowKey::to(Destination::isp(destination))
    }
}

fn attempt(key: &FlowKey, slot: Slot) -> Attempted<'_> {
    Attempted {
        at: AT,
        message: MessageId::new(AT, Seq(7)),
        key,
        slot,
        account: Some("ses-1"),
        attempt: 2,
        outcome: AttemptOutcome::Deferred,
        reason: ReplyClass::Rate,
        code: Some(421),
        enhanced: Some(Enhanced(4, 7, 28)),
        duration: Nanos(12_345_678),
        waited: Nanos::from_secs(61),
    }
}
