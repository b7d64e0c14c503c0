//! Questions to a running node, answered from live state.
//!
//! Each answer takes bounded work: one message costs a look into the store and
//! the engine, a page of a list a fixed number of looks (so it may be short and
//! still carry a cursor), an overview one pass over flows, lanes or limits.

use std::sync::Arc;

use outflow_core::engine::Engine;
use outflow_core::engine::explain::Explanation;
use outflow_core::engine::meters::AccountMeter;
use outflow_core::engine::standing::Standing;
use outflow_core::engine::view;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::Rate;
use outflow_core::message::{Seq, State};
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::schedule::waits::Waits;
use outflow_core::tally::{Counter, Window};
use outflow_core::time::Now;
use outflow_ports::ledger::Ledger;
use outflow_ports::query::{Depth, Filter, LaneView, LimitView, LiveMessage, Page, TallyView};
use outflow_ports::resolver::Resolver;
use outflow_ports::store::{Found, Store};
use outflow_ports::transport::Transport;

use crate::node::Node;

/// Messages looked at for one page.
const LOOKS_MAX: usize = 4_096;
/// Messages looked at in one go.
const LOOKS: usize = 512;
/// The longest page.
const PAGE_MAX: usize = 1_000;

/// What limits have held up so far, for metrics.
#[derive(Clone, Debug, Default)]
pub struct Meters {
    /// By account.
    pub accounts: Vec<AccountMeter>,
    /// By the scopes of the limits.
    pub waits: Vec<(ScopeSet, Waits)>,
}

impl<S: Store, L: Ledger, T: Transport, R: Resolver> Node<S, L, T, R> {
    /// One message.
    pub fn message(&self, seq: Seq) -> Option<LiveMessage> {
        let found = self.ports().store.find(seq)?;
        let in_flight = self.engine().is_in_flight(found.flow, seq);
        self.live(&found, in_flight)
    }

    /// Why a message waits, and until when; none if it does not wait.
    pub fn explain(&self, now: &Now, seq: Seq) -> Option<(LiveMessage, Explanation)> {
        let (store, engine) = (&self.ports().store, self.engine());
        let found = store.find(seq)?;
        let message = self.message(seq)?;
        let explanation = match (message.state, found.due_at) {
            (State::Deferred, Some(until)) => engine.explain(now, found.flow, 0)?.not_before(until),
            (State::Queued, _) => {
                let held = engine.ahead_in_heads(found.flow, seq);
                let ahead = held + store.ahead(found.flow, seq).unwrap_or(0);
                engine.explain(now, found.flow, ahead)?
            }
            _ => return None,
        };
        Some((message, explanation))
    }

    /// Live messages from `from` on, at most `max`.
    pub fn messages(&self, filter: &Filter, from: Seq, max: usize) -> Page<LiveMessage> {
        let max = max.clamp(1, PAGE_MAX);
        let in_flight = self.engine().in_flight();
        let mut page = Page {
            items: Vec::new(),
            next: None,
        };
        let mut next = Some(from);
        let mut looks = 0;
        while let Some(from) = next
            && looks < LOOKS_MAX
            && page.items.len() < max
        {
            looks += LOOKS;
            let mut beyond = None;
            let end = self.ports().store.scan(from, LOOKS, &mut |found| {
                if page.items.len() >= max {
                    beyond.get_or_insert(found.head.seq);
                } else if self.is_meant(filter, &found) {
                    let flies = in_flight.binary_search(&found.head.seq).is_ok();
                    let live = self.live(&found, flies);
                    page.items
                        .extend(live.filter(|live| filter.has(live.state)));
                }
            });
            next = beyond.or(end);
        }
        page.next = next;
        page
    }

    /// Whether a message's flow matches: what is cheap to know comes first.
    fn is_meant(&self, filter: &Filter, found: &Found) -> bool {
        if found.dead && !filter.has(State::Dead) {
            return false;
        }
        let Some(matches) = &filter.matches else {
            return true;
        };
        let key = self.key_of(found);
        key.is_some_and(|key| matches.matches_flow(key))
    }

    /// All lanes that have messages, sessions or a pause.
    pub fn lanes(&self, now: &Now) -> Vec<LaneView> {
        let lanes = self.engine().lanes(now).into_iter();
        let lanes = lanes.map(|lane| LaneView {
            name: format!("{}/{}", lane.pool, lane.destination),
            pool: lane.pool,
            waiting: lane.waiting,
            in_flight: lane.in_flight,
            sessions: lane.sessions,
            sent: lane.sent,
            waiting_on: lane.waiting_on,
            paused: lane.paused,
            oldest_age: lane.oldest.map(|oldest| now.wall.since(oldest)),
            broken: lane.broken,
            half_open: lane.half_open,
            sessions_welcome: lane.sessions_welcome,
        });
        lanes.collect()
    }

    /// All accounts that are held beside their limits.
    pub fn standings(&self, now: &Now) -> Vec<Standing> {
        self.engine().standings(now)
    }

    /// All limits.
    pub fn limits(&self, now: &Now) -> Vec<LimitView> {
        let limits = self.engine().limit_views(now);
        limits.into_iter().map(shown).collect()
    }

    /// What was counted lately, by key.
    pub fn tallies(&self, now: &Now) -> Vec<TallyView> {
        let tallies = self.engine().tallies();
        let views = tallies.map(|(key, tally)| TallyView {
            key: Arc::clone(key),
            counts: Window::ALL
                .map(|window| Counter::ALL.map(|it| tally.count(now.mono, window, it))),
        });
        views.collect()
    }

    /// How much waits.
    pub fn depth(&self, now: &Now) -> Depth {
        let engine: &Engine = self.engine();
        let depth = engine.depth();
        let mut deferred = [0; 4];
        self.ports().store.deferred(&mut |flow, count| {
            let class = engine.flow_key(flow).map(|key| key.class.index());
            if let Some(sum) = class.and_then(|class| deferred.get_mut(class)) {
                *sum += count;
            }
        });
        let age = |oldest: Option<_>| oldest.map(|oldest| now.wall.since(oldest));
        Depth {
            queued: depth.waiting,
            sending: depth.in_flight,
            deferred,
            oldest_age: depth.oldest.map(age),
        }
    }

    /// What limits have held up so far.
    pub fn meters(&self) -> Meters {
        let engine = self.engine();
        Meters {
            accounts: engine.account_meters(),
            waits: engine.limit_waits().collect(),
        }
    }

    /// The facts of a message. A flow of which only dead letters are left is
    /// known to the store alone.
    fn key_of(&self, found: &Found) -> Option<&Arc<FlowKey>> {
        let key = self.engine().flow_key(found.flow);
        key.filter(|_| !found.dead)
            .or_else(|| self.ports().store.flow_key(found.flow))
    }

    /// What the store keeps, as callers see it. A message that neither waits
    /// nor flies is about to be settled: it counts as sending until then.
    fn live(&self, found: &Found, in_flight: bool) -> Option<LiveMessage> {
        let (store, engine) = (&self.ports().store, self.engine());
        let (flow, head) = (found.flow, &found.head);
        let waits = || store.ahead(flow, head.seq).is_some() || engine.holds(flow, head.seq);
        let state = match found.due_at {
            _ if found.dead => State::Dead,
            _ if in_flight => State::Sending,
            Some(_) => State::Deferred,
            None if waits() => State::Queued,
            None => State::Sending,
        };
        Some(LiveMessage {
            seq: head.seq,
            key: Arc::clone(self.key_of(found)?),
            state,
            accepted_at: head.accepted_at,
            due_at: found.due_at,
            expires_at: head.expires_at,
            attempts: head.attempts,
            cost: head.cost,
            parcel: store.parcel(head.seq),
        })
    }
}

fn shown(limit: view::LimitView) -> LimitView {
    let rate = limit.spec.shape().rate.map(Rate::in_a_second);
    let rate = limit.learnt.as_ref().map(|it| it.rate).or(rate);
    let spec = match &limit.learnt {
        Some(learnt) => outflow_core::adapt::shown_rate(learnt.rate),
        None => limit.spec.to_string(),
    };
    LimitView {
        key: limit.key,
        spec,
        tokens: limit.tokens,
        capacity: limit.capacity,
        rate,
        waiters: limit.waiters,
        next_grant: limit.next_grant,
        learnt: limit.learnt,
    }
}
