//! The transport: work in, due answers out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use outflow_core::account::{AccountSpec, SessionKind};
use outflow_core::destination::Destination;
use outflow_core::engine::action::Delivery;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::handle::SessionRef;
use outflow_core::reply::{Enhanced, Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::parcel::ParcelRef;
use outflow_ports::transport::{Transport, TransportWork};

use crate::handle::SandboxHandle;
use crate::kept::Kept;

/// What the sandbox says when it takes a message.
const TAKEN: Reply = Reply::Said {
    stage: Stage::Data,
    code: 250,
    enhanced: Some(Enhanced(2, 0, 0)),
    text: Cow::Borrowed("sandbox accepted, nothing was sent"),
    retry_after: None,
    allows: None,
};

/// What a sandbox is told once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Decides all that is left to chance.
    pub seed: u64,
    /// How many messages are kept to be shown.
    pub kept_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            kept_max: 1_000,
        }
    }
}

/// A transport that takes messages and shows them.
#[derive(Debug)]
pub struct Sandbox {
    handle: SandboxHandle,
    entropy: Entropy,
    /// Connections that are open or opening, by the number of their answer: one
    /// that was closed before it was ready is not answered any more.
    open: BTreeMap<SessionRef, u64>,
    /// Answers that are due at once, in order.
    ready: Vec<Event>,
    /// Answers that are due later.
    later: BTreeMap<(Mono, u64), Event>,
    count: u64,
}

impl Sandbox {
    /// A sandbox in which every account takes everything at once.
    pub fn new(settings: Settings) -> Self {
        Self {
            handle: SandboxHandle::new(settings.kept_max),
            entropy: Entropy(settings.seed),
            open: BTreeMap::new(),
            ready: Vec::new(),
            later: BTreeMap::new(),
            count: 0,
        }
    }

    /// A way in for other threads.
    pub fn handle(&self) -> SandboxHandle {
        self.handle.clone()
    }

    fn say(&mut self, now: &Now, after: Nanos, event: Event) {
        if after == Nanos::ZERO {
            self.ready.push(event);
        } else {
            self.count += 1;
            self.later.insert((now.mono + after, self.count), event);
        }
    }

    fn open(&mut self, now: &Now, session: SessionRef, account: &AccountSpec) {
        let (after, fails) = {
            let mut shared = self.handle.lock();
            let account = shared.account(&account.id);
            let share = u64::from(account.behaviour.open_failures);
            let fails = share > 0 && self.entropy.between(0, 999) < share;
            account.counts.sessions += u64::from(!fails);
            (account.behaviour.open_time, fails)
        };
        self.count += 1;
        self.open.insert(session, self.count);
        let event = if fails {
            Event::SessionClosed { session }
        } else {
            Event::SessionReady { session }
        };
        self.later.insert((now.mono + after, self.count), event);
    }

    /// Whether what was due is still worth saying.
    fn is_wanted(&mut self, count: u64, event: &Event) -> bool {
        match event {
            Event::SessionReady { session } => self.open.get(session) == Some(&count),
            Event::SessionClosed { session } => {
                let wanted = self.open.get(session) == Some(&count);
                if wanted {
                    self.open.remove(session);
                }
                wanted
            }
            _ => true,
        }
    }

    fn deliver(
        &mut self,
        now: &Now,
        delivery: Delivery,
        parcel: Option<ParcelRef>,
        account: &AccountSpec,
        destination: &Destination,
    ) {
        let is_slot = account.sessions.kind == SessionKind::Slots;
        let permit = delivery.permit;
        if !is_slot && !self.open.contains_key(&delivery.session) {
            let text = Cow::Borrowed("sandbox: the session is closed");
            let stage = Stage::Connect;
            let event = Event::Replied {
                permit,
                reply: Reply::Network { stage, text },
                session_lives: false,
            };
            self.say(now, Nanos::ZERO, event);
            return;
        }
        let mut shared = self.handle.lock();
        let known = shared.account(&account.id);
        let mut after = known.behaviour.latency.draw(&mut self.entropy);
        let throttle = !known.admits(now.mono);
        let refusal = match &known.behaviour.hidden_rate {
            Some(hidden) if throttle => Some(&hidden.answer),
            _ => known.behaviour.failure(&mut self.entropy),
        };
        let (mut reply, ends) = match refusal {
            None => (TAKEN, false),
            Some(answer) => {
                after = after + answer.delay();
                (answer.reply(), answer.ends_connection())
            }
        };
        known.behaviour.tell(now.wall, &mut reply);
        match (refusal.is_some(), throttle) {
            (true, true) => known.counts.throttled += 1,
            (true, false) => known.counts.failed += 1,
            (false, _) => {
                known.counts.taken += 1;
                let kept = Kept {
                    seq: delivery.head.seq,
                    parcel,
                    account: account.id.clone(),
                    destination: destination.clone(),
                    accepted_at: delivery.head.accepted_at,
                    at: now.wall,
                    mono: now.mono,
                    attempts: delivery.head.attempts,
                };
                if let Some(watch) = &mut shared.watch {
                    watch(&kept);
                }
                shared.last.keep(kept);
            }
        }
        drop(shared);
        // A slot of an API is there again whatever became of the request.
        let session_lives = is_slot || !ends;
        if !session_lives {
            self.open.remove(&delivery.session);
        }
        let event = Event::Replied {
            permit,
            reply,
            session_lives,
        };
        self.say(now, after, event);
    }
}

impl Transport for Sandbox {
    fn submit(&mut self, now: &Now, work: TransportWork<'_>) {
        match work {
            TransportWork::Open {
                session, account, ..
            } => self.open(now, session, account),
            TransportWork::Close { session } => {
                self.open.remove(&session);
            }
            TransportWork::Deliver {
                delivery,
                parcel,
                account,
                destination,
            } => self.deliver(now, delivery, parcel, account, destination),
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        while let Some(first) = self.later.first_entry() {
            if first.key().0 > now.mono {
                break;
            }
            let ((_, count), event) = first.remove_entry();
            if self.is_wanted(count, &event) {
                done.push(event);
            }
        }
        done.append(&mut self.ready);
    }

    fn next_completion(&self) -> Mono {
        if !self.ready.is_empty() {
            return Mono(0);
        }
        let later = self.later.first_key_value();
        later.map_or(Mono::NEVER, |((at, _), _)| *at)
    }
}
