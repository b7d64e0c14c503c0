//! What the API does by itself: mitigations are taken back, pauses run out,
//! approved dead letters re-enter. All of it is read from the registry, so a new start goes
//! on where the last one was.

use std::time::Duration;

use outflow_core::time::{Nanos, Wall};
use outflow_telemetry::Event;
use outflow_telemetry::catalogue::Level;
use serde_json::json;

use crate::events::{Notice, NoticeKind};
use crate::mitigations;
use crate::pauses::{self, Pause};
use crate::problem::Problem;
use crate::standstills;
use crate::state::ApiState;

/// The longest time between two turns.
const IDLE: Nanos = Nanos::from_secs(1);
/// The shortest time between two turns.
const BUSY: Nanos = Nanos::from_millis(10);
/// Turns between two looks for pauses that have run out, which read the disk.
const PAUSE_TURNS: u64 = 60;

/// Does what is due by now, once. When there is more to do; none if nobody
/// knows of anything.
pub async fn turn(state: &ApiState, now: Wall) -> Result<Option<Wall>, Problem> {
    standstills::write(state).await?;
    mitigations::take_back(state, now).await?;
    state.replays.turn(state, now).await
}

/// Takes away pauses that have run out. The engine has lifted them by itself.
pub async fn clear_pauses(state: &ApiState, now: Wall) -> Result<(), Problem> {
    for document in pauses::documents(state).await? {
        if Pause::of(&document).is_some_and(|(_, _, pause)| pause.is_over(now)) {
            pauses::lift(state, "server", &document, "pause.over").await?;
        }
    }
    Ok(())
}

/// Does what is due, until `shutdown` comes.
pub async fn run(state: ApiState, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    let mut turns: u64 = 0;
    loop {
        let now = state.clock.now();
        let mut done = turn(&state, now).await;
        if turns.is_multiple_of(PAUSE_TURNS)
            && let Err(problem) = clear_pauses(&state, now).await
        {
            done = Err(problem);
        }
        turns += 1;
        let next = done.unwrap_or_else(|problem| {
            let text = problem.clone().body().detail;
            state.telemetry.emit(&Event::Noted {
                level: Level::Error,
                part: "api",
                text: &text,
            });
            state.events.publish(alert(&problem));
            None
        });
        let wait = next.map_or(IDLE, |at| at.since(state.clock.now()));
        let wait = Duration::from_nanos(wait.max(BUSY).min(IDLE).0);
        tokio::select! {
            () = &mut shutdown => return,
            () = tokio::time::sleep(wait) => {}
            () = state.replays.woken() => {}
        }
    }
}

fn alert(problem: &Problem) -> Notice {
    let data = json!({ "what": "chore_failed", "detail": problem.clone().body() });
    Notice {
        kind: NoticeKind::Alert,
        tenant: None,
        data: data.to_string().into(),
    }
}
