//! What holds a message at the gate of its lane: the accounts of its pool.

use std::sync::Arc;

use super::super::account_limits::Owner;
use super::{Case, Hold, Obstacle};
use crate::breaker::State;
use crate::engine::Engine;
use crate::engine::flows::Flow;
use crate::handle::{AccountId, LaneId};
use crate::time::{Mono, Now};

/// How an account stands to one message.
struct Standing {
    /// When it can take the message, as far as time alone decides; none if
    /// nobody knows.
    opens: Option<Mono>,
    obstacles: Vec<Obstacle>,
    /// Whether it lacks nothing but a session for the first message that waits.
    lacks_session: bool,
}

impl Standing {
    /// Accounts that open sooner come first, those of which nobody knows last.
    fn rank(&self) -> Mono {
        self.opens.unwrap_or(Mono::NEVER)
    }
}

impl Engine {
    /// Adds what the accounts of a lane's pool say to a case.
    pub(in crate::engine) fn explain_accounts(
        &self,
        now: &Now,
        case: &mut Case,
        flow: &Flow,
        lane: LaneId,
        accounts: &[AccountId],
        ahead_in_flow: u64,
    ) {
        let (desk, class) = (&self.counter.desk, flow.key.class);
        if accounts.is_empty() {
            case.wait(Obstacle::NoAccount, None);
            return;
        }
        let paused = |id: &&AccountId| desk.account(**id).is_none_or(|account| account.paused);
        let awake: Vec<AccountId> = accounts.iter().filter(|id| !paused(id)).copied().collect();
        // What several accounts send of those before it, nobody knows.
        let ahead = match awake.as_slice() {
            [_] => ahead_in_flow,
            _ => 0,
        };
        let can_send = desk.can_send(lane, class);
        if can_send && ahead == 0 {
            return;
        }
        let gate = desk.lane(lane).gate;
        let others = self.schedule.waiting_at(gate, class);
        case.flows_waiting = case.flows_waiting.max(others);
        let standings = awake
            .iter()
            .map(|&id| self.standing(now, id, lane, flow, ahead));
        match standings.min_by_key(Standing::rank) {
            None => case.wait(Obstacle::Paused, None),
            Some(first) => {
                if !first.obstacles.is_empty() {
                    case.waiting_on.extend(first.obstacles);
                    case.not_before(first.opens);
                }
                // A reply or a connection brings a session; nobody knows when.
                if first.lacks_session && !can_send {
                    case.wait(Obstacle::NoAccountReady, Some(now.mono));
                }
            }
        }
    }

    /// What keeps an account from sending to a lane, whatever its limits say,
    /// and until when, if that is known.
    fn standstill(
        &self,
        now: &Now,
        id: AccountId,
        lane: LaneId,
    ) -> Option<(Option<Mono>, Obstacle)> {
        let desk = &self.counter.desk;
        let account = desk.account(id)?;
        let name = account.spec.id.clone();
        let blocked = account.blocked_until.filter(|at| *at > now.mono);
        let (state, until) = desk.broken(id, lane);
        let is_probing = matches!(state, State::HalfOpen { probe: Some(_) });
        if is_probing || until.is_some_and(|at| at > now.mono) {
            let until = until.max(blocked);
            let obstacle = Obstacle::AccountBroken {
                account: name,
                until: until.map(|at| now.wall_at(at)),
            };
            return Some((until, obstacle));
        }
        if let Some(at) = blocked {
            let obstacle = Obstacle::AccountBlocked {
                account: name,
                until: now.wall_at(at),
            };
            return Some((Some(at), obstacle));
        }
        let at = desk.cap_opens_at(account.pool, id)?;
        let obstacle = Obstacle::UnderPressure {
            account: name,
            until: now.wall_at(at),
        };
        (at > now.mono).then_some((Some(at), obstacle))
    }

    fn standing(
        &self,
        now: &Now,
        id: AccountId,
        lane: LaneId,
        flow: &Flow,
        ahead: u64,
    ) -> Standing {
        let desk = &self.counter.desk;
        let class = flow.key.class;
        let cost = flow.heads.front().map_or(1, |head| head.cost);
        let mut opens = Some(now.mono);
        let mut obstacles = Vec::new();
        let standstill = self.standstill(now, id, lane);
        let mut lacks_session = standstill.is_none();
        if let Some((at, obstacle)) = standstill {
            opens = at;
            obstacles.push(obstacle);
        }
        let owners = [Owner::Account(id), Owner::Pair(id, lane)];
        let limits = owners.into_iter().flat_map(|owner| {
            let uses_tokens = desk.usable_from(owner) <= now.mono;
            desk.limits.of(owner).map(move |entry| (entry, uses_tokens))
        });
        for (entry, uses_tokens) in limits {
            let hold = Hold::of(&entry.limit, now, class, cost, ahead);
            // Where no session can use them no tokens are leased.
            if hold.is_open() || (entry.limit.is_leased() && !uses_tokens) {
                continue;
            }
            lacks_session &= hold.fits;
            opens = opens.zip(hold.at).map(|(a, b)| a.max(b));
            obstacles.push(Obstacle::Limit {
                key: Arc::clone(&entry.key),
                until: hold.at.map(|at| now.wall_at(at)),
            });
        }
        Standing {
            opens,
            obstacles,
            lacks_session,
        }
    }
}
