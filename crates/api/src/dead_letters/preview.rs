//! What a review would decide on: how many, why, and some of them.
//!
//! A receipt says that a message was given up, not what became of it since: a
//! dead letter that was replayed or discarded has one as well. So the node is
//! asked for each whether it is still there.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::message::{Seq, State as MessageState};
use outflow_ports::receipts::{CauseCount, Receipt};
use tokio::sync::oneshot;

use super::review::Review;
use crate::ask::on_disk;
use crate::problem::Problem;
use crate::state::ApiState;

const SAMPLES: usize = 5;
/// Dead letters that are looked at one by one. Beyond, all that were ever given
/// up count.
const COUNTED_MAX: usize = 50_000;
const PAGE: usize = 500;

/// What a review would decide on.
#[derive(Debug, Default)]
pub struct Preview {
    /// How many.
    pub selected: u64,
    /// Some of them.
    pub samples: Vec<Receipt>,
    /// What they have in common, most first.
    pub causes: Vec<CauseCount>,
}

/// Those receipts whose messages are dead letters still.
pub async fn still_dead(state: &ApiState, receipts: Vec<Receipt>) -> Vec<Receipt> {
    // Asked all at once, so that the node answers them in one turn.
    let asked: Vec<_> = receipts
        .into_iter()
        .map(|receipt| {
            let (then, answer) = oneshot::channel();
            let tell = Box::new(move |found| {
                let _ = then.send(found);
            });
            state.query.message(receipt.seq, tell);
            (receipt, answer)
        })
        .collect();
    let mut dead = Vec::with_capacity(asked.len());
    for (receipt, answer) in asked {
        let found = answer.await.ok().flatten();
        if found.is_some_and(|live| live.state == MessageState::Dead) {
            dead.push(receipt);
        }
    }
    dead
}

/// Looks at what a review selects.
pub async fn preview(state: &ApiState, review: &Review) -> Result<Preview, Problem> {
    let mut preview = Preview::default();
    let mut causes: BTreeMap<(String, String, Option<u16>, String), u64> = BTreeMap::new();
    let (mut looked, mut below): (u64, Option<Seq>) = (0, None);
    loop {
        let (receipts, filter) = (Arc::clone(&state.receipts), review.filter());
        let page = on_disk(move || receipts.list(&filter, below, PAGE)).await??;
        let Some(last) = page.last() else {
            break;
        };
        below = Some(last.seq);
        looked += page.len() as u64;
        let meant = page.into_iter().filter(|receipt| review.selects(receipt));
        for receipt in still_dead(state, meant.collect()).await {
            preview.selected += 1;
            *causes.entry(cause_of(&receipt)).or_default() += 1;
            if preview.samples.len() < SAMPLES {
                preview.samples.push(receipt);
            }
        }
        if looked >= COUNTED_MAX as u64 {
            if review.cause.is_none() {
                let (receipts, filter) = (Arc::clone(&state.receipts), review.filter());
                let all = on_disk(move || receipts.count(&filter)).await??;
                preview.selected += all.saturating_sub(looked);
            }
            break;
        }
    }
    let causes = causes.into_iter();
    preview.causes = causes
        .map(
            |((cause, error_class, code, destination), count)| CauseCount {
                cause,
                error_class,
                code,
                destination,
                count,
            },
        )
        .collect();
    preview
        .causes
        .sort_by_key(|cause| std::cmp::Reverse(cause.count));
    Ok(preview)
}

fn cause_of(receipt: &Receipt) -> (String, String, Option<u16>, String) {
    let error = receipt.error.as_ref();
    (
        receipt.cause.map_or("", |cause| cause.as_str()).to_owned(),
        error.map_or("", |error| error.class.as_str()).to_owned(),
        error.and_then(|error| error.code),
        receipt.key.destination.to_string(),
    )
}
