//! The thread that wakes whoever waited long enough.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use outflow_core::time::Mono;

use crate::service::Service;

/// It looks at least so often, so that what is over is forgotten.
const LOOKS_EVERY: Duration = Duration::from_secs(10);

/// Runs until the service is closed.
pub(crate) fn run(service: &Arc<Service>) {
    let mut state = service.lock();
    while !state.closed {
        let now = state.clock.now();
        let told = service.turn(&mut state, &now);
        if !told.is_empty() {
            drop(state);
            for (then, answer) in told {
                then(answer);
            }
            state = service.lock();
        }
        let next = state.throttle.next_wake();
        let now = state.clock.now();
        if next <= now.mono {
            continue;
        }
        state.wakes_at = next;
        let sleeps = match next {
            Mono::NEVER => LOOKS_EVERY,
            next => Duration::from_nanos(next.since(now.mono).0).min(LOOKS_EVERY),
        };
        let woken = service.bell.wait_timeout(state, sleeps);
        (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
    }
}
