//! The port: what callers reach.

use std::sync::{Arc, MutexGuard};

use outflow_core::class::Class;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::policy::facet::Facet;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::policy::WhenAway;
use outflow_core::throttle::cell::{Answer, Cell, Told};
use outflow_core::throttle::look::Look;
use outflow_core::throttle::request::{Key, LIMITS_MAX, POLICY_SPACE, Request, TTL_DEFAULT};
use outflow_core::throttle::{Permit, Ticket, Wanted, Why};
use outflow_core::time::Nanos;
use outflow_ports::ledger::LedgerWork;
use outflow_ports::throttle::{
    Acquire, Acquired, CellReply, ReleasedBy, Reply, ThenAcquired, ThrottleError, ThrottleUsage,
    Throttling,
};

use crate::lending::{self, Lending};
use crate::names::{self, Named};
use crate::service::{Ask, Service, State, refused};

fn logged(acquire: &Acquire<'_>) -> Vec<(String, u32)> {
    let limits = acquire.limits.iter();
    limits.map(|it| (it.key.to_owned(), it.cost)).collect()
}

impl Service {
    fn acquire_named(
        &self,
        mut state: MutexGuard<'_, State>,
        acquire: &Acquire<'_>,
        later: &mut dyn FnMut() -> ThenAcquired,
    ) -> Reply {
        let named = match state.names.named(acquire) {
            Ok(named) => named,
            Err(error) => {
                drop(state);
                return Reply::Now(Err(self.fail(error)));
            }
        };
        if self.lender.is_some() && named.iter().any(lending::is_lent) {
            return self.borrow(state, acquire, named, later);
        }
        let ask = Ask {
            class: acquire.class,
            owner: state.owner(acquire.tenant),
            wait: acquire.wait,
            ttl: acquire.ttl,
            logged: &mut || logged(acquire),
        };
        let wants: Vec<_> = named.iter().map(Named::wanted).collect();
        let asked: Vec<u8> = named.iter().map(|named| named.asked).collect();
        self.decide(state, ask, &wants, &asked, later)
    }

    /// Asks the node for what it counts, if what is counted here is there.
    fn borrow(
        &self,
        mut state: MutexGuard<'_, State>,
        acquire: &Acquire<'_>,
        named: Vec<Named>,
        later: &mut dyn FnMut() -> ThenAcquired,
    ) -> Reply {
        let (lent, own): (Vec<_>, Vec<_>) = named.into_iter().partition(lending::is_lent);
        let it = &mut *state;
        let now = it.clock.now();
        let owner = it.owner(acquire.tenant);
        let wants: Vec<_> = own.iter().map(Named::wanted).collect();
        let request = Request {
            wants: &wants,
            class: acquire.class,
            wait: Nanos::ZERO,
            ttl: acquire.ttl,
            owner,
        };
        let checked = it.throttle.check(&now, &request, &mut it.outcomes);
        let is_full = it.lendings.of_owner(owner).1 == 0;
        let full = match it.lendings.len() < self.waiters_max {
            true => Why::TooManyOwnWaiters,
            false => Why::TooManyWaiters,
        };
        // A pause of one of the node's limits that somebody told us of.
        let paused = lent.iter().find_map(|named| {
            let key = named.wanted().key;
            let lasts = it.throttle.paused_for(&now, key.space, key.name)?;
            Some((usize::from(named.asked), lasts))
        });
        let answer = match (checked, paused) {
            (Err(refusal), _) if acquire.wait == Nanos::ZERO || refusal.retry_after.is_none() => {
                let asked: Vec<u8> = own.iter().map(|named| named.asked).collect();
                Some(refused(&refusal, &asked))
            }
            (_, Some((by, lasts))) => Some(Acquired::Refused {
                by,
                why: Why::Limited,
                retry_after: Some(lasts),
            }),
            _ if is_full => Some(Acquired::Refused {
                by: 0,
                why: full,
                retry_after: Some(Nanos::from_secs(1)),
            }),
            _ => None,
        };
        if let Some(answer) = answer {
            self.finish(state, &now);
            self.count(&answer);
            return Reply::Now(Ok(answer));
        }
        if acquire.wait > Nanos::ZERO {
            self.count_waiting();
        }
        let id = it.lendings.add(Lending {
            own,
            lent,
            logged: logged(acquire),
            class: acquire.class,
            owner,
            deadline: now.mono + acquire.wait,
            ttl: acquire.ttl,
            then: later(),
        });
        self.finish(state, &now);
        self.lend(id);
        Reply::Later(lending::ticket(id))
    }
}

impl Throttling for Service {
    fn cell(&self, cell: &Cell<'_>, later: &mut dyn FnMut() -> ThenAcquired) -> CellReply {
        let mut state = self.lock();
        let it = &mut *state;
        let now = it.clock.now();
        match it.throttle.cell(&now, cell, &mut it.outcomes) {
            Ok(Told::Answer(answer)) => {
                self.finish(state, &now);
                self.count_cell(answer.limited);
                if !answer.limited && cell.quantity > 0 {
                    self.note_one(&now, cell.name, cell.quantity, Class::Critical);
                }
                CellReply::Now(Ok(answer))
            }
            Ok(Told::NotYet) => {
                let spec = LimitSpec::TokenBucket {
                    rate: cell.rate,
                    burst: cell.burst,
                };
                let wanted = Wanted {
                    key: Key {
                        space: cell.space,
                        name: cell.name,
                        facet: &Facet::Rate,
                    },
                    spec: &spec,
                    cost: cell.quantity,
                    when_away: WhenAway::Closed,
                    version: 0,
                };
                let ask = Ask {
                    class: Class::Critical,
                    owner: outflow_core::throttle::Owner::default(),
                    wait: Nanos::ZERO,
                    ttl: TTL_DEFAULT,
                    logged: &mut || vec![(cell.name.to_owned(), cell.quantity)],
                };
                match self.decide(state, ask, &[wanted], &[0], later) {
                    Reply::Later(ticket) => CellReply::Later(ticket),
                    Reply::Now(Err(error)) => CellReply::Now(Err(error)),
                    Reply::Now(Ok(acquired)) => CellReply::Now(self.looked(cell, &acquired)),
                }
            }
            Err(_) => {
                self.finish(state, &now);
                self.count_cell(true);
                CellReply::Now(Err(ThrottleError::Crowded))
            }
        }
    }

    fn acquire(&self, acquire: &Acquire<'_>, later: &mut dyn FnMut() -> ThenAcquired) -> Reply {
        if acquire.limits.is_empty() || acquire.limits.len() > LIMITS_MAX {
            return Reply::Now(Err(self.fail(ThrottleError::Count)));
        }
        if let Some(error) = acquire.limits.iter().find_map(|it| names::check(it).err()) {
            return Reply::Now(Err(self.fail(error)));
        }
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return Reply::Now(Err(self.fail(ThrottleError::Closing)));
        }
        let one = match acquire.limits {
            [asked] => match asked.limits {
                [spec] if self.lender.is_none() || !lending::is_long(spec) => Some((asked, spec)),
                _ => None,
            },
            _ => None,
        };
        let Some((asked, spec)) = one else {
            return self.acquire_named(state, acquire, later);
        };
        let wanted = Wanted {
            key: Key {
                space: acquire.tenant.unwrap_or(""),
                name: asked.key,
                facet: &Facet::of(spec),
            },
            spec,
            cost: asked.cost,
            when_away: asked.when_away,
            version: 0,
        };
        let ask = Ask {
            class: acquire.class,
            owner: state.owner(acquire.tenant),
            wait: acquire.wait,
            ttl: acquire.ttl,
            logged: &mut || logged(acquire),
        };
        self.decide(state, ask, &[wanted], &[0], later)
    }

    fn cancel(&self, ticket: Ticket) {
        if self.cancel_lending(ticket) {
            return;
        }
        let mut state = self.lock();
        let now = state.clock.now();
        if state.throttle.cancel(&now, ticket) {
            state.forget(ticket);
        }
        self.finish(state, &now);
    }

    fn release(&self, by: ReleasedBy<'_>, permit: Permit) -> bool {
        let mut state = self.lock();
        let by = match by {
            ReleasedBy::Holder(tenant) => Some(state.owner(tenant)),
            ReleasedBy::Operator => None,
        };
        let it = &mut *state;
        let now = it.clock.now();
        let released = it.throttle.release(&now, permit, by, &mut it.outcomes);
        self.finish(state, &now);
        released
    }

    fn pause(&self, tenant: Option<&str>, key: &str, lasts: Nanos) -> Result<(), ThrottleError> {
        names::check_key(key)?;
        let mut state = self.lock();
        let it = &mut *state;
        if it.names.yielded(tenant, key).is_ok() {
            let key = key.to_owned();
            return Err(ThrottleError::OfPolicies { key });
        }
        let now = it.clock.now();
        let own = (tenant.unwrap_or(""), key);
        let fits = it.throttle.pause(&now, own, lasts, &mut it.outcomes);
        let limit = of_fleet(own);
        if let Some(lender) = &self.lender {
            lender.pause(limit.clone(), lasts);
        }
        let key = Arc::new(limit);
        it.tell_pause(&now, LedgerWork::Pause { key, lasts });
        self.finish(state, &now);
        match fits {
            true => Ok(()),
            false => Err(ThrottleError::Crowded),
        }
    }

    fn of_policies(&self, tenant: Option<&str>, key: &str) -> Option<LimitKey> {
        let (name, _) = self.lock().names.yielded(tenant, key).ok()?;
        name.parse().ok()
    }

    fn pause_limit(&self, name: &LimitKey, lasts: Nanos) -> Result<(), ThrottleError> {
        let mut state = self.lock();
        let it = &mut *state;
        let now = it.clock.now();
        let text = name.to_string();
        let of_policies = (POLICY_SPACE, text.as_str());
        let fits = it
            .throttle
            .pause(&now, of_policies, lasts, &mut it.outcomes);
        it.tell_pause_of_limits(&now, name, lasts);
        self.finish(state, &now);
        match fits {
            true => Ok(()),
            false => Err(ThrottleError::Crowded),
        }
    }

    fn resume_limit(&self, name: &LimitKey) {
        let mut state = self.lock();
        let it = &mut *state;
        let now = it.clock.now();
        let text = name.to_string();
        let of_policies = (POLICY_SPACE, text.as_str());
        it.throttle.resume(&now, of_policies, &mut it.outcomes);
        it.tell_pause_of_limits(&now, name, Nanos::ZERO);
        self.finish(state, &now);
    }

    fn usage_of(&self, tenant: &str) -> ThrottleUsage {
        let mut state = self.lock();
        let owner = state.owner(Some(tenant));
        let throttle = &state.throttle;
        let (waiting, room) = throttle.waiters_of(owner);
        // Those who wait for what the node counts stand elsewhere.
        let (lent, room_there) = state.lendings.of_owner(owner);
        ThrottleUsage {
            keys: (throttle.keys_of(tenant), throttle.room_for(tenant)),
            permits: throttle.permits_of(owner),
            waiters: (waiting + lent, room.min(room_there)),
        }
    }

    fn look(&self, acquire: &Acquire<'_>) -> Vec<(usize, Look)> {
        let mut state = self.lock();
        let now = state.clock.now();
        let Ok(named) = state.names.named(acquire) else {
            return Vec::new();
        };
        let looks = named.iter().filter_map(|named| {
            let look = state.throttle.look(&now, &named.wanted().key)?;
            Some((usize::from(named.asked), look))
        });
        looks.collect()
    }
}

fn of_fleet((space, name): (&str, &str)) -> LimitKey {
    let facet = &Facet::Rate;
    Key { space, name, facet }.of_fleet()
}

impl Service {
    fn count_cell(&self, limited: bool) {
        self.count(&match limited {
            true => Acquired::Refused {
                by: 0,
                why: Why::Limited,
                retry_after: None,
            },
            false => Acquired::Granted(None),
        });
    }

    /// The answer to a call that was decided as a request.
    fn looked(&self, cell: &Cell<'_>, acquired: &Acquired) -> Result<Answer, ThrottleError> {
        let look = Cell {
            quantity: 0,
            ..*cell
        };
        let CellReply::Now(looked) = self.cell(&look, &mut || Box::new(|_| ())) else {
            return Err(ThrottleError::Crowded);
        };
        Ok(acquired.as_cell(looked?))
    }
}
