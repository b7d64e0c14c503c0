//! Nothing waits for nothing.
//!
//! Once all faults have healed, nodes are asked again and again why some messages
//! wait. Whatever they name must be true, and must be over within a stated time:
//! a limit that nobody uses fills up, a session is opened or its failure is seen,
//! a domain is resolved, a retry becomes due, a pause ends. A message that
//! nothing holds is sent. Else a wake was lost, whatever kind of thing it was
//! that the message waited for.

use std::collections::BTreeMap;

use outflow_core::limit::spec::{LimitSpec, Period};
use outflow_core::time::Nanos;

use super::Findings;
use crate::in_flight::InFlight;
use crate::trace::{Checker, Held, HeldBy, LimitNo, MessageNo, NodeNo, Observer, Trace, Violation};

/// How long a message may wait for what is there.
const BOUND: Nanos = Nanos::from_secs(60);
/// The same for a session: a connect may be answered by nobody for a minute, and
/// is tried again after another one.
const SESSION_BOUND: Nanos = Nanos::from_secs(240);
/// By how much the end that a node tells may have passed.
const LATE: Nanos = Nanos::from_secs(30);

struct Limit {
    spec: LimitSpec,
    granted_at: Nanos,
    /// Slots in use.
    in_use: u64,
}

/// Since when a message waits for the same things.
struct Wait {
    for_what: Vec<HeldBy>,
    since: Nanos,
}

/// See the module.
pub struct Waits {
    healed_at: Option<Nanos>,
    limits: Vec<Option<Limit>>,
    in_flight: InFlight,
    /// The account of each attempt in flight.
    attempts: BTreeMap<(NodeNo, MessageNo), u32>,
    /// When each account last sent, was answered, or failed to connect.
    active_at: BTreeMap<u32, Nanos>,
    /// When anything last changed that could hold messages.
    changed_at: Nanos,
    /// Until when the far end asked anybody to wait.
    asked_until: Nanos,
    /// Pauses in force and accounts taken out.
    operator_holds: u32,
    waits: BTreeMap<MessageNo, Wait>,
    findings: Findings,
}

impl Waits {
    /// Faults end at a time, or never.
    pub fn new(healed_at: Option<Nanos>) -> Self {
        Self {
            healed_at,
            limits: Vec::new(),
            in_flight: InFlight::default(),
            attempts: BTreeMap::new(),
            active_at: BTreeMap::new(),
            changed_at: Nanos::ZERO,
            asked_until: Nanos::ZERO,
            operator_holds: 0,
            waits: BTreeMap::new(),
            findings: Findings::of("waits"),
        }
    }

    fn limit(&mut self, limit: LimitNo) -> Option<&mut Limit> {
        self.limits.get_mut(limit as usize)?.as_mut()
    }

    fn declare(&mut self, at: Nanos, limit: LimitNo, spec: &LimitSpec) {
        let index = limit as usize;
        if self.limits.len() <= index {
            self.limits.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.limits.get_mut(index) {
            *slot = Some(Limit {
                spec: spec.clone(),
                granted_at: at,
                in_use: 0,
            });
        }
    }

    fn sent(&mut self, at: Nanos, node: NodeNo, message: MessageNo, account: u32) {
        self.waits.remove(&message);
        self.attempts.insert((node, message), account);
        self.active_at.insert(account, at);
    }

    fn release(&mut self, at: Nanos, held: Vec<(LimitNo, u32)>) {
        for (limit, cost) in held {
            if let Some(limit) = self.limit(limit) {
                limit.in_use = limit.in_use.saturating_sub(u64::from(cost));
                limit.granted_at = limit.granted_at.max(at);
            }
        }
    }

    /// From when on nothing justifies that this holds a message.
    fn justified_until(&self, at: Nanos, held: &Held, accounts: &[u32]) -> Nanos {
        let active = accounts.iter().filter_map(|it| self.active_at.get(it));
        let active = active.max().copied().unwrap_or(Nanos::ZERO);
        match held.by {
            HeldBy::Limit(limit) => {
                let limit = limit.and_then(|it| self.limits.get(it as usize)?.as_ref());
                let Some(limit) = limit else {
                    return self.asked_until + BOUND;
                };
                if limit.in_use > 0 {
                    return at;
                }
                let used = limit.granted_at.max(self.changed_at);
                (used + refill(&limit.spec)).max(self.asked_until) + BOUND
            }
            HeldBy::Account => held.until.unwrap_or(active + SESSION_BOUND),
            HeldBy::Session => active.max(self.asked_until) + SESSION_BOUND,
            HeldBy::NoAccount if accounts.is_empty() => at,
            HeldBy::Paused if self.operator_holds > 0 => at,
            HeldBy::Deferred => held.until.unwrap_or(Nanos::ZERO) + LATE,
            HeldBy::NoAccount
            | HeldBy::Paused
            | HeldBy::Unresolved
            | HeldBy::Store
            | HeldBy::Shutdown => BOUND,
        }
    }

    fn explained(&mut self, at: Nanos, message: MessageNo, holds: &[Held], accounts: &[u32]) {
        let Some(healed_at) = self.healed_at.filter(|healed_at| *healed_at < at) else {
            return;
        };
        let late = |held: &&Held| held.until.is_some_and(|until| until + LATE < at);
        if let Some(held) = holds.iter().find(late) {
            let over = at.minus(held.until.unwrap_or_default());
            let by = held.by;
            self.findings.add(at, || {
                format!("message {message} waits for {by}, which was over {over} ago")
            });
        }
        let for_what: Vec<HeldBy> = holds.iter().map(|held| held.by).collect();
        let wait = self.waits.entry(message).or_insert_with(|| Wait {
            for_what: for_what.clone(),
            since: at,
        });
        if wait.for_what != for_what {
            *wait = Wait {
                for_what,
                since: at,
            };
        }
        let begun = wait.since.max(healed_at).max(self.changed_at);
        let justified = holds
            .iter()
            .map(|held| self.justified_until(at, held, accounts));
        // What nothing holds waits for those before it, while any of them move.
        let active = accounts.iter().filter_map(|it| self.active_at.get(it));
        let moving = active.max().copied().unwrap_or(Nanos::ZERO) + BOUND;
        let justified = justified.max().unwrap_or(moving).max(begun + BOUND);
        if at <= justified {
            return;
        }
        self.waits.remove(&message);
        let waited = at.minus(begun);
        let what: Vec<String> = holds.iter().map(|held| held.by.to_string()).collect();
        let what = match what.is_empty() {
            true => "nothing".to_owned(),
            false => what.join(", "),
        };
        self.findings.add(at, || {
            format!("message {message} has waited for {what} for {waited}, and nothing moves")
        });
    }
}

/// How long a limit that nobody uses takes to let everything pass.
fn refill(spec: &LimitSpec) -> Nanos {
    match spec {
        LimitSpec::TokenBucket { rate, burst } => rate.time_for(u64::from(*burst)),
        LimitSpec::LeakyBucket { rate } => rate.time_for(1),
        LimitSpec::SlidingWindow { window, .. } => *window,
        LimitSpec::CalendarWindow { period, .. } => match period {
            Period::Minute => Nanos::from_secs(60),
            Period::Hour => Nanos::from_secs(3_600),
            // A day may gain an hour.
            Period::Day => Nanos::from_secs(25 * 3_600),
        },
        LimitSpec::Concurrency { .. } => Nanos::ZERO,
    }
}

impl Observer for Waits {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Limit { limit, spec, .. } => self.declare(at, limit, spec),
            Trace::LimitChanged { limit, spec, .. } => {
                self.changed_at = at;
                if let Some(limit) = self.limit(limit) {
                    limit.spec = spec.clone();
                }
            }
            Trace::Dispatched {
                node,
                message,
                attempt,
                account,
                cost,
                limits,
            } => {
                self.sent(at, node, message, account);
                for limit in limits {
                    if let Some(limit) = self.limit(*limit) {
                        limit.granted_at = at;
                        limit.in_use += u64::from(cost);
                    }
                }
                let held = limits.iter().copied();
                self.in_flight.sent(node, message, attempt, cost, held);
            }
            Trace::Replied {
                node,
                message,
                attempt,
                ..
            } => {
                if let Some(account) = self.attempts.remove(&(node, message)) {
                    self.active_at.insert(account, at);
                }
                let held = self.in_flight.over(node, message, attempt);
                self.release(at, held);
            }
            Trace::ConnectFailed { account } => {
                self.active_at.insert(account, at);
            }
            Trace::AskedToWait { until, .. } => self.asked_until = self.asked_until.max(until),
            Trace::Deferred { message, .. }
            | Trace::Settled { message, .. }
            | Trace::Moved { message, .. } => {
                self.waits.remove(&message);
            }
            Trace::Operated { holds } => {
                self.operator_holds = holds;
                self.changed_at = at;
            }
            Trace::Crashed { node } => {
                let held = self.in_flight.crashed(node);
                self.release(at, held);
                self.attempts.retain(|(of, _), _| *of != node);
                self.changed_at = at;
            }
            Trace::Restarted { .. } => self.changed_at = at,
            Trace::Explained {
                message,
                holds,
                accounts,
            } => self.explained(at, message, holds, accounts),
            _ => {}
        }
    }
}

impl Checker for Waits {
    fn name(&self) -> &'static str {
        "waits"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{bucket, found, limit, ms, sent};
    use super::*;

    /// A message is asked about every ten seconds for ten minutes; this holds it.
    fn asked(checker: &mut Waits, held: &[Held]) {
        for at in (0..600_000).step_by(10_000) {
            let explained = Trace::Explained {
                message: 7,
                holds: held,
                accounts: &[0],
            };
            checker.observe(ms(at), &explained);
        }
    }

    fn held(by: HeldBy, until: Option<u64>) -> Held {
        Held {
            by,
            until: until.map(ms),
        }
    }

    fn checker() -> Waits {
        let mut checker = Waits::new(Some(Nanos::ZERO));
        limit(&mut checker, 0, &bucket(1, 600));
        limit(&mut checker, 1, &bucket(10, 10));
        for at in 0..2 {
            checker.observe(ms(at), &sent(at, 1, &[0, 1]));
            checker.observe(
                ms(at),
                &Trace::Replied {
                    node: 0,
                    message: at,
                    attempt: 1,
                    answer: crate::trace::Answered::Accepted,
                },
            );
        }
        checker
    }

    #[test]
    fn what_is_true_is_silent() {
        for holds in [
            // It takes ten minutes to fill.
            vec![held(HeldBy::Limit(Some(0)), Some(600_000))],
            vec![held(HeldBy::Account, Some(700_000))],
            vec![held(HeldBy::Deferred, Some(590_000))],
        ] {
            let mut checker = checker();
            asked(&mut checker, &holds);
            assert_eq!(found(&mut checker, ms(600_000)), Vec::<String>::new());
        }
        let mut unhealed = Waits::new(None);
        asked(&mut unhealed, &[]);
        assert_eq!(found(&mut unhealed, ms(600_000)), Vec::<String>::new());
    }

    #[test]
    fn each_lost_wake_is_named() {
        for (holds, wanted) in [
            (vec![], "waited for nothing"),
            (
                vec![held(HeldBy::Limit(Some(1)), Some(700_000))],
                "waited for limit 1",
            ),
            (vec![held(HeldBy::Session, None)], "waited for a session"),
            (
                vec![held(HeldBy::Unresolved, None)],
                "waited for its domain",
            ),
            (vec![held(HeldBy::Paused, None)], "waited for a pause"),
            (vec![held(HeldBy::NoAccount, None)], "waited for an account"),
            (
                vec![held(HeldBy::Deferred, Some(100_000))],
                "its time, which was over",
            ),
        ] {
            let mut checker = checker();
            asked(&mut checker, &holds);
            let found = found(&mut checker, ms(600_000));
            let named = found.iter().any(|it| it.contains(wanted));
            assert!(named, "{wanted}: {found:?}");
        }
    }
}
