//! A request for tokens, as a call of a script: the terms of the lease are
//! decided here, the count is kept there.

use outflow_core::class::Class;
use outflow_core::engine::action::{GiveBack, LeaseRequest};
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::debits::{QUIET, is_long};
use outflow_core::ledger::settings::{HOLD_LIFE, HOLD_PAUSE};
use outflow_core::ledger::{
    Leasing, NEVER_PAUSE, QUEUE_MAX, Settings, Spacing, Terms, bucket, owed, paid, slots, spaced,
};
use outflow_core::limit::sliding_window::SLOTS;
use outflow_core::limit::{LimitSpec, Need, Rate};
use outflow_core::time::{Nanos, Wall};

use crate::name::Names;
use crate::script::{Call, Script};

/// Rates slower than a token in this time, in microseconds, grant nothing: they
/// would leave the range in which a script counts exactly.
const INTERVAL_MAX: f64 = 1e15;

/// What the node knows besides the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub settings: &'a Settings,
    pub names: &'a Names,
    /// What the ledger calls who asks.
    pub node: &'a str,
    /// Grows with each request of who asks.
    pub no: u64,
    /// The largest cost that is known, at least the request's.
    pub cost: u32,
    /// What the ledger's wall clock shows, about.
    pub wall: Wall,
}

/// A call, and what its answer lacks.
#[derive(Debug)]
pub(crate) struct Ask {
    pub call: Call,
    /// How long a lease lives, where the script does not decide it.
    pub life: Option<Nanos>,
    pub spacing: Nanos,
}

/// Arguments of a script.
#[derive(Default)]
struct Args(Vec<String>);

impl Args {
    fn number(&mut self, value: impl ToString) -> &mut Self {
        self.0.push(value.to_string());
        self
    }

    /// At least this long.
    fn up(&mut self, time: Nanos) -> &mut Self {
        self.number(micros_up(time))
    }

    /// At most this long.
    fn down(&mut self, time: Nanos) -> &mut Self {
        self.number(time.0 / 1_000)
    }

    fn wall(&mut self, wall: Wall) -> &mut Self {
        self.number(wall.0.div_euclid(1_000))
    }
}

pub(crate) fn micros_up(time: Nanos) -> u64 {
    time.0.div_ceil(1_000)
}

/// How long a token takes, in microseconds.
fn interval(rate: Rate) -> Option<f64> {
    let interval = rate.per.0 as f64 / 1_000.0 / f64::from(rate.count);
    (interval > 0.0 && interval <= INTERVAL_MAX).then_some(interval)
}

const NEVER: LeaseAnswer = LeaseAnswer::Refused {
    retry_after: NEVER_PAUSE,
};

impl Asker<'_> {
    /// The call that answers a request; or the answer, if it needs none.
    pub fn lease(&self, request: &LeaseRequest) -> Result<Ask, LeaseAnswer> {
        if let LimitSpec::Concurrency { slots } = request.spec {
            return Ok(self.hold(request, slots));
        }
        let capacity = request.spec.capacity();
        if request.at_least > capacity {
            return Err(NEVER);
        }
        // A cost from before the limit was lowered is none any more.
        let cost = self.cost.min(capacity).max(1);
        match Terms::of(self.settings, &request.spec, request.headroom, cost) {
            Terms::Never => Err(NEVER),
            Terms::Runs(spacing) => self.runs(request, &spacing, cost),
            Terms::Leases(leasing) => match (&request.spec, &leasing.inner) {
                (
                    LimitSpec::TokenBucket { burst, .. },
                    LimitSpec::TokenBucket { rate, burst: holds },
                ) => self.bucket(request, &leasing, (*rate, *holds), *burst, cost),
                (LimitSpec::SlidingWindow { .. }, LimitSpec::SlidingWindow { count, window }) => {
                    Ok(self.window(request, &leasing, (*count, *window)))
                }
                (LimitSpec::CalendarWindow { .. }, _) => Ok(self.calendar(request, &leasing, cost)),
                _ => Err(NEVER),
            },
        }
    }

    /// The longest run of a limit that is leased in runs.
    fn run_max(&self, request: &LeaseRequest) -> u32 {
        let rate = request.spec.shape().rate;
        rate.map_or(1, |rate| spaced::spacing(rate).run_max(self.settings))
    }

    /// What all scripts that lease are told first.
    fn args(&self, request: &LeaseRequest) -> Args {
        let mut args = Args::default();
        args.number(request.version)
            .number(self.cost)
            .up(self.settings.longest());
        args
    }

    /// A call of a script that leases. Last it is told what there is to know of
    /// the classes that wait.
    fn ask(&self, request: &LeaseRequest, script: Script, mut args: Args) -> Ask {
        let most = match script {
            Script::Runs => self.run_max(request),
            _ => request.spec.capacity(),
        };
        let waiting = Class::ALL
            .into_iter()
            .filter(|it| request.waiting.contains(*it));
        args.number(waiting.map(|class| 1_u32 << class.index()).sum::<u32>())
            .number(owed::most(
                most,
                self.cost.min(request.spec.capacity()).max(1),
            ))
            .up(owed::WAITS_FOR);
        self.call(request, script, args)
    }

    fn call(&self, request: &LeaseRequest, script: Script, args: Args) -> Ask {
        let (tag, limit) = self.names.limit(&request.key);
        let call = Call {
            script,
            keys: vec![self.names.epoch(tag), limit],
            args: args.0,
        };
        Ask {
            call,
            life: None,
            spacing: Nanos::ZERO,
        }
    }

    fn bucket(
        &self,
        request: &LeaseRequest,
        leasing: &Leasing,
        (rate, holds): (Rate, u32),
        burst: u32,
        cost: u32,
    ) -> Result<Ask, LeaseAnswer> {
        let interval = interval(rate).ok_or(NEVER)?;
        let floor: Need = bucket::floor(request.headroom, request.class, burst, holds, cost);
        let at_least = request.at_least.max(1);
        let wanted = leasing.wanted(request.tokens).max(at_least);
        let lot = leasing.lot().min(wanted).max(at_least);
        let mut args = self.args(request);
        args.number(interval)
            .number(holds)
            .up(paid(leasing.life))
            .number(floor.0)
            .number(request.class.index())
            .number(wanted)
            .number(at_least)
            .number(lot)
            .up(QUEUE_MAX);
        let ask = self.ask(request, Script::Bucket, args);
        let life = Some(leasing.life);
        Ok(Ask { life, ..ask })
    }

    fn runs(
        &self,
        request: &LeaseRequest,
        spacing: &Spacing,
        cost: u32,
    ) -> Result<Ask, LeaseAnswer> {
        let interval = interval(spacing.rate).ok_or(NEVER)?;
        let gap = spacing.gap();
        let mut args = self.args(request);
        args.number(interval)
            .up(spacing.pause(cost))
            .down(spacing.overlap)
            .number(gap.0 as f64 / 1_000.0)
            .number(spacing.run_max(self.settings))
            .down(self.settings.life_min())
            .number(request.tokens.max(request.at_least))
            .number(cost)
            .up(self.settings.round_trip)
            .number(request.class.index())
            .number(self.node);
        let ask = self.ask(request, Script::Runs, args);
        Ok(Ask {
            spacing: gap,
            ..ask
        })
    }

    fn window(
        &self,
        request: &LeaseRequest,
        leasing: &Leasing,
        (count, window): (u32, Nanos),
    ) -> Ask {
        let at_least = request.at_least.max(1);
        let rate = Rate { count, per: window };
        let mut args = self.args(request);
        args.number(count)
            .up(window)
            .number(grain(window))
            .number(request.class.index())
            .number(leasing.wanted(request.tokens).max(at_least))
            .number(at_least)
            .up(QUEUE_MAX)
            .up(rate.time_for(u64::from(at_least)))
            .number(u8::from(is_long(&request.spec)))
            .up(QUIET)
            .down(leasing.life);
        let ask = self.ask(request, Script::Window, args);
        let life = Some(leasing.life);
        Ask { life, ..ask }
    }

    fn calendar(&self, request: &LeaseRequest, leasing: &Leasing, cost: u32) -> Ask {
        let LimitSpec::CalendarWindow {
            count,
            period,
            zone,
        } = &request.spec
        else {
            return self.ask(request, Script::Calendar, Args::default());
        };
        let at_least = request.at_least.max(1);
        let kept = request
            .headroom
            .above(request.class)
            .saturating_mul(u64::from(*count));
        let rate = Rate {
            count: *count,
            per: period.length(),
        };
        let (start, end) = period.around(self.wall, zone);
        let (next_start, next_end) = period.around(end, zone);
        let mut args = self.args(request);
        args.number(count)
            .number(kept)
            .number(cost)
            .number(request.class.index())
            .number(leasing.wanted(request.tokens).max(at_least))
            .number(at_least)
            .up(QUEUE_MAX)
            .up(rate.time_for(u64::from(at_least)))
            .number(u8::from(is_long(&request.spec)))
            .up(QUIET)
            .down(self.settings.life_max)
            .up(self.settings.life_min())
            .wall(start)
            .wall(end)
            .wall(next_start)
            .wall(next_end);
        self.ask(request, Script::Calendar, args)
    }

    fn hold(&self, request: &LeaseRequest, of: u32) -> Ask {
        let mut args = Args::default();
        args.number(request.version);
        args.0.push(self.node.to_owned());
        args.number(request.held)
            .number(request.tokens)
            .number(of)
            .down(HOLD_LIFE)
            .up(HOLD_PAUSE)
            .number(self.no)
            .number(request.at_least)
            .down(slots::TURN)
            .down(slots::WANTS_FOR);
        self.call(request, Script::Hold, args)
    }
}

/// How long a slot of a window is, in microseconds.
pub(crate) fn grain(window: Nanos) -> u64 {
    micros_up(window).div_ceil(SLOTS).max(1)
}

/// Tokens on their way back.
pub(crate) fn give_back(names: &Names, back: &GiveBack) -> Call {
    let (tag, limit) = names.limit(&back.key);
    let mut args = Args::default();
    args.number(back.tokens)
        .number(back.receipt.epoch)
        .number(back.receipt.at);
    Call {
        script: Script::GiveBack,
        keys: vec![names.epoch(tag), limit],
        args: args.0,
    }
}
