//! The service with its thread and clock, a node that is asked, and a ledger.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs
)]

mod lent;
mod own;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use outflow_core::class::Class;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::policy::policy::WhenAway;
use outflow_core::throttle::request::TTL_DEFAULT;
use outflow_core::time::Nanos;
use outflow_ports::throttle::{Acquire, Acquired, Asked, Reply, ThrottleError, Throttling};
use outflow_throttle::Service;

/// No wait is longer; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);

type Answer = Result<Acquired, ThrottleError>;

/// Asks for limits by name, numbers and cost; the answer, or where it comes.
fn begin(
    service: &Arc<Service>,
    tenant: Option<&str>,
    wait_ms: u64,
    limits: &[(&str, &str, u32)],
) -> Result<Answer, Receiver<Answer>> {
    let numbers: Vec<Vec<LimitSpec>> = limits
        .iter()
        .map(|(_, text, _)| {
            let texts = text.split(',').filter(|text| !text.is_empty());
            texts.map(|text| LimitSpec::parse(text).unwrap()).collect()
        })
        .collect();
    let asked: Vec<Asked<'_>> = limits
        .iter()
        .zip(&numbers)
        .map(|((key, _, cost), limits)| Asked {
            key,
            cost: *cost,
            limits,
            when_away: WhenAway::Closed,
        })
        .collect();
    let acquire = Acquire {
        tenant,
        limits: &asked,
        class: Class::Critical,
        wait: Nanos::from_millis(wait_ms),
        ttl: TTL_DEFAULT,
    };
    let (sender, receiver) = channel();
    let reply = service.acquire(&acquire, &mut || {
        let sender = sender.clone();
        Box::new(move |answer| drop(sender.send(answer)))
    });
    match reply {
        Reply::Now(answer) => Ok(answer),
        Reply::Later(_) => Err(receiver),
    }
}

fn ask(service: &Arc<Service>, wait_ms: u64, limits: &[(&str, &str, u32)]) -> Answer {
    match begin(service, None, wait_ms, limits) {
        Ok(answer) => answer,
        Err(later) => later.recv_timeout(PATIENCE).unwrap(),
    }
}

fn is_granted(answer: &Answer) -> bool {
    matches!(answer, Ok(Acquired::Granted(_)))
}

fn refused_by(answer: &Answer) -> usize {
    match answer {
        Ok(Acquired::Refused { by, .. }) => *by,
        other => panic!("{other:?}"),
    }
}
