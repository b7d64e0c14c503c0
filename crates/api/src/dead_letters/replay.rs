//! What was decided about dead letters, carried out.
//!
//! Approved ones re-enter as new messages, so many a second, each with an
//! idempotency key of its own, so that a crash between two steps sends nothing
//! twice; then the old ones are forgotten. The review says how far it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outflow_core::destination::Destination;
use outflow_core::message::{Channel, Seq, State as MessageState};
use outflow_core::name::Name;
use outflow_core::time::{NANOS_PER_SECOND, Nanos, Wall};
use outflow_mail::Address;
use outflow_ports::intake::Submission;
use outflow_ports::query::LiveMessage;
use outflow_ports::registry::Kind;
use serde_json::json;
use tokio::sync::{Mutex, Notify};

use super::review::{Decision, Review};
use crate::ask::{ask, on_disk};
use crate::changes::Edit;
use crate::messages::view::id_of;
use crate::problem::Problem;
use crate::state::ApiState;

/// Messages of one step.
const BATCH: usize = 500;
/// A replay that was held up makes up for so much at most.
const CATCH_UP: Nanos = Nanos::from_secs(1);
/// Progress is made durable at least this often.
const SAVE_EVERY: Nanos = Nanos::from_secs(10);
const SAVE_MESSAGES: u64 = 500;
/// A store that refuses is asked again after this.
const HOLD: Nanos = Nanos::from_secs(1);

/// One review that is being carried out.
#[derive(Debug)]
struct Running {
    review: Review,
    version: u64,
    /// When the next message may re-enter.
    due: Wall,
    saved_at: Wall,
    saved_done: u64,
}

/// Dead letters that a step came by.
#[derive(Debug, Default)]
struct Passed {
    /// The last of them; none at the end.
    last: Option<Seq>,
    /// How many the review is about.
    selected: u64,
    /// Those among them that are still there.
    live: Vec<LiveMessage>,
}

/// Reviews that are being carried out.
#[derive(Debug)]
pub struct Replays {
    running: Mutex<BTreeMap<String, Running>>,
    /// Whether reviews are to be read again.
    stale: AtomicBool,
    woken: Notify,
}

/// None yet: a restart finds those of before.
impl Default for Replays {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            stale: AtomicBool::new(true),
            woken: Notify::default(),
        }
    }
}

impl Replays {
    /// There may be more to do.
    pub fn wake(&self) {
        self.stale.store(true, Ordering::SeqCst);
        self.woken.notify_one();
    }

    /// Waits until there may be more to do.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Does what may be done by now. When to come again; none if all is done.
    pub async fn turn(&self, state: &ApiState, now: Wall) -> Result<Option<Wall>, Problem> {
        let mut running = self.running.lock().await;
        if self.stale.swap(false, Ordering::SeqCst)
            && let Err(problem) = find_new(state, &mut running, now).await
        {
            self.stale.store(true, Ordering::SeqCst);
            return Err(problem);
        }
        let mut next = None;
        let ids: Vec<String> = running.keys().cloned().collect();
        for id in ids {
            let Some(one) = running.get_mut(&id) else {
                continue;
            };
            let stepped = match one.review.state {
                Decision::Replaying => one.replay(state, &id, now).await,
                _ => one.discard(state, &id, now).await,
            };
            let (due, is_done) = (one.due, one.is_done());
            if is_done || stepped.is_err() {
                // What could not be saved is read again.
                running.remove(&id);
                self.stale.fetch_or(!is_done, Ordering::SeqCst);
            }
            stepped?;
            if !is_done {
                next = Some(next.map_or(due, |next: Wall| next.min(due)));
            }
        }
        Ok(next)
    }
}

/// Takes up reviews that were decided since, or before a restart.
async fn find_new(
    state: &ApiState,
    running: &mut BTreeMap<String, Running>,
    now: Wall,
) -> Result<(), Problem> {
    let registry = Arc::clone(&state.registry);
    for document in on_disk(move || registry.list(Kind::Review)).await?? {
        let Some(review) = Review::of(&document) else {
            continue;
        };
        let is_decided = matches!(review.state, Decision::Replaying | Decision::Discarding);
        if is_decided && !running.contains_key(&document.id) {
            let one = Running {
                saved_done: review.done + review.skipped,
                review,
                version: document.version,
                due: now,
                saved_at: now,
            };
            running.insert(document.id, one);
        }
    }
    Ok(())
}

impl Running {
    const fn is_done(&self) -> bool {
        matches!(self.review.state, Decision::Replayed | Decision::Discarded)
    }

    /// The time between two messages.
    fn interval(&self) -> Nanos {
        Nanos((NANOS_PER_SECOND as f64 / self.review.pace) as u64)
    }

    /// How many messages may re-enter by now.
    fn allowance(&mut self, now: Wall) -> usize {
        let earliest = Wall(now.0.saturating_sub_unsigned(CATCH_UP.0));
        self.due = self.due.max(earliest);
        if self.due > now {
            return 0;
        }
        let passed = now.since(self.due).0 / self.interval().0.max(1);
        usize::try_from(passed)
            .unwrap_or(BATCH)
            .saturating_add(1)
            .min(BATCH)
    }

    /// The next dead letters: at most `max` that are selected.
    async fn page(&self, state: &ApiState, max: usize) -> Result<Passed, Problem> {
        // Those of another cause are passed over, so more must be looked at.
        let looks = match self.review.cause {
            Some(_) => BATCH,
            None => max,
        };
        let (receipts, review) = (Arc::clone(&state.receipts), self.review.clone());
        let page =
            on_disk(move || receipts.list(&review.filter(), review.below(), looks)).await??;
        let mut passed = Passed::default();
        for receipt in page {
            if self.review.selects(&receipt) {
                if passed.selected == max as u64 {
                    break;
                }
                passed.selected += 1;
                let found = ask(|then| state.query.message(receipt.seq, then)).await?;
                let dead = found.filter(|live| live.state == MessageState::Dead);
                passed.live.extend(dead);
            }
            passed.last = Some(receipt.seq);
        }
        Ok(passed)
    }

    async fn replay(&mut self, state: &ApiState, id: &str, now: Wall) -> Result<(), Problem> {
        let allowed = self.allowance(now);
        if allowed == 0 {
            return Ok(());
        }
        let Passed {
            last,
            selected,
            live,
        } = self.page(state, allowed).await?;
        let Some(last) = last else {
            self.review.state = Decision::Replayed;
            return self.save(state, id, now).await;
        };
        let forgotten: Vec<Seq> = live.iter().map(|live| live.seq).collect();
        let submissions =
            on_disk(move || live.iter().filter_map(again).collect::<Vec<_>>()).await?;
        let entered = submissions.len() as u64;
        if entered > 0 {
            let taken = ask(|then| state.intake.submit(submissions, then)).await?;
            // What was taken of them is known by its key the next time.
            if !taken.is_ok_and(|taken| taken.iter().all(Result::is_ok)) {
                self.due = now + HOLD;
                return Ok(());
            }
            state.control.forget(forgotten);
        }
        self.review.below = Some(last.0);
        self.review.done += entered;
        self.review.skipped += selected - entered;
        self.due = self.due + self.interval().times(entered);
        self.save_sometimes(state, id, now).await
    }

    async fn discard(&mut self, state: &ApiState, id: &str, now: Wall) -> Result<(), Problem> {
        let Passed {
            last,
            selected,
            live,
        } = self.page(state, BATCH).await?;
        let Some(last) = last else {
            self.review.state = Decision::Discarded;
            return self.save(state, id, now).await;
        };
        self.review.below = Some(last.0);
        self.review.done += live.len() as u64;
        self.review.skipped += selected - live.len() as u64;
        let forgotten = live.iter().map(|live| live.seq);
        state.control.forget(forgotten.collect());
        self.due = now;
        self.save_sometimes(state, id, now).await
    }

    async fn save_sometimes(
        &mut self,
        state: &ApiState,
        id: &str,
        now: Wall,
    ) -> Result<(), Problem> {
        let done = self.review.done + self.review.skipped;
        let is_time = now.since(self.saved_at) >= SAVE_EVERY;
        match is_time || done - self.saved_done >= SAVE_MESSAGES {
            true => self.save(state, id, now).await,
            false => Ok(()),
        }
    }

    async fn save(&mut self, state: &ApiState, id: &str, now: Wall) -> Result<(), Problem> {
        let Review { done, skipped, .. } = self.review;
        let edit = Edit {
            kind: Kind::Review,
            id: id.to_owned(),
            value: Some(json!(self.review).to_string()),
            expected: Some(self.version),
            action: "review.progress",
            detail: json!({ "state": self.review.state, "done": done, "skipped": skipped }),
        };
        self.version = state.change("server", edit).await?;
        (self.saved_at, self.saved_done) = (now, done + skipped);
        Ok(())
    }
}

/// A dead letter as a new message; none if its content cannot be read. Waits
/// for the disk.
fn again(live: &LiveMessage) -> Option<Submission> {
    let id = id_of(live.accepted_at, live.seq);
    let parcel = live.parcel.as_ref()?.read().ok()?;
    let (mut envelope, _) = parcel.open().ok()?;
    let address = Address::parse(&envelope.to).ok();
    let mut key = (*live.key).clone();
    // Who hosts a domain may have changed: it is asked for anew.
    if key.channel == Channel::Email
        && let Some(address) = &address
    {
        key.destination = Destination::unresolved(Name::from(address.domain()));
    }
    envelope.tags.insert("replay_of".to_owned(), id.clone());
    Some(Submission {
        key,
        idempotency_key: Some(format!("replay:{id}").into()),
        not_before: None,
        // What it was to be of use until was known when the review was approved.
        expires_at: Wall::NEVER,
        recipient: address.as_ref().map(Address::recipient).unwrap_or_default(),
        cost: live.cost,
        engaged: None,
        envelope: envelope.to_bytes().into(),
        body: parcel.body,
    })
}
