//! What happens, as it happens: server-sent events.
//!
//! Listeners read from one bounded ring. One that reads too slowly loses the
//! oldest notices and is told how many; it never slows anybody else down.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;
use outflow_core::fair;
use outflow_core::name::Name;
use outflow_core::time::Wall;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use utoipa::{IntoParams, ToSchema};

use crate::auth::{Caller, May, Submit};
use crate::extract::Asked;
use crate::fields::KindList;
use crate::grant::Tokens;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::standstills::Standstills;
use crate::state::ApiState;

/// Notices that a slow listener may be behind.
const RING: usize = 4_096;
/// Listeners at a time.
const LISTENERS_MAX: u64 = 64;
/// A comment is sent when nothing else was for so long, so that a dead
/// connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A message is done with.
    Settled,
    /// A message waits for its next attempt.
    Deferred,
    /// Something that a person should look at.
    Alert,
    /// Somebody changed something.
    Changed,
}

impl NoticeKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Deferred => "deferred",
            Self::Alert => "alert",
            Self::Changed => "changed",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// Whose message it is about. Notices without one are for operators who are
    /// not bound to a tenant.
    pub tenant: Option<Name>,
    /// JSON, as it is sent.
    pub data: Arc<str>,
}

impl Notice {
    /// Somebody changed something.
    pub fn changed(action: &str, target: &str, actor: &str, at: Wall) -> Self {
        let data = json!({
            "action": action,
            "target": target,
            "actor": actor,
            "at": Stamp(at),
        });
        Self {
            kind: NoticeKind::Changed,
            tenant: None,
            data: data.to_string().into(),
        }
    }

    fn is_for(&self, caller: &Caller) -> bool {
        match &self.tenant {
            Some(tenant) => caller.sees(tenant),
            None => caller.horizon().is_none(),
        }
    }
}

/// Where notices are published and listened to.
#[derive(Debug)]
pub struct Events {
    ring: broadcast::Sender<Notice>,
    listeners: Arc<Mutex<Seats>>,
    open: watch::Sender<bool>,
    /// The tokens in force, once they have changed.
    tokens: watch::Sender<Option<Arc<Tokens>>>,
    /// What the audit is still to hear of.
    pub(crate) standstills: Standstills,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            ring: broadcast::Sender::new(RING),
            listeners: Arc::default(),
            open: watch::Sender::new(true),
            tokens: watch::Sender::new(None),
            standstills: Standstills::default(),
        }
    }
}

impl Events {
    /// Tells all listeners. Costs next to nothing while there are none.
    pub fn publish(&self, notice: Notice) {
        // No listeners: nobody to tell.
        let _ = self.ring.send(notice);
    }

    /// Whether anybody listens, so that a notice is worth writing.
    pub fn has_listeners(&self) -> bool {
        self.ring.receiver_count() > 0
    }

    /// How many listen for a tenant, and how many more may.
    pub(crate) fn seats_of(&self, tenant: &Name) -> (u64, u64) {
        lock(&self.listeners).of(tenant)
    }

    /// Ends all streams, for good.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Ends the streams of those whose token is not in force any more.
    pub(crate) fn review(&self, tokens: Arc<Tokens>) {
        self.tokens.send_replace(Some(tokens));
    }

    fn listen(&self, caller: Caller, kinds: Vec<NoticeKind>) -> Result<Listener, Problem> {
        let seat = Seat::take(&self.listeners, caller.horizon())?;
        Ok(Listener {
            ring: self.ring.subscribe(),
            open: self.open.subscribe(),
            tokens: self.tokens.subscribe(),
            caller,
            kinds,
            _seat: seat,
        })
    }
}

/// One who listens.
struct Listener {
    ring: broadcast::Receiver<Notice>,
    open: watch::Receiver<bool>,
    tokens: watch::Receiver<Option<Arc<Tokens>>>,
    caller: Caller,
    kinds: Vec<NoticeKind>,
    _seat: Seat,
}

/// Who listens.
#[derive(Debug, Default)]
struct Seats {
    all: u64,
    by_tenant: BTreeMap<Name, u64>,
}

impl Seats {
    /// How many a tenant has, and how many more it may have.
    fn of(&self, tenant: &Name) -> (u64, u64) {
        let own = self.by_tenant.get(tenant).copied().unwrap_or(0);
        (own, fair::room(own, self.all, LISTENERS_MAX))
    }
}

/// The place of one listener, which is free again when it is dropped.
#[derive(Debug)]
struct Seat {
    seats: Arc<Mutex<Seats>>,
    tenant: Option<Name>,
}

impl Seat {
    /// A place for somebody of this tenant, or for who speaks for all.
    fn take(seats: &Arc<Mutex<Seats>>, tenant: Option<&Name>) -> Result<Self, Problem> {
        let mut taken = lock(seats);
        if taken.all >= LISTENERS_MAX {
            return Err(Problem::later(Code::Busy, 10, "too many listen already"));
        }
        if let Some(tenant) = tenant {
            if taken.of(tenant).1 == 0 {
                let detail = format!("as many listen for {tenant} as may for one tenant");
                return Err(Problem::later(Code::QuotaExhausted, 10, detail));
            }
            *taken.by_tenant.entry(tenant.clone()).or_default() += 1;
        }
        taken.all += 1;
        Ok(Self {
            seats: Arc::clone(seats),
            tenant: tenant.cloned(),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = lock(&self.seats);
        taken.all = taken.all.saturating_sub(1);
        if let Some(tenant) = &self.tenant
            && let Some(own) = taken.by_tenant.get_mut(tenant)
        {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.by_tenant.remove(tenant);
            }
        }
    }
}

fn lock(seats: &Mutex<Seats>) -> MutexGuard<'_, Seats> {
    seats.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    /// The next event for this listener; none at the end.
    async fn next(&mut self) -> Option<Event> {
        let id = self.caller.id.as_str();
        let is_gone = |tokens: &Option<Arc<Tokens>>| tokens.as_ref().is_some_and(|it| !it.has(id));
        loop {
            let heard = tokio::select! {
                biased;
                _ = self.open.wait_for(|open| !open) => return None,
                _ = self.tokens.wait_for(is_gone) => return None,
                heard = self.ring.recv() => heard,
            };
            match heard {
                Ok(notice) if self.wants(&notice) => {
                    return Some(
                        Event::default()
                            .event(notice.kind.as_str())
                            .data(&notice.data),
                    );
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    let data = json!({ "missed": missed }).to_string();
                    return Some(Event::default().event("missed").data(data));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn wants(&self, notice: &Notice) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&notice.kind);
        is_kind && notice.is_for(&self.caller)
    }
}

type NextEvent = Pin<Box<dyn Future<Output = (Option<Event>, Listener)> + Send>>;

/// A listener as a stream.
struct Listening(Option<NextEvent>);

fn next_of(mut listener: Listener) -> NextEvent {
    Box::pin(async move { (listener.next().await, listener) })
}

impl Stream for Listening {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = self.0.as_mut() else {
            return Poll::Ready(None);
        };
        let Poll::Ready((event, listener)) = next.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.0 = event.is_some().then(|| next_of(listener));
        Poll::Ready(event.map(Ok))
    }
}

/// What to listen to.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// Only these, separated by commas: settled, deferred, alert, changed.
    #[param(value_type = Option<KindList>)]
    kinds: Option<String>,
}

/// Listen to what happens, as server-sent events. A reader that is too slow is
/// sent `missed` with the number of events that it lost.
#[utoipa::path(
    get,
    path = "/events",
    tag = "events",
    params(EventsQuery),
    responses((status = 200, description = "a stream of events", content_type = "text/event-stream", body = String)),
)]
pub async fn listen(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<EventsQuery>>,
) -> Result<impl axum::response::IntoResponse, Problem> {
    let words = query.kinds.as_deref().unwrap_or_default();
    let kinds = words
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let kinds = kinds.map(kind).collect::<Result<_, _>>()?;
    let listener = state.events.listen((*may).clone(), kinds)?;
    let events = Sse::new(Listening(Some(next_of(listener))));
    Ok(events.keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn kind(word: &str) -> Result<NoticeKind, Problem> {
    let all = [
        NoticeKind::Settled,
        NoticeKind::Deferred,
        NoticeKind::Alert,
        NoticeKind::Changed,
    ];
    let found = all.into_iter().find(|kind| kind.as_str() == word);
    found.ok_or_else(|| {
        let detail = format!("kinds: {word:?} is none of settled, deferred, alert, changed");
        Problem::new(Code::InvalidQuery, detail)
    })
}
