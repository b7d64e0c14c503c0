//! The port: what callers reach.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use outflow_core::class::Class;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::set::Policies;
use outflow_core::throttle::cell::{Answer, Cell};
use outflow_core::throttle::look::Look;
use outflow_core::throttle::request::{Key, LIMITS_MAX, Outcome, Owner, Request};
use outflow_core::throttle::{Permit, Refusal, Throttle, Ticket, Verdict, Wanted};
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::throttle::{
    Acquire, Acquired, Asked, Reply, ThenAcquired, ThrottleError, Throttling,
};

use crate::clock::{self, Clock};
use crate::counts::{Counters, Counts};
use crate::grants_log::GrantsLog;
use crate::names::{self, Names, POLICY_SPACE, Yielded};
use crate::turns;

/// How a service is set up.
#[derive(Debug)]
pub struct Settings {
    /// How limits are kept.
    pub throttle: outflow_core::throttle::Settings,
    /// A number drawn by lot, so that nobody knows which keys meet in a table.
    pub seed: u64,
    /// Where grants are logged.
    pub grants_log: Option<GrantsLog>,
}

/// Somebody who waits.
pub(crate) struct Waiting {
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

/// All that changes, behind one lock.
pub(crate) struct State {
    pub clock: Clock,
    pub throttle: Throttle,
    names: Names,
    owners: BTreeMap<String, Owner>,
    waiting: Vec<Option<Waiting>>,
    outcomes: Vec<Outcome>,
    /// When the thread wakes by itself.
    pub wakes_at: Mono,
    pub closed: bool,
}

/// The throttle.
pub struct Service {
    state: Mutex<State>,
    pub(crate) bell: Condvar,
    counters: Counters,
    log: Option<GrantsLog>,
}

impl Service {
    /// Starts it, with a thread of its own.
    pub fn start(settings: Settings) -> io::Result<Arc<Self>> {
        let throttle = Throttle::new(&clock::now(), settings.throttle, settings.seed);
        let service = Arc::new(Self {
            state: Mutex::new(State {
                clock: Clock::default(),
                throttle,
                names: Names::default(),
                owners: BTreeMap::new(),
                waiting: Vec::new(),
                outcomes: Vec::new(),
                wakes_at: Mono::NEVER,
                closed: false,
            }),
            bell: Condvar::new(),
            counters: Counters::default(),
            log: settings.grants_log,
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
        drop(state);
        self.bell.notify_all();
        for it in waiting.into_iter().flatten() {
            (it.then)(Err(ThrottleError::Closing));
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
            waiting: state.throttle.waiters() as u64,
            keys: state.throttle.keys() as u64,
            permits: state.throttle.permits() as u64,
        }
    }

    /// Lines of the log of grants that were dropped.
    pub fn log_dropped(&self) -> u64 {
        self.log.as_ref().map_or(0, GrantsLog::dropped)
    }

    /// Lets go of the lock, has the thread look at what is due, and tells those
    /// who waited.
    pub(crate) fn finish(&self, mut state: MutexGuard<'_, State>, now: &Now) {
        let next = state.throttle.next_wake();
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
            self.bell.notify_one();
        }
    }

    /// Wakes whoever's time has come.
    pub(crate) fn turn(&self, state: &mut State, now: &Now) -> Vec<Told> {
        let mut outcomes = std::mem::take(&mut state.outcomes);
        state.throttle.wake(now, &mut outcomes);
        state.outcomes = outcomes;
        self.told(state, now)
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
                    Counters::add(&self.counters.granted);
                    for (key, cost) in &it.logged {
                        self.note(now, key, *cost, it.class);
                    }
                    Acquired::Granted(permit)
                }
                Verdict::Refused(refusal) => {
                    Counters::add(&self.counters.refused);
                    refused(&refusal, &it.asked)
                }
                Verdict::Waiting(_) => continue,
            };
            told.push((it.then, Ok(answer)));
        }
        told
    }

    fn note(&self, now: &Now, key: &str, cost: u32, class: Class) {
        if let Some(log) = &self.log {
            log.granted(now, key, cost, class);
        }
    }

    fn decide(
        &self,
        mut state: MutexGuard<'_, State>,
        acquire: &Acquire<'_>,
        wants: &[Wanted<'_>],
        asked: &[u8],
        later: &mut dyn FnMut() -> ThenAcquired,
    ) -> Reply {
        let it = &mut *state;
        let now = it.clock.now();
        let request = Request {
            wants,
            class: acquire.class,
            wait: acquire.wait,
            ttl: acquire.ttl,
            owner: owner(&mut it.owners, acquire.tenant),
        };
        let verdict = it.throttle.acquire(&now, &request, &mut it.outcomes);
        if let Verdict::Waiting(ticket) = verdict {
            Counters::add(&self.counters.waited);
            let logged = match self.log {
                Some(_) => acquire.limits.iter().map(logged).collect(),
                None => Vec::new(),
            };
            it.wait(Waiting {
                ticket,
                then: later(),
                asked: asked.to_vec(),
                logged,
                class: acquire.class,
            });
            self.finish(state, &now);
            return Reply::Later(ticket);
        }
        self.finish(state, &now);
        match verdict {
            Verdict::Granted(permit) => {
                Counters::add(&self.counters.granted);
                for it in acquire.limits {
                    self.note(&now, it.key, it.cost, acquire.class);
                }
                Reply::Now(Ok(Acquired::Granted(permit)))
            }
            Verdict::Refused(refusal) => {
                Counters::add(&self.counters.refused);
                Reply::Now(Ok(refused(&refusal, asked)))
            }
            Verdict::Waiting(ticket) => Reply::Later(ticket),
        }
    }

    fn fail(&self, error: ThrottleError) -> Reply {
        Counters::add(&self.counters.failed);
        Reply::Now(Err(error))
    }
}

impl State {
    fn wait(&mut self, it: Waiting) {
        let index = it.ticket.index as usize;
        if self.waiting.len() <= index {
            self.waiting.resize_with(index + 1, || None);
        }
        if let Some(place) = self.waiting.get_mut(index) {
            *place = Some(it);
        }
    }
}

fn logged(asked: &Asked<'_>) -> (String, u32) {
    (asked.key.to_owned(), asked.cost)
}

fn owner(owners: &mut BTreeMap<String, Owner>, tenant: Option<&str>) -> Owner {
    let Some(tenant) = tenant else {
        return Owner::default();
    };
    if let Some(owner) = owners.get(tenant) {
        return *owner;
    }
    // Tokens that are bound to a tenant are made by people, so these are few.
    let owner = Owner(owners.len() as u64 + 1);
    owners.insert(tenant.to_owned(), owner);
    owner
}

fn refused(refusal: &Refusal, asked: &[u8]) -> Acquired {
    Acquired::Refused {
        by: usize::from(asked.get(refusal.by).copied().unwrap_or(0)),
        why: refusal.why,
        retry_after: refusal.retry_after,
    }
}

/// The limits of a request, gathered before they are borrowed.
struct Gathered {
    asked: u8,
    name: Option<Arc<str>>,
    yielded: Option<Yielded>,
    facets: Vec<Facet>,
}

fn gather(names: &mut Names, acquire: &Acquire<'_>) -> Result<Vec<Gathered>, ThrottleError> {
    let mut gathered = Vec::with_capacity(acquire.limits.len());
    let mut count = 0;
    for (asked, it) in (0..).zip(acquire.limits) {
        let found = match it.limits {
            [] => {
                let (name, yielded) = names.yielded(acquire.tenant, it.key)?;
                let facets = yielded.iter().map(|it| it.key.facet().clone()).collect();
                Gathered {
                    asked,
                    name: Some(name),
                    yielded: Some(yielded),
                    facets,
                }
            }
            specs => {
                let mut rates = 0;
                let facets = specs.iter().map(|spec| match Facet::of(spec) {
                    Facet::Rate => {
                        rates += 1;
                        if rates == 1 {
                            Facet::Rate
                        } else {
                            Facet::FurtherRate(rates)
                        }
                    }
                    facet => facet,
                });
                Gathered {
                    asked,
                    name: None,
                    yielded: None,
                    facets: facets.collect(),
                }
            }
        };
        count += found.facets.len();
        gathered.push(found);
    }
    match count {
        1..=LIMITS_MAX => Ok(gathered),
        _ => Err(ThrottleError::Count),
    }
}

fn wants<'a>(acquire: &Acquire<'a>, gathered: &'a [Gathered]) -> (Vec<Wanted<'a>>, Vec<u8>) {
    let (mut wants, mut asked) = (Vec::new(), Vec::new());
    for (it, found) in acquire.limits.iter().zip(gathered) {
        let mut add = |space, name, spec, facet, when_away| {
            wants.push(Wanted {
                key: Key { space, name, facet },
                spec,
                cost: it.cost,
                when_away,
            });
            asked.push(found.asked);
        };
        match (&found.name, &found.yielded) {
            (Some(name), Some(yielded)) => {
                for (applied, facet) in yielded.iter().zip(&found.facets) {
                    add(POLICY_SPACE, name, &applied.spec, facet, applied.when_away);
                }
            }
            _ => {
                let space = acquire.tenant.unwrap_or("");
                for (spec, facet) in it.limits.iter().zip(&found.facets) {
                    add(space, it.key, spec, facet, it.when_away);
                }
            }
        }
    }
    (wants, asked)
}

impl Throttling for Service {
    fn cell(&self, cell: &Cell<'_>) -> Result<Answer, ThrottleError> {
        let mut state = self.lock();
        let it = &mut *state;
        let now = it.clock.now();
        let answer = it.throttle.cell(&now, cell, &mut it.outcomes);
        self.finish(state, &now);
        let Ok(answer) = answer else {
            Counters::add(&self.counters.refused);
            return Err(ThrottleError::Crowded);
        };
        if answer.limited {
            Counters::add(&self.counters.refused);
        } else {
            Counters::add(&self.counters.granted);
            if cell.quantity > 0 {
                self.note(&now, cell.name, cell.quantity, Class::Critical);
            }
        }
        Ok(answer)
    }

    fn acquire(&self, acquire: &Acquire<'_>, later: &mut dyn FnMut() -> ThenAcquired) -> Reply {
        if acquire.limits.is_empty() || acquire.limits.len() > LIMITS_MAX {
            return self.fail(ThrottleError::Count);
        }
        if let Some(error) = acquire.limits.iter().find_map(|it| names::check(it).err()) {
            return self.fail(error);
        }
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return self.fail(ThrottleError::Closing);
        }
        if let [asked] = acquire.limits
            && let [spec] = asked.limits
        {
            let wanted = Wanted {
                key: Key {
                    space: acquire.tenant.unwrap_or(""),
                    name: asked.key,
                    facet: &Facet::of(spec),
                },
                spec,
                cost: asked.cost,
                when_away: asked.when_away,
            };
            return self.decide(state, acquire, &[wanted], &[0], later);
        }
        let gathered = match gather(&mut state.names, acquire) {
            Ok(gathered) => gathered,
            Err(error) => {
                drop(state);
                return self.fail(error);
            }
        };
        let (wants, asked) = wants(acquire, &gathered);
        self.decide(state, acquire, &wants, &asked, later)
    }

    fn cancel(&self, ticket: Ticket) {
        let mut state = self.lock();
        let it = &mut *state;
        let now = it.clock.now();
        if it.throttle.cancel(&now, ticket)
            && let Some(place) = it.waiting.get_mut(ticket.index as usize)
        {
            place.take_if(|it| it.ticket == ticket);
        }
        self.finish(state, &now);
    }

    fn release(&self, tenant: Option<&str>, permit: Permit) -> bool {
        let mut state = self.lock();
        let it = &mut *state;
        let now = it.clock.now();
        let by = owner(&mut it.owners, tenant);
        let released = it.throttle.release(&now, permit, by, &mut it.outcomes);
        self.finish(state, &now);
        released
    }

    fn pause(&self, tenant: Option<&str>, key: &str, lasts: Nanos) -> Result<(), ThrottleError> {
        names::check_key(key)?;
        let mut state = self.lock();
        let it = &mut *state;
        let now = it.clock.now();
        // A tenant pauses its own keys, and its own limits among the policies'.
        let of_policies = it.names.yielded(tenant, key).ok();
        let own = tenant.unwrap_or("");
        let mut fits = it.throttle.pause(&now, (own, key), lasts, &mut it.outcomes);
        if let Some((name, _)) = of_policies {
            let key = (POLICY_SPACE, &*name);
            fits &= it.throttle.pause(&now, key, lasts, &mut it.outcomes);
        }
        self.finish(state, &now);
        match fits {
            true => Ok(()),
            false => Err(ThrottleError::Crowded),
        }
    }

    fn look(&self, acquire: &Acquire<'_>) -> Vec<(usize, Look)> {
        let mut state = self.lock();
        let now = state.clock.now();
        let Ok(gathered) = gather(&mut state.names, acquire) else {
            return Vec::new();
        };
        let (wants, asked) = wants(acquire, &gathered);
        let looks = wants.iter().zip(asked).filter_map(|(wanted, asked)| {
            let look = state.throttle.look(&now, &wanted.key)?;
            Some((usize::from(asked), look))
        });
        looks.collect()
    }
}
