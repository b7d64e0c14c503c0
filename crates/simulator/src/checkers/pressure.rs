//! Who was asked to wait waits, and the others of his pool do not make up for
//! him.
//!
//! While any account is asked to wait, no other one sends more than in the
//! minute before: in no minute, and in the first minute not more than its part,
//! but for one message. What the exceptions are (an account that did little, one
//! that has been held for long) stands in docs/accounts-under-pressure.md; here
//! they are worked out anew.

use std::collections::VecDeque;

use outflow_core::time::Nanos;

use super::Findings;
use crate::pressure::{Episodes, MINUTE};
use crate::scenario::Scenario;
use crate::trace::{Checker, Observer, Trace, Violation};

/// After this long caps grow, by their size in the same time again.
const KEPT: Nanos = Nanos::from_secs(600);

/// What one account did.
#[derive(Clone, Debug, Default)]
struct Account {
    /// Sends of the last minute, with their costs.
    sends: VecDeque<(Nanos, u32)>,
    /// What may always be sent in a minute.
    floor: u64,
    /// What was allowed in a minute when the episode began.
    allowed: u64,
}

impl Account {
    fn forget(&mut self, at: Nanos) {
        while let Some(&(sent, _)) = self.sends.front() {
            if sent + MINUTE > at {
                return;
            }
            self.sends.pop_front();
        }
    }

    fn count_since(&self, since: Nanos) -> u64 {
        let sends = self.sends.iter().filter(|(sent, _)| *sent > since);
        sends.map(|(_, cost)| u64::from(*cost)).sum()
    }
}

/// See the module.
pub struct Pressure {
    /// Whether healthy accounts are to keep their rate.
    keeps: bool,
    accounts: Vec<Account>,
    episodes: Episodes,
    findings: Findings,
}

impl Pressure {
    /// For the accounts of a scenario; one pool only is judged, and only if
    /// no operator changes anything.
    pub fn new(scenario: &Scenario) -> Self {
        let mut accounts = Vec::new();
        for data in &scenario.accounts {
            let specs = data.specs().unwrap_or_default();
            let rates = specs.iter().filter_map(|spec| spec.shape().rate);
            let tenth = |rate: outflow_core::limit::spec::Rate| {
                let minute = u128::from(MINUTE.0) * u128::from(rate.count);
                u64::try_from(minute / u128::from(rate.per.0.max(1)) / 10).unwrap_or(u64::MAX)
            };
            let account = Account {
                floor: rates.map(tenth).min().unwrap_or(60),
                ..Account::default()
            };
            accounts.extend(data.names().iter().map(|_| account.clone()));
        }
        let mut pools = scenario.accounts.iter().map(|it| it.pool.as_str());
        let first = pools.next();
        Self {
            keeps: scenario.keeps_under_pressure()
                && scenario.actions.is_empty()
                && pools.all(|pool| Some(pool) == first),
            accounts,
            episodes: Episodes::default(),
            findings: Findings::of("pressure"),
        }
    }

    /// Works out what each account may send while others wait.
    fn begin(&mut self, at: Nanos) {
        for account in &mut self.accounts {
            account.forget(at);
        }
        let all = self.accounts.iter().flat_map(|account| &account.sends);
        let total: u64 = all.clone().map(|(_, cost)| u64::from(*cost)).sum();
        let first = all.map(|(sent, _)| *sent).min().unwrap_or(at);
        // Who began lately is judged by the rate since then.
        let span = at.minus(first).max(Nanos::from_secs(5)).as_secs_f64();
        let whole = if span < 59.0 { 60.0 / span } else { 1.0 };
        let scaled = |count: u64| (count as f64 * whole).ceil() as u64;
        let fair = scaled(total / (self.accounts.len() as u64).max(1));
        for account in &mut self.accounts {
            let own = scaled(account.count_since(Nanos::ZERO));
            let kept = if own * 2 < fair { fair } else { own };
            account.allowed = kept.max(account.floor);
        }
    }

    fn sent(&mut self, at: Nanos, number: u32, cost: u32) {
        if let Some(until) = self.episodes.waits(at, number) {
            self.findings.add(at, || {
                format!("account {number} sent though it was asked to wait until {until}")
            });
        }
        let on_since = self.episodes.on_since(at);
        let Some(account) = self.accounts.get_mut(number as usize) else {
            return;
        };
        account.forget(at);
        account.sends.push_back((at, cost));
        let Some(began) = on_since.filter(|_| self.keeps) else {
            return;
        };
        let lasted = at.minus(began);
        let growth = 1.0 + lasted.minus(KEPT).as_secs_f64() / KEPT.as_secs_f64();
        let share = (lasted.as_secs_f64() / MINUTE.as_secs_f64()).min(1.0);
        let allowed = account.allowed as f64;
        // Within the first minute a late wake-up may be made up for.
        let made_up = if share < 1.0 { allowed / 400.0 } else { 0.0 };
        let bound = allowed * growth * share + made_up + f64::from(cost);
        let count = account.count_since(began);
        if count as f64 > bound + 1e-6 {
            let allowed = account.allowed;
            self.findings.add(at, || {
                format!(
                    "account {number} sent {count} in the last minute while others wait, \
                     {allowed} in the minute before"
                )
            });
        }
    }
}

impl Observer for Pressure {
    fn observe(&mut self, at: Nanos, trace: &Trace<'_>) {
        match *trace {
            Trace::Dispatched { account, cost, .. } => self.sent(at, account, cost),
            Trace::AskedToWait { account, until } if self.episodes.asked(at, account, until) => {
                self.begin(at);
            }
            _ => {}
        }
    }
}

impl Checker for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn finish(&mut self, at: Nanos, _drained: bool) -> Vec<Violation> {
        self.findings.take(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{found, ms};
    use super::*;

    /// Two accounts without limits.
    fn checker() -> Pressure {
        let text = r#"
            title = "two"
            duration = "10min"
            [[account]]
            name = "a"
            count = 2
            rate = "10/s"
            [[network]]
            name = "n"
            [[traffic]]
            name = "t"
            destination = "isp:google"
            arrive = { kind = "constant", rate = "1/s" }
        "#;
        Pressure::new(&Scenario::parse("two", text).unwrap())
    }

    fn sent(account: u32) -> Trace<'static> {
        Trace::Dispatched {
            node: 0,
            message: 0,
            attempt: 1,
            account,
            cost: 1,
            limits: &[],
        }
    }

    /// Both send every half second for a minute and a half, then the first is
    /// asked to wait for a minute; the second goes on with these gaps.
    fn run(gap_ms: u64) -> Vec<String> {
        let mut checker = checker();
        for tick in 0..180 {
            checker.observe(ms(tick * 500), &sent(0));
            checker.observe(ms(tick * 500), &sent(1));
        }
        let until = ms(150_000);
        let account = 0;
        checker.observe(ms(90_000), &Trace::AskedToWait { account, until });
        let mut at = 90_000;
        while at < 150_000 {
            checker.observe(ms(at), &sent(1));
            at += gap_ms;
        }
        checker.observe(ms(150_000), &sent(0));
        found(&mut checker, ms(160_000))
    }

    #[test]
    fn who_keeps_his_rate_is_not_blamed() {
        assert_eq!(run(500), Vec::<String>::new());
    }

    #[test]
    fn who_takes_over_a_little_is() {
        assert!(!run(480).is_empty());
    }

    #[test]
    fn who_sends_a_moment_too_soon_is() {
        let mut checker = checker();
        let (account, until) = (1, ms(2_000));
        checker.observe(ms(1_000), &Trace::AskedToWait { account, until });
        checker.observe(ms(1_999), &sent(1));
        checker.observe(ms(2_000), &sent(1));
        let found = found(&mut checker, ms(3_000));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
