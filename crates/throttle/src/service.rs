//! The service: state behind a lock, and how a decision is made and told.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{io, thread};

use outflow_core::class::Class;
use outflow_core::engine::action::Action;
use outflow_core::engine::event::Event;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::set::Policies;
use outflow_core::throttle::request::{Outcome, Owner, Request};
use outflow_core::throttle::{Refusal, Throttle, Ticket, Verdict, Wanted};
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::ledger::{Ledger, LedgerWork};
use outflow_ports::lender::Lender;
use outflow_ports::throttle::{Acquired, Reply, ThenAcquired, ThrottleError};
use outflow_telemetry::Sink;

use crate::bell::Bell;
use crate::clock::{self, Clock};
use crate::counts::{Counters, Counts};
use crate::grants_log::GrantsLog;
use crate::lending::Lendings;
use crate::names::Names;
use crate::turns;

/// Called by a ledger that has something to tell, from any thread.
pub type Wake = Arc<dyn Fn() + Send + Sync>;
/// Makes the way to the ledger of a fleet.
pub type Link = Box<dyn FnOnce(Wake) -> Box<dyn Ledger + Send> + Send>;

/// How a service is set up.
#[derive(Default)]
pub struct Settings {
    /// How limits are kept. They are leased if there is a link.
    pub throttle: outflow_core::throttle::Settings,
    /// A number drawn by lot, so that nobody knows which keys meet in a table.
    pub seed: u64,
    /// Where grants are logged.
    pub grants_log: Option<GrantsLog>,
    /// The way to the ledger of a fleet.
    pub link: Option<Link>,
    /// Counts the limits of policies, and those that must outlive a restart.
    /// Without it, and without a ledger, everything is counted here and begins
    /// empty after a restart.
    pub lender: Option<Arc<dyn Lender>>,
    /// Hears what somebody should know.
    pub sink: Option<Arc<dyn Sink>>,
}

/// Somebody who waits.
struct Waiting {
    ticket: Ticket,
    then: ThenAcquired,
    /// Which of the limits asked for each limit of the request belongs to.
    asked: Vec<u8>,
    /// What to log when it is granted.
    logged: Vec<(String, u32)>,
    class: Class,
}

/// An answer on its way to whoever waited for it.
pub(crate) type Told = (ThenAcquired, Result<Acquired, ThrottleError>);

/// A request, but for its limits.
pub(crate) struct Ask<'a> {
    pub class: Class,
    pub owner: Owner,
    pub wait: Nanos,
    pub ttl: Nanos,
    /// What is logged when it is granted; only asked if something is.
    pub logged: &'a mut dyn FnMut() -> Vec<(String, u32)>,
}

/// All that changes, behind one lock.
pub(crate) struct State {
    pub clock: Clock,
    pub throttle: Throttle,
    pub names: Names,
    pub lendings: Lendings,
    ledger: Option<Box<dyn Ledger + Send>>,
    owners: BTreeMap<String, Owner>,
    waiting: Vec<Option<Waiting>>,
    pub outcomes: Vec<Outcome>,
    actions: Vec<Action>,
    events: Vec<Event>,
    /// When the thread wakes by itself.
    pub wakes_at: Mono,
    pub closed: bool,
}

/// The throttle.
pub struct Service {
    state: Mutex<State>,
    pub(crate) me: Weak<Self>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) lender: Option<Arc<dyn Lender>>,
    pub(crate) waiters_max: usize,
    counters: Counters,
    log: Option<GrantsLog>,
    sink: Option<Arc<dyn Sink>>,
}

impl Service {
    /// Starts it, with a thread of its own.
    pub fn start(settings: Settings) -> io::Result<Arc<Self>> {
        let bell = Arc::new(Bell::default());
        let rung = Arc::clone(&bell);
        let ledger = settings
            .link
            .map(|link| link(Arc::new(move || rung.ring())));
        let rules = outflow_core::throttle::Settings {
            leased: ledger.is_some(),
            ..settings.throttle
        };
        let state = State {
            clock: Clock::new(ledger.is_some()),
            throttle: Throttle::new(&clock::now(), rules, settings.seed),
            names: Names::new(rules.headroom),
            lendings: Lendings::of(rules.waiters_max),
            ledger,
            owners: BTreeMap::new(),
            waiting: Vec::new(),
            outcomes: Vec::new(),
            actions: Vec::new(),
            events: Vec::new(),
            wakes_at: Mono::NEVER,
            closed: false,
        };
        // A fleet shares what a node alone would count.
        let lender = settings.lender.filter(|_| !rules.leased);
        let service = Arc::new_cyclic(|me| Self {
            state: Mutex::new(state),
            me: Weak::clone(me),
            bell,
            lender,
            waiters_max: rules.waiters_max,
            counters: Counters::default(),
            log: settings.grants_log,
            sink: settings.sink,
        });
        let of_thread = Arc::clone(&service);
        thread::Builder::new()
            .name("throttle".to_owned())
            .spawn(move || turns::run(&of_thread))?;
        Ok(service)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other policies are in force.
    pub fn set_policies(&self, policies: Policies) {
        self.lock().names.set_policies(policies);
    }

    /// Ends it: whoever waits hears that the server shuts down.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        let lendings = state.lendings.drain();
        drop(state);
        self.bell.ring();
        let waiting = waiting.into_iter().flatten().map(|it| it.then);
        for then in waiting.chain(lendings.into_iter().map(|it| it.then)) {
            then(Err(ThrottleError::Closing));
        }
    }

    /// What was counted, and what is so now.
    pub fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            granted: self.counters.granted.load(Relaxed),
            refused: self.counters.refused.load(Relaxed),
            failed: self.counters.failed.load(Relaxed),
            waited: self.counters.waited.load(Relaxed),
            waiting: (state.throttle.waiters() + state.lendings.len()) as u64,
            keys: state.throttle.keys() as u64,
            permits: state.throttle.permits() as u64,
            waits: state.throttle.waits(),
        }
    }

    /// Lines of the log of grants that were dropped.
    pub fn log_dropped(&self) -> u64 {
        self.log.as_ref().map_or(0, GrantsLog::dropped)
    }

    /// Lets go of the lock, has the thread look at what is due, and tells those
    /// who waited.
    pub(crate) fn finish(&self, mut state: MutexGuard<'_, State>, now: &Now) {
        self.submit(&mut state, now);
        let next = state.next();
        let rings = next < state.wakes_at;
        if rings {
            state.wakes_at = next;
        }
        if state.outcomes.is_empty() {
            drop(state);
        } else {
            let told = self.told(&mut state, now);
            drop(state);
            for (then, answer) in told {
                then(answer);
            }
        }
        if rings {
            self.bell.ring();
        }
    }

    /// Hears the ledger, and wakes whoever's time has come.
    pub(crate) fn turn(&self, state: &mut State, now: &Now) -> Vec<Told> {
        let it = &mut *state;
        if let Some(ledger) = &mut it.ledger {
            ledger.complete(now, &mut it.events);
        }
        for event in it.events.drain(..) {
            match event {
                Event::Granted { limit, no, answer } => {
                    it.throttle
                        .granted(now, (limit, no), answer, &mut it.outcomes);
                }
                Event::Paused { key, lasts } => {
                    it.throttle.paused(now, &key, lasts, &mut it.outcomes);
                }
                _ => {}
            }
        }
        it.throttle.wake(now, &mut it.outcomes);
        self.submit(state, now);
        self.told(state, now)
    }

    /// Hands to the ledger what it is asked.
    fn submit(&self, state: &mut State, now: &Now) {
        if !state.throttle.has_actions() {
            return;
        }
        state.throttle.take_actions(&mut state.actions);
        for action in state.actions.drain(..) {
            let work = match action {
                Action::Lease(request) => LedgerWork::Lease(request),
                Action::GiveBack(given) => LedgerWork::GiveBack(given),
                Action::Alert { alert } => {
                    if let Some(sink) = &self.sink {
                        sink.emit(&outflow_telemetry::Event::Alert(&alert));
                    }
                    continue;
                }
                _ => continue,
            };
            if let Some(ledger) = &mut state.ledger {
                ledger.submit(now, work);
            }
        }
    }

    fn told(&self, state: &mut State, now: &Now) -> Vec<Told> {
        let mut told = Vec::with_capacity(state.outcomes.len());
        for outcome in state.outcomes.drain(..) {
            let Outcome { ticket, verdict } = outcome;
            let place = state.waiting.get_mut(ticket.index as usize);
            let Some(it) = place.and_then(|it| it.take_if(|it| it.ticket == ticket)) else {
                continue;
            };
            let answer = match verdict {
                Verdict::Granted(permit) => {
                    self.note(now, &it.logged, it.class);
                    Acquired::Granted(permit)
                }
                Verdict::Refused(refusal) => refused(&refusal, &it.asked),
                Verdict::Waiting(_) => continue,
            };
            self.count(&answer);
            told.push((it.then, Ok(answer)));
        }
        told
    }

    fn note(&self, now: &Now, logged: &[(String, u32)], class: Class) {
        for (key, cost) in logged {
            self.note_one(now, key, *cost, class);
        }
    }

    pub(crate) fn note_one(&self, now: &Now, key: &str, cost: u32, class: Class) {
        if let Some(log) = &self.log {
            log.granted(now, key, cost, class);
        }
    }

    pub(crate) fn count(&self, answer: &Acquired) {
        Counters::add(match answer {
            Acquired::Granted(_) => &self.counters.granted,
            Acquired::Refused { .. } => &self.counters.refused,
        });
    }

    pub(crate) fn count_waiting(&self) {
        Counters::add(&self.counters.waited);
    }

    /// Something was granted without asking for anything that is kept here.
    pub(crate) fn granted_now(&self, ask: Ask<'_>, answer: &Acquired) {
        self.count(answer);
        if self.log.is_some() {
            self.note(&clock::now(), &(ask.logged)(), ask.class);
        }
    }

    pub(crate) fn fail(&self, error: ThrottleError) -> ThrottleError {
        Counters::add(&self.counters.failed);
        error
    }

    /// Asks for limits that are kept here.
    pub(crate) fn decide(
        &self,
        mut state: MutexGuard<'_, State>,
        ask: Ask<'_>,
        wants: &[Wanted<'_>],
        asked: &[u8],
        later: &mut dyn FnMut() -> ThenAcquired,
    ) -> Reply {
        let it = &mut *state;
        let now = it.clock.now();
        let request = Request {
            wants,
            class: ask.class,
            wait: ask.wait,
            ttl: ask.ttl,
            owner: ask.owner,
        };
        let verdict = it.throttle.acquire(&now, &request, &mut it.outcomes);
        if let Verdict::Waiting(ticket) = verdict {
            self.count_waiting();
            let logged = match self.log {
                Some(_) => (ask.logged)(),
                None => Vec::new(),
            };
            it.wait(Waiting {
                ticket,
                then: later(),
                asked: asked.to_vec(),
                logged,
                class: ask.class,
            });
            self.finish(state, &now);
            return Reply::Later(ticket);
        }
        self.finish(state, &now);
        let answer = match verdict {
            Verdict::Granted(permit) => {
                if self.log.is_some() {
                    self.note(&now, &(ask.logged)(), ask.class);
                }
                Acquired::Granted(permit)
            }
            Verdict::Refused(refusal) => refused(&refusal, asked),
            Verdict::Waiting(ticket) => return Reply::Later(ticket),
        };
        self.count(&answer);
        Reply::Now(Ok(answer))
    }
}

impl State {
    /// When the thread has something to do.
    pub fn next(&self) -> Mono {
        let ledger = self.ledger.as_ref();
        let ledger = ledger.map_or(Mono::NEVER, |ledger| ledger.next_completion());
        let next = self.throttle.next_wake().min(self.lendings.next());
        next.min(ledger)
    }

    /// Tells all nodes of a fleet to grant nothing of a limit for so long.
    pub fn tell_pause(&mut self, now: &Now, work: LedgerWork) {
        if let Some(ledger) = &mut self.ledger {
            ledger.submit(now, work);
        }
    }

    /// The same for all limits that policies put on one thing.
    pub fn tell_pause_of_limits(&mut self, now: &Now, name: &LimitKey, lasts: Nanos) {
        if self.ledger.is_none() {
            return;
        }
        let yielded = self.names.yielded(None, &name.to_string());
        for applied in yielded.iter().flat_map(|(_, yielded)| yielded.iter()) {
            let key = Arc::new(applied.key.clone());
            self.tell_pause(now, LedgerWork::Pause { key, lasts });
        }
    }

    /// The number of a tenant.
    pub fn owner(&mut self, tenant: Option<&str>) -> Owner {
        let Some(tenant) = tenant else {
            return Owner::default();
        };
        if let Some(owner) = self.owners.get(tenant) {
            return *owner;
        }
        // Tokens that are bound to a tenant are made by people, so these are few.
        let owner = Owner(self.owners.len() as u64 + 1);
        self.owners.insert(tenant.to_owned(), owner);
        owner
    }

    fn wait(&mut self, it: Waiting) {
        let index = it.ticket.index as usize;
        if self.waiting.len() <= index {
            self.waiting.resize_with(index + 1, || None);
        }
        if let Some(place) = self.waiting.get_mut(index) {
            *place = Some(it);
        }
    }

    /// Forgets somebody who waited.
    pub fn forget(&mut self, ticket: Ticket) {
        if let Some(place) = self.waiting.get_mut(ticket.index as usize) {
            place.take_if(|it| it.ticket == ticket);
        }
    }
}

pub(crate) fn refused(refusal: &Refusal, asked: &[u8]) -> Acquired {
    Acquired::Refused {
        by: usize::from(asked.get(refusal.by).copied().unwrap_or(0)),
        why: refusal.why,
        retry_after: refusal.retry_after,
    }
}
