//! From callbacks and blocking calls to futures.

use outflow_ports::intake::Then;
use tokio::sync::oneshot;

use crate::problem::{Code, Problem};

/// Asks the node, and waits for its answer. A node that drops the question is
/// on its way down.
pub async fn ask<T: Send + 'static>(question: impl FnOnce(Then<T>)) -> Result<T, Problem> {
    let (then, answer) = oneshot::channel();
    question(Box::new(move |value| {
        // A caller that went away is told nothing.
        let _ = then.send(value);
    }));
    answer.await.map_err(|_| gone())
}

/// Does something that waits for a disk, away from the executor.
pub async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::new(Code::Internal, "the request could not be finished"))
}

fn gone() -> Problem {
    Problem::later(Code::Closing, 5, "the server is shutting down")
}
