//! The thread that wakes whoever waited long enough, and hears the ledger.

use std::sync::Arc;
use std::time::Duration;

use outflow_core::time::Mono;

use crate::service::Service;

/// It looks at least so often, so that what is over is forgotten.
const LOOKS_EVERY: Duration = Duration::from_secs(10);

/// Runs until the service is closed.
pub(crate) fn run(service: &Arc<Service>) {
    loop {
        let mut state = service.lock();
        if state.closed {
            return;
        }
        let now = state.clock.now();
        let told = service.turn(&mut state, &now);
        let next = state.next();
        let now = state.clock.now();
        state.wakes_at = next;
        drop(state);
        for (then, answer) in told {
            then(answer);
        }
        service.lend_again(now.mono);
        if next > now.mono {
            let sleeps = match next {
                Mono::NEVER => LOOKS_EVERY,
                next => Duration::from_nanos(next.since(now.mono).0).min(LOOKS_EVERY),
            };
            service.bell.wait(sleeps);
        }
    }
}
